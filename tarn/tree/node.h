// Node: one named place of the tree: root > spaces > projects > folders and resources.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tarn/base/clock.h"
#include "tarn/base/rid.h"
#include "tarn/base/uuid.h"

namespace tarn::tree {

/// The numbers are stored.
enum class NodeType : uint8_t {
  kRoot = 0,
  kSpace = 1,    // Below the root.
  kProject = 2,  // Below a space.
  kFolder = 3,   // Below a project or folder, like everything that follows.
  kDataset = 4,
  kTable = 5,
  kView = 6,
  kPipeline = 7,
};

/// "dataset".
std::string_view NodeTypeName(NodeType type);
/// True for root, space, project and folder.
bool IsFolderLike(NodeType type);

/// "ri.compass.main.folder.0": ancestor of everything.
const Rid& RootRid();
/// A new identifier: "ri.compass.main.folder.<uuid>" for spaces, projects and folders,
/// "ri.foundry.main.<type>.<uuid>" for resources.
Rid NewRid(NodeType type, UuidGenerator& ids);

enum class TrashStatus : uint8_t { kNotTrashed, kDirectlyTrashed, kAncestorTrashed };

/// What is stored of a node. Value.
struct Node {
  Rid rid;
  Rid parent;  // Empty for the root.
  std::string name;
  NodeType type = NodeType::kFolder;
  std::string description;
  std::string documentation;
  std::string created_by;  // User id.
  Timestamp created{};
  std::string updated_by;
  Timestamp updated{};
  std::optional<Timestamp> trashed;  // When it was put into the trash itself.
  friend bool operator==(const Node&, const Node&) = default;
};

/// A node with what follows from its ancestors. Value.
struct LocatedNode {
  Node node;
  std::string path;  // "/Space/project/folder/name"; "/" for the root.
  Rid space;         // Itself for a space; empty for the root.
  Rid project;       // Itself for a project; empty above.
  TrashStatus trash_status = TrashStatus::kNotTrashed;
  friend bool operator==(const LocatedNode&, const LocatedNode&) = default;
};

/// 1..700 characters of UTF-8 without '/' and NUL, not "." or "..".
/// Errors: kInvalidArgument (reasons MissingDisplayName, InvalidDisplayName).
Status CheckDisplayName(std::string_view name);

}  // namespace tarn::tree
