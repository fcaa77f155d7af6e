// Authorizer: may this principal do that to this resource?
//
// A role on a resource is the greatest that any grant gives the user, one of its groups or
// everyone, on the resource or on any of its ancestors. The caller passes the chain of ancestors
// (tree::AncestorChain); this room never reads the tree.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "tarn/access/grant.h"
#include "tarn/access/principal.h"
#include "tarn/access/role.h"
#include "tarn/access/scope.h"
#include "tarn/base/clock.h"
#include "tarn/base/rid.h"
#include "tarn/metastore/database.h"

namespace tarn::access {

/// The one answer to "does not exist" and to "no access": kNotFound, reason ResourceNotFound,
/// parameter resourceRid. Rooms that know the kind re-label it (DatasetNotFound …), both alike.
Status ResourceNotFound(const Rid& resource);

/// kPermissionDenied, reason ApiUsageDenied, parameter missingScope, unless the token has `scope`.
Status RequireScope(const Principal& principal, Scope scope);

struct AuthorizerOptions {
  size_t cache_entries_max = 100'000;  // Roles and group lists kept; then all are dropped.
};

/// Threads: any. Every call reads the access stamp (one key look-up) in the caller's transaction
/// and answers from memory while it stands, so a change counts at once, on every server.
class Authorizer {
 public:
  /// `clock` dates group memberships that expire.
  explicit Authorizer(const Clock& clock, AuthorizerOptions options = {});
  ~Authorizer();
  Authorizer(const Authorizer&) = delete;
  Authorizer& operator=(const Authorizer&) = delete;

  /// `chain`: the resource first, the root last; empty (no such resource) gives kNone.
  Result<Role> RoleOf(metastore::SqlTransaction& sql, const Principal& principal,
                      std::span<const Rid> chain);

  /// Errors, in this order: kPermissionDenied when the token lacks `scope` (says nothing of the
  /// resource); ResourceNotFound(resource) when the principal has no role or the chain is empty;
  /// kPermissionDenied when its role is below `role`. `resource` is what the caller asked for.
  Status Require(metastore::SqlTransaction& sql, const Principal& principal, const Rid& resource,
                 std::span<const Rid> chain, Role role, Scope scope);

  /// Who may give or take `role` on a resource: its owners, and nobody more than they have.
  Status RequireGrant(metastore::SqlTransaction& sql, const Principal& principal,
                      const Rid& resource, std::span<const Rid> chain, Role role);

 private:
  class Cache;
  const Clock& clock_;
  std::unique_ptr<Cache> cache_;
};

}  // namespace tarn::access
