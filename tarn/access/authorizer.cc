#include "tarn/access/authorizer.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tarn/access/directory.h"
#include "tarn/access/schema.h"
#include "tarn/base/json_text.h"

namespace tarn::access {

namespace {

// Everything a user acts as: itself, its groups, everyone. Empty for a deleted user.
struct Identity {
  std::unordered_set<std::string> principal_ids;
  std::optional<Timestamp> until;  // When a membership ends and this must be read again.
};

using IdentityRef = std::shared_ptr<const Identity>;
using GrantsRef = std::shared_ptr<const std::vector<Grant>>;

Result<IdentityRef> ReadIdentity(metastore::SqlTransaction& sql, const std::string& user_id,
                                 Timestamp now) {
  auto identity = std::make_shared<Identity>();
  const Result<User> user = GetUser(sql, user_id);
  if (!user.ok() && user.status().code() != ErrorCode::kNotFound) {
    return user.status();
  }
  if (user.ok() && user->status == UserStatus::kActive) {
    TARN_ASSIGN_OR_RETURN(Memberships memberships,
                          ReadMemberships(sql, user_id, now, Reach::kTransitive));
    identity->until = memberships.next_expiry;
    for (std::string& group : memberships.group_ids) {
      identity->principal_ids.insert(std::move(group));
    }
    identity->principal_ids.insert(user_id);
    identity->principal_ids.emplace(kEveryone);
  }
  return IdentityRef(std::move(identity));
}

Result<GrantsRef> ReadGrants(metastore::SqlTransaction& sql, const Rid& resource) {
  TARN_ASSIGN_OR_RETURN(std::vector<Grant> grants, ListGrants(sql, resource));
  return GrantsRef(std::make_shared<const std::vector<Grant>>(std::move(grants)));
}

}  // namespace

// What was read under one stamp. A stamp is random, so one that was rolled back, or that an older
// read still sees, can never be taken for another; a different stamp empties the cache.
class Authorizer::Cache {
 public:
  explicit Cache(size_t entries_max) : entries_max_(entries_max) {}

  IdentityRef FindIdentity(int64_t stamp, const std::string& user_id, Timestamp now) {
    const std::lock_guard lock(mutex_);
    if (stamp != stamp_) {
      return nullptr;
    }
    const auto found = identities_.find(user_id);
    if (found == identities_.end() ||
        (found->second->until.has_value() && *found->second->until <= now)) {
      return nullptr;
    }
    return found->second;
  }

  void KeepIdentity(int64_t stamp, const std::string& user_id, const IdentityRef& identity) {
    const std::lock_guard lock(mutex_);
    MakeRoom(stamp);
    identities_[user_id] = identity;
  }

  GrantsRef FindGrants(int64_t stamp, const Rid& resource) {
    const std::lock_guard lock(mutex_);
    if (stamp != stamp_) {
      return nullptr;
    }
    const auto found = grants_.find(resource);
    return found == grants_.end() ? nullptr : found->second;
  }

  void KeepGrants(int64_t stamp, const Rid& resource, const GrantsRef& grants) {
    const std::lock_guard lock(mutex_);
    MakeRoom(stamp);
    grants_[resource] = grants;
  }

 private:
  // Called with mutex_ held.
  void MakeRoom(int64_t stamp) {
    if (stamp != stamp_ || identities_.size() + grants_.size() >= entries_max_) {
      identities_.clear();
      grants_.clear();
      stamp_ = stamp;
    }
  }

  const size_t entries_max_;
  std::mutex mutex_;
  int64_t stamp_ = 0;
  std::unordered_map<std::string, IdentityRef> identities_;
  std::unordered_map<Rid, GrantsRef> grants_;
};

Status ResourceNotFound(const Rid& resource) {
  return Status::NotFound("no resource " + resource.ToString())
      .WithReason("ResourceNotFound", JsonObject({{"resourceRid", resource.ToString()}}));
}

Status RequireScope(const Principal& principal, Scope scope) {
  if (principal.scopes.Contains(scope)) {
    return {};
  }
  return Status::PermissionDenied("the token of " + principal.username + " lacks the scope " +
                                  std::string(ScopeName(scope)))
      .WithReason("ApiUsageDenied", JsonObject({{"missingScope", ScopeName(scope)}}));
}

Authorizer::Authorizer(const Clock& clock, AuthorizerOptions options)
    : clock_(clock), cache_(std::make_unique<Cache>(options.cache_entries_max)) {}
Authorizer::~Authorizer() = default;

Result<Role> Authorizer::RoleOf(metastore::SqlTransaction& sql, const Principal& principal,
                                std::span<const Rid> chain) {
  if (chain.empty()) {
    return Role::kNone;
  }
  TARN_ASSIGN_OR_RETURN(const int64_t stamp, ReadAccessStamp(sql));
  const Timestamp now = clock_.Now();
  IdentityRef identity = cache_->FindIdentity(stamp, principal.user_id, now);
  if (identity == nullptr) {
    TARN_ASSIGN_OR_RETURN(identity, ReadIdentity(sql, principal.user_id, now));
    cache_->KeepIdentity(stamp, principal.user_id, identity);
  }
  Role role = Role::kNone;
  for (const Rid& resource : chain) {
    GrantsRef grants = cache_->FindGrants(stamp, resource);
    if (grants == nullptr) {
      TARN_ASSIGN_OR_RETURN(grants, ReadGrants(sql, resource));
      cache_->KeepGrants(stamp, resource, grants);
    }
    for (const Grant& grant : *grants) {
      if (identity->principal_ids.contains(grant.principal_id)) {
        role = std::max(role, grant.role);
      }
    }
  }
  return role;
}

Status Authorizer::Require(metastore::SqlTransaction& sql, const Principal& principal,
                           const Rid& resource, std::span<const Rid> chain, Role role,
                           Scope scope) {
  TARN_RETURN_IF_ERROR(RequireScope(principal, scope));
  TARN_ASSIGN_OR_RETURN(const Role found, RoleOf(sql, principal, chain));
  if (found == Role::kNone) {
    return ResourceNotFound(resource);
  }
  if (found < role) {
    return Status::PermissionDenied(principal.username + " is " + std::string(RoleName(found)) +
                                    " of " + resource.ToString() + ", this needs " +
                                    std::string(RoleName(role)));
  }
  return {};
}

Status Authorizer::RequireGrant(metastore::SqlTransaction& sql, const Principal& principal,
                                const Rid& resource, std::span<const Rid> chain, Role role) {
  if (role == Role::kNone) {
    return Status::InvalidArgument("a grant needs a role");
  }
  // An owner has the greatest role, so it can give any.
  return Require(sql, principal, resource, chain, Role::kOwner, Scope::kFilesystemWrite);
}

}  // namespace tarn::access
