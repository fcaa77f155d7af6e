#include "tarn/catalog/pointer_store.h"

#include <algorithm>

#include <fmt/format.h>

namespace tarn::catalog {

namespace {

using metastore::Migration;
using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

constexpr std::string_view kSchema = R"sql(
CREATE TABLE catalog_object (
  rid TEXT PRIMARY KEY,
  kind INTEGER NOT NULL,
  folder TEXT NOT NULL,
  name TEXT NOT NULL,
  uuid TEXT NOT NULL,
  metadata_location TEXT NOT NULL,
  writers INTEGER NOT NULL,
  UNIQUE (folder, name)
);
)sql";

constexpr std::string_view kColumns =
    "SELECT rid, kind, folder, name, uuid, metadata_location, writers FROM catalog_object ";

Result<Rid> RidAt(const SqlRow& row, int column) {
  Result<Rid> rid = Rid::Parse(row.Text(column));
  if (!rid.ok()) {
    return Status::Corruption("catalog_object: " + rid.status().message());
  }
  return rid;
}

Result<CatalogObject> ObjectAt(const SqlRow& row) {
  CatalogObject object;
  TARN_ASSIGN_OR_RETURN(object.rid, RidAt(row, 0));
  object.kind = static_cast<ObjectKind>(row.Int(1));
  TARN_ASSIGN_OR_RETURN(object.folder, RidAt(row, 2));
  object.name = row.Text(3);
  object.uuid = row.Text(4);
  object.metadata_location = row.Text(5);
  object.writers = static_cast<Writers>(row.Int(6));
  return object;
}

Result<std::optional<CatalogObject>> FindOne(SqlTransaction& sql, std::string_view where,
                                             const metastore::SqlArguments& arguments) {
  std::optional<CatalogObject> found;
  TARN_RETURN_IF_ERROR(sql.Query(std::string(kColumns) + std::string(where), arguments,
                                 [&](const SqlRow& row) -> Result<RowAction> {
                                   TARN_ASSIGN_OR_RETURN(found, ObjectAt(row));
                                   return RowAction::kStop;
                                 }));
  return found;
}

tree::NodeType NodeTypeOf(ObjectKind kind) {
  return kind == ObjectKind::kTable ? tree::NodeType::kTable : tree::NodeType::kView;
}

}  // namespace

std::vector<Migration> Migrations() { return {{"catalog", 1, std::string(kSchema)}}; }

Result<CatalogObject> CreateObject(SqlTransaction& sql, tree::Tree& tree,
                                   const ObjectDefinition& object) {
  Result<tree::Node> node = tree.Create(sql, {.rid = {},
                                              .parent = object.folder,
                                              .name = object.name,
                                              .type = NodeTypeOf(object.kind),
                                              .description = {},
                                              .by = object.by});
  if (!node.ok()) {
    if (node.status().code() == ErrorCode::kAlreadyExists) {
      return node.status().WithContext(
          fmt::format("cannot create {} {}", ObjectKindName(object.kind), object.name));
    }
    return node.status();
  }
  TARN_RETURN_IF_ERROR(sql.Execute(
      "INSERT INTO catalog_object (rid, kind, folder, name, uuid, metadata_location, writers) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
      {node->rid.ToString(), static_cast<int64_t>(object.kind), object.folder.ToString(),
       object.name, object.uuid, object.metadata_location, static_cast<int64_t>(object.writers)}));
  return CatalogObject{.rid = node->rid,
                       .kind = object.kind,
                       .folder = object.folder,
                       .name = object.name,
                       .uuid = object.uuid,
                       .metadata_location = object.metadata_location,
                       .writers = object.writers};
}

Result<std::optional<CatalogObject>> FindObject(SqlTransaction& sql, const Rid& rid) {
  return FindOne(sql, "WHERE rid = ?1", {rid.ToString()});
}

Result<std::optional<CatalogObject>> FindObject(SqlTransaction& sql, const Rid& folder,
                                                std::string_view name) {
  return FindOne(sql, "WHERE folder = ?1 AND name = ?2", {folder.ToString(), std::string(name)});
}

Result<ObjectPage> ListObjects(SqlTransaction& sql, const Rid& folder, ObjectKind kind,
                               std::string_view after, int64_t limit) {
  const int64_t size = std::clamp<int64_t>(limit, 1, 10'000);
  ObjectPage page;
  TARN_RETURN_IF_ERROR(
      sql.Query(std::string(kColumns) +
                    "WHERE folder = ?1 AND kind = ?2 AND name > ?3 ORDER BY name LIMIT ?4",
                {folder.ToString(), static_cast<int64_t>(kind), std::string(after), size + 1},
                [&](const SqlRow& row) -> Result<RowAction> {
                  if (static_cast<int64_t>(page.objects.size()) == size) {
                    page.truncated = true;
                    return RowAction::kStop;
                  }
                  TARN_ASSIGN_OR_RETURN(CatalogObject object, ObjectAt(row));
                  page.objects.push_back(std::move(object));
                  return RowAction::kContinue;
                }));
  return page;
}

Status MovePointer(SqlTransaction& sql, const PointerMove& move) {
  TARN_ASSIGN_OR_RETURN(
      const int64_t moved,
      sql.Execute("UPDATE catalog_object SET metadata_location = ?1 WHERE rid = ?2 AND "
                  "metadata_location = ?3",
                  {move.next_location, move.rid.ToString(), move.expected_location}));
  if (moved == 1) {
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(const std::optional<CatalogObject> object, FindObject(sql, move.rid));
  if (!object) {
    return Status::NotFound("Table does not exist: " + move.rid.ToString());
  }
  return Status::Conflict(fmt::format("{} {} moved: expected metadata {}, found {}",
                                      ObjectKindName(object->kind), object->name,
                                      move.expected_location, object->metadata_location));
}

Status DropObject(SqlTransaction& sql, const Rid& rid) {
  TARN_ASSIGN_OR_RETURN(const int64_t removed,
                        sql.Execute("DELETE FROM catalog_object WHERE rid = ?1", {rid.ToString()}));
  if (removed == 0) {
    return Status::NotFound("Table does not exist: " + rid.ToString());
  }
  return Status::Ok();
}

Result<Rid> GetNamespace(SqlTransaction& sql, const Rid& project,
                         const std::vector<std::string>& levels) {
  Rid folder = project;
  for (const std::string& level : levels) {
    TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> child,
                          tree::FindChild(sql, folder, level));
    if (!child || !tree::IsFolderLike(child->type)) {
      return Status::NotFound(fmt::format("Namespace does not exist: {}", fmt::join(levels, ".")));
    }
    folder = child->rid;
  }
  return folder;
}

}  // namespace tarn::catalog
