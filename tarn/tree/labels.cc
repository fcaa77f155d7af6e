#include "tarn/tree/labels.h"

#include "tarn/base/json_text.h"

namespace tarn::tree {

namespace {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

std::string NameOf(LabelKind kind) {
  switch (kind) {
    case LabelKind::kMarking:
      return "marking";
    case LabelKind::kOrganization:
      return "organization";
    case LabelKind::kDeletionOrganization:
      return "deletion organization";
  }
  return "";
}

}  // namespace

Status AddLabel(SqlTransaction& sql, const Rid& rid, LabelKind kind, std::string_view label) {
  if (label.empty() || label.size() > kLabelBytesMax) {
    return Status::InvalidArgument(NameOf(kind) + " of " + rid.ToString() +
                                   ": 1 to 256 bytes are needed, found " +
                                   std::to_string(label.size()));
  }
  return sql
      .Execute(
          "INSERT INTO tree_labels (rid, kind, label) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
          {rid.ToString(), NameOf(kind), std::string(label)})
      .status();
}

Status RemoveLabel(SqlTransaction& sql, const Rid& rid, LabelKind kind, std::string_view label) {
  return sql
      .Execute("DELETE FROM tree_labels WHERE rid = ?1 AND kind = ?2 AND label = ?3",
               {rid.ToString(), NameOf(kind), std::string(label)})
      .status();
}

Result<std::vector<std::string>> ListLabels(SqlTransaction& sql, const Rid& rid, LabelKind kind) {
  std::vector<std::string> labels;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT label FROM tree_labels WHERE rid = ?1 AND kind = ?2 ORDER BY label",
                {rid.ToString(), NameOf(kind)}, [&](const SqlRow& row) {
                  labels.emplace_back(row.Text(0));
                  return Result<RowAction>(RowAction::kContinue);
                }));
  return labels;
}

Status AddReference(SqlTransaction& sql, const Rid& project, const Reference& reference) {
  return sql
      .Execute(
          "INSERT INTO tree_references (project, resource, name, external, imported_by, imported) "
          "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (project, resource) "
          "DO UPDATE SET name = excluded.name, external = excluded.external",
          {project.ToString(), reference.resource.ToString(), reference.name,
           static_cast<int64_t>(reference.external), reference.imported_by,
           ToMicros(reference.imported)})
      .status();
}

Status RemoveReference(SqlTransaction& sql, const Rid& project, const Rid& resource) {
  return sql
      .Execute("DELETE FROM tree_references WHERE project = ?1 AND resource = ?2",
               {project.ToString(), resource.ToString()})
      .status();
}

Result<std::vector<Reference>> ListReferences(SqlTransaction& sql, const Rid& project) {
  std::vector<Reference> references;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT resource, name, external, imported_by, imported FROM tree_references "
                "WHERE project = ?1 ORDER BY resource",
                {project.ToString()}, [&](const SqlRow& row) -> Result<RowAction> {
                  TARN_ASSIGN_OR_RETURN(Rid resource, Rid::Parse(row.Text(0)));
                  references.push_back({.resource = std::move(resource),
                                        .name = std::string(row.Text(1)),
                                        .external = row.Int(2) != 0,
                                        .imported_by = std::string(row.Text(3)),
                                        .imported = FromMicros(row.Int(4))});
                  return RowAction::kContinue;
                }));
  return references;
}

Result<std::string> ReadSettings(SqlTransaction& sql, const Rid& rid) {
  std::string json = "{}";
  TARN_RETURN_IF_ERROR(sql.Query("SELECT settings FROM tree_settings WHERE rid = ?1",
                                 {rid.ToString()}, [&](const SqlRow& row) {
                                   json = std::string(row.Text(0));
                                   return Result<RowAction>(RowAction::kStop);
                                 }));
  return json;
}

Status WriteSettings(SqlTransaction& sql, const Rid& rid, std::string_view json) {
  return sql
      .Execute(
          "INSERT INTO tree_settings (rid, settings) VALUES (?1, ?2) "
          "ON CONFLICT (rid) DO UPDATE SET settings = excluded.settings",
          {rid.ToString(), std::string(json)})
      .status();
}

Status RecordLook(SqlTransaction& sql, std::string_view user_id, const Look& look) {
  const std::string user(user_id);
  TARN_RETURN_IF_ERROR(
      sql.Execute("INSERT INTO tree_looks (user_id, rid, time) VALUES (?1, ?2, ?3) "
                  "ON CONFLICT (user_id, rid) DO UPDATE SET time = excluded.time",
                  {user, look.resource.ToString(), ToMicros(look.time)}));
  return sql
      .Execute(
          "DELETE FROM tree_looks WHERE user_id = ?1 AND time < (SELECT min(time) FROM "
          "(SELECT time FROM tree_looks WHERE user_id = ?1 ORDER BY time DESC LIMIT ?2) newest)",
          {user, kLooksMax})
      .status();
}

Result<std::vector<Look>> ListLooks(SqlTransaction& sql, std::string_view user_id, int64_t limit) {
  std::vector<Look> looks;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT rid, time FROM tree_looks WHERE user_id = ?1 "
      "ORDER BY time DESC, rid LIMIT ?2",
      {std::string(user_id), limit}, [&](const SqlRow& row) -> Result<RowAction> {
        TARN_ASSIGN_OR_RETURN(Rid resource, Rid::Parse(row.Text(0)));
        looks.push_back({.resource = std::move(resource), .time = FromMicros(row.Int(1))});
        return RowAction::kContinue;
      }));
  return looks;
}

Status RemoveLabelsOf(SqlTransaction& sql, const Rid& rid) {
  for (const char* text :
       {"DELETE FROM tree_labels WHERE rid = ?1",
        "DELETE FROM tree_references WHERE project = ?1 OR resource = ?1",
        "DELETE FROM tree_settings WHERE rid = ?1", "DELETE FROM tree_looks WHERE rid = ?1"}) {
    TARN_RETURN_IF_ERROR(sql.Execute(text, {rid.ToString()}));
  }
  return {};
}

}  // namespace tarn::tree
