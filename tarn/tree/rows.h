// The table tree_nodes: rows <-> Node. Private to this room.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tarn/metastore/database.h"
#include "tarn/tree/node.h"

namespace tarn::tree {

/// Nodes for which `rest`, what follows FROM tree_nodes, holds.
Result<std::vector<Node>> ReadNodes(metastore::SqlTransaction& sql, std::string_view rest,
                                    const metastore::SqlArguments& arguments);
/// Errors: kAlreadyExists when the rid or the name is taken.
Status InsertNode(metastore::SqlTransaction& sql, const Node& node);
/// Writes parent, name, texts, updated and trashed. Errors: kAlreadyExists for the name.
Status UpdateNode(metastore::SqlTransaction& sql, const Node& node);
/// The node and its ancestors, the root last; empty when there is no such node.
/// Errors: kCorruption when the ancestors do not end at the root.
Result<std::vector<Node>> ReadChain(metastore::SqlTransaction& sql, const Rid& rid);

}  // namespace tarn::tree
