// Tree: names <-> RIDs. Spaces, projects, folders and resources; move, rename, trash.
//
// Every function works in the caller's SQL transaction, so creating a dataset and naming it is one
// commit. Nothing here checks permissions: permission.h does, or the caller passes AncestorChain
// to the Authorizer. RIDs never change and are never reused; names are unique among the siblings
// that are not in the trash.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/rid.h"
#include "tarn/base/uuid.h"
#include "tarn/metastore/database.h"
#include "tarn/tree/lookup.h"
#include "tarn/tree/node.h"

namespace tarn::tree {

std::vector<metastore::Migration> Migrations();

inline constexpr int kDepthMax = 100;  // Ancestors of a node, root included.

struct CreateRequest {
  Rid rid;  // Empty: one is made. Given by rooms that own the resource.
  Rid parent;
  std::string name;
  NodeType type = NodeType::kFolder;
  std::string description;
  std::string by;  // User id.
};

/// Changes the tree. Threads: any; holds nothing but its dependencies, which must outlive it.
///
/// Errors of all: kNotFound (reason FolderNotFound or ResourceNotFound); kInvalidArgument on names
/// and wrong kinds of parent; kAlreadyExists, reason ResourceNameAlreadyExists (parameters
/// parentFolderRid, displayName, resourceName), for projects ProjectNameAlreadyExists
/// (displayName, spaceRid).
class Tree {
 public:
  Tree(UuidGenerator& ids, const Clock& clock) : ids_(ids), clock_(clock) {}

  /// Errors beside the above: kInvalidArgument, reason CreateFolderOutsideProjectNotSupported,
  /// for a folder or resource right below a space or the root; reason InvalidFolder when the
  /// parent is no folder; kFailedPrecondition when it is in the trash.
  Result<Node> Create(metastore::SqlTransaction& sql, const CreateRequest& request);
  /// The folder `name` right below `project` (or a folder), made if it is missing.
  /// Errors: kAlreadyExists when something else has the name.
  Result<Node> EnsureFolder(metastore::SqlTransaction& sql, const Rid& project,
                            std::string_view name, std::string_view by);
  /// Makes the root's space `Default` and in it the project `default`, if there is no space.
  /// Returns the project `default` of space `Default`, or an empty Rid if someone removed it.
  Result<Rid> Bootstrap(metastore::SqlTransaction& sql, std::string_view by);

  struct Place {
    Rid parent;
    std::string name;
  };
  /// Moves and renames in one step. Spaces and projects keep their parent.
  /// Errors: kInvalidArgument, reason CircularDependency, below itself; reason
  /// InvalidParentFolder for a parent of the wrong kind.
  Result<Node> Replace(metastore::SqlTransaction& sql, const Rid& rid, const Place& place,
                       std::string_view by);
  Result<Node> Rename(metastore::SqlTransaction& sql, const Rid& rid, std::string_view name,
                      std::string_view by);
  Result<Node> Move(metastore::SqlTransaction& sql, const Rid& rid, const Rid& parent,
                    std::string_view by);
  struct Texts {
    std::optional<std::string> description;  // Empty optional: stays.
    std::optional<std::string> documentation;
  };
  Result<Node> Describe(metastore::SqlTransaction& sql, const Rid& rid, const Texts& texts,
                        std::string_view by);

  /// Puts a node, and by that everything below it, into the trash; its name becomes free.
  /// Again: success. Errors: kInvalidArgument, reason TrashingSpaceNotSupported.
  Status Trash(metastore::SqlTransaction& sql, const Rid& rid, std::string_view by);
  /// Takes a node and its directly trashed ancestors out of the trash; not trashed: success.
  /// Errors: kInvalidArgument, reason ResourceNotDirectlyTrashed, when only an ancestor is
  /// trashed; kAlreadyExists when the name was taken meanwhile.
  Status Restore(metastore::SqlTransaction& sql, const Rid& rid, std::string_view by);
  /// Removes a directly trashed node, all below it and all their grants; returns the removed
  /// nodes, children before parents, so that their rooms remove what they own.
  /// Errors: kInvalidArgument, reason ResourceNotTrashed.
  Result<std::vector<Node>> PermanentlyDelete(metastore::SqlTransaction& sql, const Rid& rid);
  /// Removes an empty space. Errors: kFailedPrecondition, reason SpaceNotEmpty.
  Status DeleteSpace(metastore::SqlTransaction& sql, const Rid& rid);

 private:
  UuidGenerator& ids_;
  const Clock& clock_;
};

}  // namespace tarn::tree
