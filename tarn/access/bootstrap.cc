#include "tarn/access/bootstrap.h"

#include "tarn/access/grant.h"

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

}  // namespace

Result<std::optional<Bootstrapped>> Bootstrap(SqlTransaction& sql, const Rid& root,
                                              UuidGenerator& ids, const Clock& clock) {
  TARN_ASSIGN_OR_RETURN(const bool has_users, HasUsers(sql));
  if (has_users) {
    return std::optional<Bootstrapped>();
  }
  TARN_RETURN_IF_ERROR(CreateOrganization(
      sql, {.rid = {}, .name = "Default", .description = {}, .marking_id = {}}, ids, clock));
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

}  // namespace tarn::access
