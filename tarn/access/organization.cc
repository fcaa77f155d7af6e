#include "tarn/access/organization.h"

#include "tarn/access/directory.h"
#include "tarn/base/json_text.h"

namespace tarn::access {

namespace {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

constexpr size_t kNameBytesMax = 256;

Status OrganizationNotFound(std::string_view rid) {
  return Status::NotFound("no organization " + std::string(rid))
      .WithReason("OrganizationNotFound", JsonObject({{"organizationRid", rid}}));
}

Status CheckName(std::string_view name) {
  if (name.empty() || name.size() > kNameBytesMax || name.find('\0') != std::string_view::npos) {
    return Status::InvalidArgument("an organization name has 1 to 256 bytes and no NUL, found " +
                                   std::to_string(name.size()) + " bytes");
  }
  return {};
}

Status NameTaken(const Status& status, std::string_view name) {
  if (status.code() != ErrorCode::kAlreadyExists) {
    return status;
  }
  return Status::AlreadyExists("an organization is called " + JsonString(name) + " already")
      .WithReason("OrganizationNameAlreadyExists", JsonObject({{"displayName", name}}));
}

Result<std::vector<Organization>> ReadOrganizations(SqlTransaction& sql, std::string_view rest,
                                                    const metastore::SqlArguments& arguments) {
  std::vector<Organization> organizations;
  TARN_RETURN_IF_ERROR(sql.Query(
      std::string("SELECT rid, name, description, marking_id, host FROM access_organizations ")
          .append(rest),
      arguments, [&](const SqlRow& row) -> Result<RowAction> {
        TARN_ASSIGN_OR_RETURN(const Rid rid, Rid::Parse(row.Text(0)));
        organizations.push_back({.rid = rid,
                                 .name = std::string(row.Text(1)),
                                 .description = std::string(row.Text(2)),
                                 .marking_id = std::string(row.Text(3)),
                                 .host = std::string(row.Text(4))});
        return RowAction::kContinue;
      }));
  return organizations;
}

}  // namespace

Result<Organization> CreateOrganization(SqlTransaction& sql, Organization organization,
                                        UuidGenerator& ids, const Clock& clock) {
  TARN_RETURN_IF_ERROR(CheckName(organization.name));
  TARN_ASSIGN_OR_RETURN(organization.rid,
                        Rid::Parse("ri.multipass..organization." + ids.NextV4().ToString()));
  organization.marking_id = ids.NextV4().ToString();
  const Result<int64_t> inserted = sql.Execute(
      "INSERT INTO access_organizations (rid, name, description, marking_id, host, created) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
      {organization.rid.ToString(), organization.name, organization.description,
       organization.marking_id, organization.host, ToMicros(clock.Now())});
  TARN_RETURN_IF_ERROR(NameTaken(inserted.status(), organization.name));
  return organization;
}

Result<Organization> GetOrganization(SqlTransaction& sql) {
  TARN_ASSIGN_OR_RETURN(const std::vector<Organization> first,
                        ReadOrganizations(sql, "ORDER BY created, rid LIMIT 1", {}));
  if (first.empty()) {
    return OrganizationNotFound("yet; the metastore is empty");
  }
  return first.front();
}

Result<Organization> GetOrganization(SqlTransaction& sql, const Rid& rid) {
  TARN_ASSIGN_OR_RETURN(const std::vector<Organization> found,
                        ReadOrganizations(sql, "WHERE rid = ?1", {rid.ToString()}));
  if (found.empty()) {
    return OrganizationNotFound(rid.ToString());
  }
  return found.front();
}

Result<std::vector<Organization>> ListOrganizations(SqlTransaction& sql) {
  return ReadOrganizations(sql, "ORDER BY created, rid", {});
}

Status ReplaceOrganization(SqlTransaction& sql, const Organization& organization) {
  TARN_RETURN_IF_ERROR(CheckName(organization.name));
  const Result<int64_t> changed = sql.Execute(
      "UPDATE access_organizations SET name = ?2, description = ?3, host = ?4 WHERE rid = ?1",
      {organization.rid.ToString(), organization.name, organization.description,
       organization.host});
  TARN_RETURN_IF_ERROR(NameTaken(changed.status(), organization.name));
  return *changed == 0 ? OrganizationNotFound(organization.rid.ToString()) : Status();
}

Status SetGroupDetails(SqlTransaction& sql, std::string_view group_id,
                       const GroupDetails& details) {
  if (details.organizations.empty()) {
    return Status::InvalidArgument("a group belongs to at least one organization")
        .WithReason("InvalidGroupOrganizations");
  }
  TARN_ASSIGN_OR_RETURN(const Group group, GetGroup(sql, group_id));
  TARN_RETURN_IF_ERROR(sql.Execute("UPDATE access_groups SET attributes = ?2 WHERE id = ?1",
                                   {group.id, details.attributes_json}));
  TARN_RETURN_IF_ERROR(
      sql.Execute("DELETE FROM access_group_organizations WHERE group_id = ?1", {group.id}));
  for (const Rid& rid : details.organizations) {
    TARN_RETURN_IF_ERROR(StatusOf(GetOrganization(sql, rid)));
    TARN_RETURN_IF_ERROR(
        sql.Execute("INSERT INTO access_group_organizations (group_id, organization) "
                    "VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                    {group.id, rid.ToString()}));
  }
  return {};
}

Result<GroupDetails> GetGroupDetails(SqlTransaction& sql, std::string_view group_id) {
  GroupDetails details;
  TARN_RETURN_IF_ERROR(sql.Query("SELECT attributes FROM access_groups WHERE id = ?1",
                                 {std::string(group_id)}, [&](const SqlRow& row) {
                                   details.attributes_json = std::string(row.Text(0));
                                   return Result<RowAction>(RowAction::kStop);
                                 }));
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT organization FROM access_group_organizations WHERE group_id = ?1 "
                "ORDER BY organization",
                {std::string(group_id)}, [&](const SqlRow& row) -> Result<RowAction> {
                  TARN_ASSIGN_OR_RETURN(Rid rid, Rid::Parse(row.Text(0)));
                  details.organizations.push_back(std::move(rid));
                  return RowAction::kContinue;
                }));
  if (details.organizations.empty()) {
    TARN_ASSIGN_OR_RETURN(const Organization first, GetOrganization(sql));
    details.organizations.push_back(first.rid);
  }
  return details;
}

}  // namespace tarn::access
