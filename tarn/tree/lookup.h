// Reading the tree: nodes by RID, by path, and the children of a folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/rid.h"
#include "tarn/metastore/database.h"
#include "tarn/tree/node.h"

namespace tarn::tree {

/// Nothing, when no such node was ever made or it is gone; trashed ones are found.
Result<std::optional<Node>> FindNode(metastore::SqlTransaction& sql, const Rid& rid);
/// Errors: kNotFound, the same as access::ResourceNotFound(rid).
Result<Node> GetNode(metastore::SqlTransaction& sql, const Rid& rid);
/// The same with path, project, space and trash status. Cost: one look-up per ancestor.
Result<LocatedNode> LocateNode(metastore::SqlTransaction& sql, const Rid& rid);

/// The node, its parent … and the root last; empty when there is no such node.
Result<std::vector<Rid>> AncestorChain(metastore::SqlTransaction& sql, const Rid& rid);

/// The child `name` of `parent` that is not in the trash.
Result<std::optional<Node>> FindChild(metastore::SqlTransaction& sql, const Rid& parent,
                                      std::string_view name);
/// "/Space/project/folder/name", leading slash optional; only what is not in the trash.
/// Errors: kInvalidArgument (reason InvalidPath) on empty segments; kNotFound (PathNotFound).
Result<Node> GetByPath(metastore::SqlTransaction& sql, std::string_view path);

enum class Trashed : uint8_t { kLeaveOut, kInclude };

struct ChildrenRequest {
  Rid parent;
  int64_t page_size = 2000;  // From 1; more than 2000 counts as 2000.
  std::string page_token;    // Empty = first page; from ChildrenPage, opaque.
  Trashed trashed = Trashed::kLeaveOut;
};

struct ChildrenPage {
  std::vector<Node> nodes;      // By bytes of their names.
  std::string next_page_token;  // Empty on the last page.
};

/// Pages stay right while others create and remove: a node that is there all the time is listed
/// once. Errors: kNotFound (FolderNotFound); kInvalidArgument (reasons InvalidFolder,
/// InvalidPageSize, InvalidPageToken).
Result<ChildrenPage> ListChildren(metastore::SqlTransaction& sql, const ChildrenRequest& request);

}  // namespace tarn::tree
