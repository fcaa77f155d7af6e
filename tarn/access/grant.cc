#include "tarn/access/grant.h"

#include "tarn/access/schema.h"
#include "tarn/base/json_text.h"

namespace tarn::access {

namespace {

// True for everyone, an active user or a group.
Result<bool> IsPrincipal(metastore::SqlTransaction& sql, const std::string& id) {
  if (id == kEveryone) {
    return true;
  }
  bool found = false;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT 1 FROM access_users WHERE id = ?1 AND status = 0 "
                "UNION ALL SELECT 1 FROM access_groups WHERE id = ?1",
                {id}, [&](const metastore::SqlRow&) {
                  found = true;
                  return Result<metastore::RowAction>(metastore::RowAction::kStop);
                }));
  return found;
}

}  // namespace

Status AddGrant(metastore::SqlTransaction& sql, const Grant& grant, std::string_view granted_by,
                Timestamp now) {
  if (grant.role == Role::kNone || grant.resource.empty()) {
    return Status::InvalidArgument("a grant needs a resource and a role");
  }
  TARN_ASSIGN_OR_RETURN(const bool known, IsPrincipal(sql, grant.principal_id));
  if (!known) {
    return Status::NotFound("no active user and no group \"" + grant.principal_id + "\"")
        .WithReason("PrincipalNotFound", JsonObject({{"principalId", grant.principal_id}}));
  }
  TARN_RETURN_IF_ERROR(
      sql.Execute("INSERT INTO access_grants (resource, principal_id, role, granted_by, granted) "
                  "VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
                  {grant.resource.ToString(), grant.principal_id, static_cast<int64_t>(grant.role),
                   std::string(granted_by), ToMicros(now)}));
  return RenewAccessStamp(sql);
}

Status RemoveGrant(metastore::SqlTransaction& sql, const Grant& grant) {
  TARN_RETURN_IF_ERROR(sql.Execute(
      "DELETE FROM access_grants WHERE resource = ?1 AND principal_id = ?2 "
      "AND role = ?3",
      {grant.resource.ToString(), grant.principal_id, static_cast<int64_t>(grant.role)}));
  return RenewAccessStamp(sql);
}

Result<std::vector<Grant>> ListGrants(metastore::SqlTransaction& sql, const Rid& resource) {
  std::vector<Grant> grants;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT principal_id, role FROM access_grants WHERE resource = ?1 "
                "ORDER BY principal_id, role",
                {resource.ToString()}, [&](const metastore::SqlRow& row) {
                  grants.push_back({.resource = resource,
                                    .principal_id = std::string(row.Text(0)),
                                    .role = static_cast<Role>(row.Int(1))});
                  return Result<metastore::RowAction>(metastore::RowAction::kContinue);
                }));
  return grants;
}

Status RemoveGrantsOn(metastore::SqlTransaction& sql, const Rid& resource) {
  TARN_ASSIGN_OR_RETURN(
      const int64_t removed,
      sql.Execute("DELETE FROM access_grants WHERE resource = ?1", {resource.ToString()}));
  return removed == 0 ? Status() : RenewAccessStamp(sql);
}

}  // namespace tarn::access
