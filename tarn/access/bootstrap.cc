#include "tarn/access/bootstrap.h"

#include "tarn/access/grant.h"
#include "tarn/base/json_text.h"

namespace tarn::access {

namespace {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

Result<bool> HasUsers(SqlTransaction& sql) {
  bool any = false;
  TARN_RETURN_IF_ERROR(sql.Query("SELECT 1 FROM access_users LIMIT 1", {}, [&](const SqlRow&) {
    any = true;
    return Result<RowAction>(RowAction::kStop);
  }));
  return any;
}

Status OrganizationNotFound(std::string_view rid) {
  return Status::NotFound("no organization " + std::string(rid))
      .WithReason("OrganizationNotFound", JsonObject({{"organizationRid", rid}}));
}

}  // namespace

Result<std::optional<Bootstrapped>> Bootstrap(SqlTransaction& sql, const Rid& root,
                                              UuidGenerator& ids, const Clock& clock) {
  TARN_ASSIGN_OR_RETURN(const bool has_users, HasUsers(sql));
  if (has_users) {
    return std::optional<Bootstrapped>();
  }
  const std::string organization = "ri.multipass..organization." + ids.NextV4().ToString();
  TARN_RETURN_IF_ERROR(
      sql.Execute("INSERT INTO access_organizations (rid, name, description, marking_id) "
                  "VALUES (?1, 'Default', '', ?2)",
                  {organization, ids.NextV4().ToString()}));
  Directory directory(ids, clock);
  Tokens tokens(ids, clock);
  TARN_ASSIGN_OR_RETURN(const User admin, directory.CreateUser(sql, {.username = "admin"}));
  TARN_ASSIGN_OR_RETURN(const IssuedToken token,
                        tokens.Create(sql, {.user_id = admin.id, .name = "admin-token"}));
  TARN_RETURN_IF_ERROR(AddGrant(sql,
                                {.resource = root, .principal_id = admin.id, .role = Role::kOwner},
                                admin.id, clock.Now()));
  return std::optional<Bootstrapped>(Bootstrapped{.admin = admin, .token = token});
}

Result<Organization> GetOrganization(SqlTransaction& sql) {
  std::optional<Organization> organization;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT rid, name, description, marking_id FROM access_organizations ORDER BY rid LIMIT 1",
      {}, [&](const SqlRow& row) -> Result<RowAction> {
        const Result<Rid> rid = Rid::Parse(row.Text(0));
        if (!rid.ok()) {
          return rid.status();
        }
        organization = Organization{.rid = *rid,
                                    .name = std::string(row.Text(1)),
                                    .description = std::string(row.Text(2)),
                                    .marking_id = std::string(row.Text(3))};
        return RowAction::kStop;
      }));
  if (!organization.has_value()) {
    return OrganizationNotFound("yet; the metastore is empty");
  }
  return *std::move(organization);
}

Status ReplaceOrganization(SqlTransaction& sql, const Rid& rid, std::string_view name,
                           std::string_view description) {
  if (name.empty()) {
    return Status::InvalidArgument("an organization needs a name");
  }
  TARN_ASSIGN_OR_RETURN(
      const int64_t changed,
      sql.Execute("UPDATE access_organizations SET name = ?2, description = ?3 WHERE rid = ?1",
                  {rid.ToString(), std::string(name), std::string(description)}));
  return changed == 0 ? OrganizationNotFound(rid.ToString()) : Status();
}

}  // namespace tarn::access
