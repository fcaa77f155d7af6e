// Grants: which principal has which role on which resource. They reach down the tree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tarn/access/role.h"
#include "tarn/base/clock.h"
#include "tarn/base/rid.h"
#include "tarn/metastore/database.h"

namespace tarn::access {

/// The principal that stands for every user.
inline constexpr std::string_view kEveryone = "everyone";

/// One role of one principal on one resource. Value.
struct Grant {
  Rid resource;
  std::string principal_id;  // User id, group id or kEveryone.
  Role role = Role::kNone;
  friend bool operator==(const Grant&, const Grant&) = default;
};

/// Writes a grant; there already: success. Who may do so is Authorizer::RequireGrant's business.
/// Errors: kNotFound (PrincipalNotFound); kInvalidArgument for kNone.
Status AddGrant(metastore::SqlTransaction& sql, const Grant& grant, std::string_view granted_by,
                Timestamp now);
/// Not there: success.
Status RemoveGrant(metastore::SqlTransaction& sql, const Grant& grant);
/// Grants on the resource itself, by principal and role.
Result<std::vector<Grant>> ListGrants(metastore::SqlTransaction& sql, const Rid& resource);
/// Forgets a resource that is gone for good.
Status RemoveGrantsOn(metastore::SqlTransaction& sql, const Rid& resource);

}  // namespace tarn::access
