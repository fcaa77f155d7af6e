#include "tarn/catalog/pointer_store.h"

#include <algorithm>

#include <fmt/format.h>

#include "tarn/base/json_text.h"

namespace tarn::catalog {

namespace {

using metastore::Migration;
using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;
using tree::Node;
using tree::NodeType;

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

// Names went to the tree, which moves and renames without asking. Locations of what is there
// already: the folder above "metadata" of its file.
constexpr std::string_view kSchemaByRid = R"sql(
CREATE TABLE catalog_pointer (
  rid TEXT PRIMARY KEY,
  kind INTEGER NOT NULL,
  uuid TEXT NOT NULL,
  metadata_location TEXT NOT NULL,
  location TEXT NOT NULL,
  writers INTEGER NOT NULL
);
INSERT INTO catalog_pointer (rid, kind, uuid, metadata_location, location, writers)
SELECT rid, kind, uuid, metadata_location,
       substr(rtrim(metadata_location, replace(metadata_location, '/', '')), 1,
              length(rtrim(metadata_location, replace(metadata_location, '/', ''))) - 10),
       writers
FROM catalog_object;
DROP TABLE catalog_object;
CREATE INDEX catalog_pointer_location ON catalog_pointer (location);
CREATE TABLE catalog_namespace (
  folder TEXT PRIMARY KEY,
  properties TEXT NOT NULL
);
CREATE TABLE catalog_dropped (
  rid TEXT PRIMARY KEY,
  kind INTEGER NOT NULL,
  folder TEXT NOT NULL,
  name TEXT NOT NULL,
  uuid TEXT NOT NULL,
  metadata_location TEXT NOT NULL,
  location TEXT NOT NULL,
  dropped_by TEXT NOT NULL,
  dropped BIGINT NOT NULL,
  purge INTEGER NOT NULL
);
CREATE INDEX catalog_dropped_location ON catalog_dropped (location);
CREATE INDEX catalog_dropped_purge ON catalog_dropped (purge, dropped);
)sql";

constexpr std::string_view kPointer =
    "SELECT kind, uuid, metadata_location, location, writers FROM catalog_pointer WHERE rid = ?1";

NodeType NodeTypeOf(ObjectKind kind) {
  return kind == ObjectKind::kTable ? NodeType::kTable : NodeType::kView;
}

char LowerAscii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool EqualWithoutCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return LowerAscii(x) == LowerAscii(y); });
}

Result<Rid> RidAt(const SqlRow& row, int column) {
  Result<Rid> rid = Rid::Parse(row.Text(column));
  return rid.ok() ? rid : Status::Corruption("catalog_dropped: " + rid.status().message());
}

// The pointer of a node of the tree; nothing for nodes of other kinds.
Result<std::optional<CatalogObject>> ObjectOf(SqlTransaction& sql, const Node& node) {
  std::optional<CatalogObject> found;
  if (node.type != NodeType::kTable && node.type != NodeType::kView) {
    return found;
  }
  TARN_RETURN_IF_ERROR(
      sql.Query(kPointer, {node.rid.ToString()}, [&](const SqlRow& row) -> Result<RowAction> {
        CatalogObject object{.rid = node.rid,
                             .kind = static_cast<ObjectKind>(row.Int(0)),
                             .folder = node.parent,
                             .name = node.name};
        object.uuid = row.Text(1);
        object.metadata_location = row.Text(2);
        object.location = row.Text(3);
        object.writers = static_cast<Writers>(row.Int(4));
        found = std::move(object);
        return RowAction::kStop;
      }));
  return found;
}

// ".../t" of ".../t/metadata/00000-x.metadata.json"; of other names the folder they lie in.
std::string LocationAbove(std::string_view metadata_location) {
  std::string_view folder = metadata_location.substr(0, metadata_location.rfind('/'));
  constexpr std::string_view kFolder = "/metadata";
  if (folder.ends_with(kFolder)) {
    folder.remove_suffix(kFolder.size());
  }
  return std::string(folder);
}

// Calls `visit` for the live children of a folder in order of their names until it returns false.
template <typename Visit>
Status VisitChildren(SqlTransaction& sql, const Rid& folder, const Visit& visit) {
  tree::ChildrenRequest request{.parent = folder, .page_token = {}};
  while (true) {
    TARN_ASSIGN_OR_RETURN(const tree::ChildrenPage page, tree::ListChildren(sql, request));
    for (const Node& node : page.nodes) {
      TARN_ASSIGN_OR_RETURN(const bool more, visit(node));
      if (!more) {
        return Status::Ok();
      }
    }
    if (page.next_page_token.empty()) {
      return Status::Ok();
    }
    request.page_token = page.next_page_token;
  }
}

}  // namespace

