#include "tarn/tree/tree.h"

#include <algorithm>
#include <utility>

#include "tarn/access/authorizer.h"
#include "tarn/access/grant.h"
#include "tarn/base/json_text.h"
#include "tarn/tree/labels.h"
#include "tarn/tree/rows.h"

namespace tarn::tree {

namespace {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

constexpr std::string_view kFirstSpace = "Default";
constexpr std::string_view kFirstProject = "default";

Status FolderNotFound(const Rid& rid) {
  return Status::NotFound("no folder " + rid.ToString())
      .WithReason("FolderNotFound", JsonObject({{"folderRid", rid.ToString()}}));
}

Status NameTaken(const Node& node) {
  const Status taken =
      Status::AlreadyExists(std::string(NodeTypeName(node.type)) + " " + JsonString(node.name) +
                            ": its name is taken in " + node.parent.ToString());
  if (node.type == NodeType::kProject) {
    return taken.WithReason(
        "ProjectNameAlreadyExists",
        JsonObject({{"displayName", node.name}, {"spaceRid", node.parent.ToString()}}));
  }
  return taken.WithReason("ResourceNameAlreadyExists",
                          JsonObject({{"parentFolderRid", node.parent.ToString()},
                                      {"displayName", node.name},
                                      {"resourceName", node.name}}));
}

Status Invalid(std::string message, std::string reason, std::string_view parameter,
               const Rid& rid) {
  return Status::InvalidArgument(std::move(message))
      .WithReason(std::move(reason), JsonObject({{parameter, rid.ToString()}}));
}

bool MayHold(NodeType parent, NodeType child) {
  switch (child) {
    case NodeType::kRoot:
      return false;
    case NodeType::kSpace:
      return parent == NodeType::kRoot;
    case NodeType::kProject:
      return parent == NodeType::kSpace;
    default:
      return parent == NodeType::kProject || parent == NodeType::kFolder;
  }
}

// Why a node of `type` cannot be created below `parent`.
Status CheckNewParent(const Node& parent, NodeType type) {
  if (MayHold(parent.type, type)) {
    return {};
  }
  const std::string message = "a " + std::string(NodeTypeName(type)) + " cannot be in the " +
                              std::string(NodeTypeName(parent.type)) + " " + parent.rid.ToString();
  switch (type) {
    case NodeType::kRoot:
    case NodeType::kSpace:
      return Status::InvalidArgument(message).WithReason("SpaceInvalidArgument");
    case NodeType::kProject:
      return Invalid(message, "ProjectCreationNotSupported", "spaceRid", parent.rid);
    default:
      break;
  }
  return IsFolderLike(parent.type)
             ? Invalid(message + "; it needs a project", "CreateFolderOutsideProjectNotSupported",
                       "parentFolderRid", parent.rid)
             : Invalid(message, "InvalidFolder", "resourceRid", parent.rid);
}

Status CheckNotTrashed(const std::vector<Node>& chain) {
  for (const Node& node : chain) {
    if (node.trashed.has_value()) {
      return Status::FailedPrecondition(std::string(NodeTypeName(node.type)) + " " +
                                        node.rid.ToString() + " is in the trash; restore it first");
    }
  }
  return {};
}

// Levels of the subtree of `rid`, counting resources in its deepest folder.
Result<int64_t> HeightOf(SqlTransaction& sql, const Node& node) {
  if (!IsFolderLike(node.type)) {
    return 1;
  }
  int64_t height = 0;
  TARN_RETURN_IF_ERROR(
      sql.Query("WITH RECURSIVE below (rid, depth) AS (SELECT rid, 2 FROM "
                "tree_nodes WHERE rid = ?1 UNION ALL "
                "SELECT n.rid, b.depth + 1 FROM tree_nodes n JOIN below b ON n.parent = b.rid "
                "WHERE n.type <= 3) SELECT max(depth) FROM below",
                {node.rid.ToString()}, [&](const SqlRow& row) {
                  height = row.Int(0);
                  return Result<RowAction>(RowAction::kStop);
                }));
  return height;
}

Status CheckDepth(size_t ancestors, int64_t height) {
  const int64_t depth = static_cast<int64_t>(ancestors) + height;
  if (depth > kDepthMax) {
    return Status::InvalidArgument("the tree would be " + std::to_string(depth) +
                                   " levels deep, at most " + std::to_string(kDepthMax) +
                                   " are allowed");
  }
  return {};
}

Status CheckNameFree(SqlTransaction& sql, const Node& node) {
  TARN_ASSIGN_OR_RETURN(const std::optional<Node> holder, FindChild(sql, node.parent, node.name));
  return holder.has_value() && holder->rid != node.rid ? NameTaken(node) : Status();
}

// The check before gives the good message; the index decides between servers.
Status StoreChange(SqlTransaction& sql, const Node& node) {
  if (!node.trashed.has_value()) {
    TARN_RETURN_IF_ERROR(CheckNameFree(sql, node));
  }
  Status updated = UpdateNode(sql, node);
  return updated.code() == ErrorCode::kAlreadyExists ? NameTaken(node) : updated;
}

}  // namespace

std::vector<metastore::Migration> Migrations() {
  return {{.room = "tree", .version = 1, .sql = R"(
CREATE TABLE tree_nodes (
  rid TEXT NOT NULL PRIMARY KEY,
  parent TEXT NOT NULL,
  name TEXT NOT NULL,
  type INTEGER NOT NULL,
  description TEXT NOT NULL,
  documentation TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created BIGINT NOT NULL,
  updated_by TEXT NOT NULL,
  updated BIGINT NOT NULL,
  trashed BIGINT
);
CREATE UNIQUE INDEX tree_nodes_names ON tree_nodes (parent, name) WHERE trashed IS NULL;
CREATE INDEX tree_nodes_children ON tree_nodes (parent, name, rid);
INSERT INTO tree_nodes (rid, parent, name, type, description, documentation, created_by, created,
                        updated_by, updated)
VALUES ('ri.compass.main.folder.0', '', '', 0, '', '', '', 0, '', 0);
)"},
          {.room = "tree", .version = 2, .sql = R"(
CREATE TABLE tree_labels (
  rid TEXT NOT NULL,
  kind TEXT NOT NULL,
  label TEXT NOT NULL,
  PRIMARY KEY (rid, kind, label)
);
CREATE TABLE tree_references (
  project TEXT NOT NULL,
  resource TEXT NOT NULL,
  name TEXT NOT NULL,
  external INTEGER NOT NULL,
  imported_by TEXT NOT NULL,
  imported BIGINT NOT NULL,
  PRIMARY KEY (project, resource)
);
CREATE TABLE tree_settings (
  rid TEXT NOT NULL PRIMARY KEY,
  settings TEXT NOT NULL
);
CREATE TABLE tree_looks (
  user_id TEXT NOT NULL,
  rid TEXT NOT NULL,
  time BIGINT NOT NULL,
  PRIMARY KEY (user_id, rid)
);
)"}};
}

Result<Node> Tree::Create(SqlTransaction& sql, const CreateRequest& request) {
  TARN_RETURN_IF_ERROR(CheckDisplayName(request.name));
  TARN_ASSIGN_OR_RETURN(const std::vector<Node> chain, ReadChain(sql, request.parent));
  if (chain.empty()) {
    return FolderNotFound(request.parent);
  }
  TARN_RETURN_IF_ERROR(CheckNewParent(chain.front(), request.type));
  TARN_RETURN_IF_ERROR(CheckNotTrashed(chain));
  TARN_RETURN_IF_ERROR(CheckDepth(chain.size(), 1));
  const Timestamp now = clock_.Now();
  Node node{.rid = request.rid.empty() ? NewRid(request.type, ids_) : request.rid,
            .parent = request.parent,
            .name = request.name,
            .type = request.type,
            .description = request.description,
            .created_by = request.by,
            .created = now,
            .updated_by = request.by,
            .updated = now};
  TARN_RETURN_IF_ERROR(CheckNameFree(sql, node));
  TARN_ASSIGN_OR_RETURN(const std::optional<Node> same, FindNode(sql, node.rid));
  if (same.has_value()) {
    return Status::AlreadyExists("resource " + node.rid.ToString() + " exists already");
  }
  const Status inserted = InsertNode(sql, node);
  if (inserted.code() == ErrorCode::kAlreadyExists) {
    return NameTaken(node);
  }
  TARN_RETURN_IF_ERROR(inserted);
  return node;
}

Result<Node> Tree::EnsureFolder(SqlTransaction& sql, const Rid& project, std::string_view name,
                                std::string_view by) {
  TARN_ASSIGN_OR_RETURN(std::optional<Node> found, FindChild(sql, project, name));
  if (!found.has_value()) {
    return Create(sql, {.parent = project,
                        .name = std::string(name),
                        .type = NodeType::kFolder,
                        .by = std::string(by)});
  }
  if (found->type != NodeType::kFolder) {
    return NameTaken({.parent = project, .name = std::string(name)})
        .WithContext("a " + std::string(NodeTypeName(found->type)) + " is there");
  }
  return *std::move(found);
}

Result<Rid> Tree::Bootstrap(SqlTransaction& sql, std::string_view by) {
  TARN_ASSIGN_OR_RETURN(const std::vector<Node> spaces,
                        ReadNodes(sql, "WHERE parent = ?1 LIMIT 1", {RootRid().ToString()}));
  if (spaces.empty()) {
    TARN_ASSIGN_OR_RETURN(const Node space, Create(sql, {.parent = RootRid(),
                                                         .name = std::string(kFirstSpace),
                                                         .type = NodeType::kSpace,
                                                         .by = std::string(by)}));
    TARN_ASSIGN_OR_RETURN(const Node project, Create(sql, {.parent = space.rid,
                                                           .name = std::string(kFirstProject),
                                                           .type = NodeType::kProject,
                                                           .by = std::string(by)}));
    return project.rid;
  }
  TARN_ASSIGN_OR_RETURN(const std::optional<Node> space, FindChild(sql, RootRid(), kFirstSpace));
  if (!space.has_value()) {
    return Rid();
  }
  TARN_ASSIGN_OR_RETURN(const std::optional<Node> project,
                        FindChild(sql, space->rid, kFirstProject));
  return project.has_value() ? project->rid : Rid();
}

Result<Node> Tree::Replace(SqlTransaction& sql, const Rid& rid, const Place& place,
                           std::string_view by) {
  TARN_RETURN_IF_ERROR(CheckDisplayName(place.name));
  TARN_ASSIGN_OR_RETURN(const std::vector<Node> chain, ReadChain(sql, rid));
  if (chain.empty() || chain.front().type == NodeType::kRoot) {
    return access::ResourceNotFound(rid);
  }
  TARN_RETURN_IF_ERROR(CheckNotTrashed(chain));
  Node node = chain.front();
  if (place.parent != node.parent) {
    TARN_ASSIGN_OR_RETURN(const std::vector<Node> target, ReadChain(sql, place.parent));
    if (target.empty()) {
      return FolderNotFound(place.parent);
    }
    if (node.type <= NodeType::kProject || !MayHold(target.front().type, node.type)) {
      return Invalid("a " + std::string(NodeTypeName(node.type)) + " cannot be moved to " +
                         std::string(NodeTypeName(target.front().type)) + " " +
                         place.parent.ToString(),
                     "InvalidParentFolder", "parentFolderRid", place.parent);
    }
    if (std::any_of(target.begin(), target.end(),
                    [&](const Node& ancestor) { return ancestor.rid == rid; })) {
      return Status::InvalidArgument("folder " + rid.ToString() + " cannot be moved below itself")
          .WithReason("CircularDependency");
    }
    TARN_RETURN_IF_ERROR(CheckNotTrashed(target));
    TARN_ASSIGN_OR_RETURN(const int64_t height, HeightOf(sql, node));
    TARN_RETURN_IF_ERROR(CheckDepth(target.size(), height));
  }
  node.parent = place.parent;
  node.name = place.name;
  node.updated = clock_.Now();
  node.updated_by = by;
  TARN_RETURN_IF_ERROR(StoreChange(sql, node));
  return node;
}

Result<Node> Tree::Rename(SqlTransaction& sql, const Rid& rid, std::string_view name,
                          std::string_view by) {
  TARN_ASSIGN_OR_RETURN(const Node node, GetNode(sql, rid));
  return Replace(sql, rid, {.parent = node.parent, .name = std::string(name)}, by);
}

Result<Node> Tree::Move(SqlTransaction& sql, const Rid& rid, const Rid& parent,
                        std::string_view by) {
  TARN_ASSIGN_OR_RETURN(const Node node, GetNode(sql, rid));
  return Replace(sql, rid, {.parent = parent, .name = node.name}, by);
}

Result<Node> Tree::Describe(SqlTransaction& sql, const Rid& rid, const Texts& texts,
                            std::string_view by) {
  TARN_ASSIGN_OR_RETURN(Node node, GetNode(sql, rid));
  if (node.type == NodeType::kRoot) {
    return access::ResourceNotFound(rid);
  }
  node.description = texts.description.value_or(node.description);
  node.documentation = texts.documentation.value_or(node.documentation);
  node.updated = clock_.Now();
  node.updated_by = by;
  TARN_RETURN_IF_ERROR(UpdateNode(sql, node));
  return node;
}

Status Tree::Trash(SqlTransaction& sql, const Rid& rid, std::string_view by) {
  TARN_ASSIGN_OR_RETURN(Node node, GetNode(sql, rid));
  if (node.type <= NodeType::kSpace) {
    return Invalid("a " + std::string(NodeTypeName(node.type)) + " cannot be put into the trash",
                   "TrashingSpaceNotSupported", "resourceRid", rid);
  }
  if (node.trashed.has_value()) {
    return {};
  }
  node.trashed = clock_.Now();
  node.updated = *node.trashed;
  node.updated_by = by;
  return StoreChange(sql, node);
}

Status Tree::Restore(SqlTransaction& sql, const Rid& rid, std::string_view by) {
  TARN_ASSIGN_OR_RETURN(const std::vector<Node> chain, ReadChain(sql, rid));
  if (chain.empty()) {
    return access::ResourceNotFound(rid);
  }
  if (!chain.front().trashed.has_value()) {
    if (CheckNotTrashed(chain).ok()) {
      return {};
    }
    return Invalid(rid.ToString() +
                       " is in the trash only through a folder above it; restore "
                       "that one",
                   "ResourceNotDirectlyTrashed", "resourceRid", rid);
  }
  for (Node node : chain) {
    if (node.trashed.has_value()) {
      node.trashed.reset();
      node.updated = clock_.Now();
      node.updated_by = by;
      TARN_RETURN_IF_ERROR(StoreChange(sql, node));
    }
  }
  return {};
}

Result<std::vector<Node>> Tree::PermanentlyDelete(SqlTransaction& sql, const Rid& rid) {
  TARN_ASSIGN_OR_RETURN(const Node node, GetNode(sql, rid));
  if (!node.trashed.has_value()) {
    return Invalid(rid.ToString() + " is not in the trash itself; put it there first",
                   "ResourceNotTrashed", "resourceRid", rid);
  }
  // Breadth first, then turned round: children come before their parents.
  std::vector<Node> nodes = {node};
  for (size_t next = 0; next < nodes.size(); ++next) {
    TARN_ASSIGN_OR_RETURN(std::vector<Node> children,
                          ReadNodes(sql, "WHERE parent = ?1", {nodes[next].rid.ToString()}));
    std::move(children.begin(), children.end(), std::back_inserter(nodes));
  }
  std::reverse(nodes.begin(), nodes.end());
  for (const Node& gone : nodes) {
    TARN_RETURN_IF_ERROR(
        sql.Execute("DELETE FROM tree_nodes WHERE rid = ?1", {gone.rid.ToString()}));
    TARN_RETURN_IF_ERROR(access::RemoveGrantsOn(sql, gone.rid));
    TARN_RETURN_IF_ERROR(RemoveLabelsOf(sql, gone.rid));
  }
  return nodes;
}

Status Tree::DeleteSpace(SqlTransaction& sql, const Rid& rid) {
  TARN_ASSIGN_OR_RETURN(const std::optional<Node> space, FindNode(sql, rid));
  if (!space.has_value() || space->type != NodeType::kSpace) {
    return Status::NotFound("no space " + rid.ToString())
        .WithReason("SpaceNotFound", JsonObject({{"spaceRid", rid.ToString()}}));
  }
  TARN_ASSIGN_OR_RETURN(const std::vector<Node> children,
                        ReadNodes(sql, "WHERE parent = ?1 LIMIT 1", {rid.ToString()}));
  if (!children.empty()) {
    return Status::FailedPrecondition("space " + rid.ToString() + " still has " +
                                      std::string(NodeTypeName(children.front().type)) + " " +
                                      JsonString(children.front().name) + " (perhaps in the trash)")
        .WithReason("SpaceNotEmpty", JsonObject({{"spaceRid", rid.ToString()}}));
  }
  TARN_RETURN_IF_ERROR(sql.Execute("DELETE FROM tree_nodes WHERE rid = ?1", {rid.ToString()}));
  TARN_RETURN_IF_ERROR(RemoveLabelsOf(sql, rid));
  return access::RemoveGrantsOn(sql, rid);
}

}  // namespace tarn::tree