std::vector<Migration> Migrations() {
  return {{"catalog", 1, std::string(kSchema)}, {"catalog", 2, std::string(kSchemaByRid)}};
}

Result<std::optional<Node>> FindClash(SqlTransaction& sql, const Rid& folder, std::string_view name,
                                      const Rid& except) {
  TARN_ASSIGN_OR_RETURN(std::optional<Node> clash, tree::FindChild(sql, folder, name));
  if (clash && clash->rid != except) {
    return clash;
  }
  clash.reset();
  TARN_RETURN_IF_ERROR(VisitChildren(sql, folder, [&](const Node& node) -> Result<bool> {
    if (node.rid != except && EqualWithoutCase(node.name, name)) {
      clash = node;
    }
    return !clash.has_value();
  }));
  return clash;
}

Result<CatalogObject> CreateObject(SqlTransaction& sql, tree::Tree& tree,
                                   const ObjectDefinition& object) {
  TARN_ASSIGN_OR_RETURN(const std::optional<Node> clash,
                        FindClash(sql, object.folder, object.name));
  if (clash) {
    return Status::AlreadyExists(fmt::format("cannot create {} {}: the folder has the {} {}",
                                             ObjectKindName(object.kind), object.name,
                                             tree::NodeTypeName(clash->type), clash->name))
        .WithReason("ResourceNameAlreadyExists",
                    JsonObject({{"parentFolderRid", object.folder.ToString()},
                                {"displayName", object.name},
                                {"resourceName", clash->name}}));
  }
  TARN_ASSIGN_OR_RETURN(const Node node, tree.Create(sql, {.rid = {},
                                                           .parent = object.folder,
                                                           .name = object.name,
                                                           .type = NodeTypeOf(object.kind),
                                                           .description = {},
                                                           .by = object.by}));
  const std::string location =
      object.location.empty() ? LocationAbove(object.metadata_location) : object.location;
  TARN_RETURN_IF_ERROR(sql.Execute(
      "INSERT INTO catalog_pointer (rid, kind, uuid, metadata_location, location, writers) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
      {node.rid.ToString(), static_cast<int64_t>(object.kind), object.uuid,
       object.metadata_location, location, static_cast<int64_t>(object.writers)}));
  return CatalogObject{.rid = node.rid,
                       .kind = object.kind,
                       .folder = object.folder,
                       .name = object.name,
                       .uuid = object.uuid,
                       .metadata_location = object.metadata_location,
                       .writers = object.writers,
                       .location = location};
}

Result<std::optional<CatalogObject>> FindObject(SqlTransaction& sql, const Rid& rid) {
  TARN_ASSIGN_OR_RETURN(const std::optional<Node> node, tree::FindNode(sql, rid));
  return node && !node->trashed ? ObjectOf(sql, *node) : std::optional<CatalogObject>();
}

Result<std::optional<CatalogObject>> FindObject(SqlTransaction& sql, const Rid& folder,
                                                std::string_view name) {
  TARN_ASSIGN_OR_RETURN(const std::optional<Node> node, tree::FindChild(sql, folder, name));
  return node ? ObjectOf(sql, *node) : std::optional<CatalogObject>();
}

Result<ObjectPage> ListObjects(SqlTransaction& sql, const Rid& folder, ObjectKind kind,
                               std::string_view after, int64_t limit) {
  const auto size = static_cast<size_t>(std::clamp<int64_t>(limit, 1, 10'000));
  ObjectPage page;
  TARN_RETURN_IF_ERROR(VisitChildren(sql, folder, [&](const Node& node) -> Result<bool> {
    if (node.type != NodeTypeOf(kind) || node.name <= after) {
      return true;
    }
    TARN_ASSIGN_OR_RETURN(std::optional<CatalogObject> object, ObjectOf(sql, node));
    if (!object) {
      return true;
    }
    page.truncated = page.objects.size() == size;
    if (!page.truncated) {
      page.objects.push_back(*std::move(object));
    }
    return !page.truncated;
  }));
  return page;
}

Status MovePointer(SqlTransaction& sql, const PointerMove& move) {
  const std::string rid = move.rid.ToString();
  TARN_ASSIGN_OR_RETURN(
      const int64_t moved,
      move.object_location.empty()
          ? sql.Execute("UPDATE catalog_pointer SET metadata_location = ?1 WHERE rid = ?2 AND "
                        "metadata_location = ?3",
                        {move.next_location, rid, move.expected_location})
          : sql.Execute("UPDATE catalog_pointer SET metadata_location = ?1, location = ?4 "
                        "WHERE rid = ?2 AND metadata_location = ?3",
                        {move.next_location, rid, move.expected_location, move.object_location}));
  if (moved == 1) {
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(const std::optional<CatalogObject> object, FindObject(sql, move.rid));
  if (!object) {
    return Status::NotFound("Table does not exist: " + rid);
  }
  return Status::Conflict(fmt::format("{} {} moved: expected metadata {}, found {}",
                                      ObjectKindName(object->kind), object->name,
                                      move.expected_location, object->metadata_location))
      .WithReason(std::string(kPointerMoved));
}

Status DropObject(SqlTransaction& sql, const Rid& rid) {
  TARN_ASSIGN_OR_RETURN(
      const int64_t removed,
      sql.Execute("DELETE FROM catalog_pointer WHERE rid = ?1", {rid.ToString()}));
  if (removed == 0) {
    return Status::NotFound("Table does not exist: " + rid.ToString());
  }
  return Status::Ok();
}

Status DropObject(SqlTransaction& sql, tree::Tree& tree, const DroppedObject& dropped) {
  const CatalogObject& object = dropped.object;
  TARN_RETURN_IF_ERROR(DropObject(sql, object.rid));
  TARN_RETURN_IF_ERROR(tree.Trash(sql, object.rid, dropped.by));
  TARN_RETURN_IF_ERROR(tree.PermanentlyDelete(sql, object.rid));
  return StatusOf(sql.Execute(
      "INSERT INTO catalog_dropped (rid, kind, folder, name, uuid, metadata_location, "
      "location, dropped_by, dropped, purge) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
      {object.rid.ToString(), static_cast<int64_t>(object.kind), object.folder.ToString(),
       object.name, object.uuid, object.metadata_location, object.location, dropped.by,
       ToMicros(dropped.at), static_cast<int64_t>(dropped.purge ? 1 : 0)}));
}

Result<std::vector<DroppedObject>> ListPurges(SqlTransaction& sql, int64_t limit) {
  std::vector<DroppedObject> purges;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT rid, kind, folder, name, uuid, metadata_location, location, dropped_by, "
                "dropped FROM catalog_dropped WHERE purge = 1 ORDER BY dropped LIMIT ?1",
                {limit}, [&](const SqlRow& row) -> Result<RowAction> {
                  DroppedObject dropped;
                  TARN_ASSIGN_OR_RETURN(dropped.object.rid, RidAt(row, 0));
                  dropped.object.kind = static_cast<ObjectKind>(row.Int(1));
                  TARN_ASSIGN_OR_RETURN(dropped.object.folder, RidAt(row, 2));
                  dropped.object.name = row.Text(3);
                  dropped.object.uuid = row.Text(4);
                  dropped.object.metadata_location = row.Text(5);
                  dropped.object.location = row.Text(6);
                  dropped.by = row.Text(7);
                  dropped.at = FromMicros(row.Int(8));
                  dropped.purge = true;
                  purges.push_back(std::move(dropped));
                  return RowAction::kContinue;
                }));
  return purges;
}

Status ForgetDropped(SqlTransaction& sql, const Rid& rid) {
  return StatusOf(sql.Execute("DELETE FROM catalog_dropped WHERE rid = ?1", {rid.ToString()}));
}

Result<std::vector<Rid>> GetNamespacePath(SqlTransaction& sql, const Rid& project,
                                          const std::vector<std::string>& levels) {
  std::vector<Rid> folders;
  for (const std::string& level : levels) {
    TARN_ASSIGN_OR_RETURN(const std::optional<Node> child,
                          tree::FindChild(sql, folders.empty() ? project : folders.back(), level));
    if (!child || !tree::IsFolderLike(child->type)) {
      return Status::NotFound(fmt::format("Namespace does not exist: {}", fmt::join(levels, ".")));
    }
    folders.push_back(child->rid);
  }
  return folders;
}

Result<Rid> GetNamespace(SqlTransaction& sql, const Rid& project,
                         const std::vector<std::string>& levels) {
  TARN_ASSIGN_OR_RETURN(const std::vector<Rid> folders, GetNamespacePath(sql, project, levels));
  return folders.empty() ? project : folders.back();
}

}  // namespace tarn::catalog
