#include "tarn/tree/rows.h"

#include <string>

#include "tarn/tree/tree.h"

namespace tarn::tree {

namespace {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;
using metastore::SqlValue;

Result<Node> NodeOf(const SqlRow& row) {
  Node node{.name = std::string(row.Text(2)),
            .type = static_cast<NodeType>(row.Int(3)),
            .description = std::string(row.Text(4)),
            .documentation = std::string(row.Text(5)),
            .created_by = std::string(row.Text(6)),
            .created = FromMicros(row.Int(7)),
            .updated_by = std::string(row.Text(8)),
            .updated = FromMicros(row.Int(9))};
  TARN_ASSIGN_OR_RETURN(node.rid, Rid::Parse(row.Text(0)));
  if (!row.Text(1).empty()) {
    TARN_ASSIGN_OR_RETURN(node.parent, Rid::Parse(row.Text(1)));
  }
  if (!row.IsNull(10)) {
    node.trashed = FromMicros(row.Int(10));
  }
  return node;
}

SqlValue TrashedOf(const Node& node) {
  return node.trashed.has_value() ? SqlValue(ToMicros(*node.trashed)) : SqlValue();
}

}  // namespace

Result<std::vector<Node>> ReadNodes(SqlTransaction& sql, std::string_view rest,
                                    const metastore::SqlArguments& arguments) {
  std::string text =
      "SELECT rid, parent, name, type, description, documentation, created_by, created, "
      "updated_by, updated, trashed FROM tree_nodes ";
  text.append(rest);
  std::vector<Node> nodes;
  TARN_RETURN_IF_ERROR(sql.Query(text, arguments, [&](const SqlRow& row) -> Result<RowAction> {
    Result<Node> node = NodeOf(row);
    if (!node.ok()) {
      return Status::Corruption(node.status().message()).WithContext("table tree_nodes");
    }
    nodes.push_back(std::move(node).value());
    return RowAction::kContinue;
  }));
  return nodes;
}

Status InsertNode(SqlTransaction& sql, const Node& node) {
  return sql
      .Execute(
          "INSERT INTO tree_nodes (rid, parent, name, type, description, documentation, "
          "created_by, created, updated_by, updated) "
          "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
          {node.rid.ToString(), node.parent.ToString(), node.name, static_cast<int64_t>(node.type),
           node.description, node.documentation, node.created_by, ToMicros(node.created),
           node.updated_by, ToMicros(node.updated)})
      .status();
}

Status UpdateNode(SqlTransaction& sql, const Node& node) {
  return sql
      .Execute(
          "UPDATE tree_nodes SET parent = ?2, name = ?3, description = ?4, "
          "documentation = ?5, updated_by = ?6, updated = ?7, trashed = ?8 WHERE rid = ?1",
          {node.rid.ToString(), node.parent.ToString(), node.name, node.description,
           node.documentation, node.updated_by, ToMicros(node.updated), TrashedOf(node)})
      .status();
}

Result<std::vector<Node>> ReadChain(SqlTransaction& sql, const Rid& rid) {
  std::vector<Node> chain;
  Rid next = rid;
  while (!next.empty()) {
    TARN_ASSIGN_OR_RETURN(std::optional<Node> node, FindNode(sql, next));
    if (!node.has_value() && chain.empty()) {
      return chain;
    }
    if (!node.has_value() || chain.size() > static_cast<size_t>(kDepthMax)) {
      return Status::Corruption("table tree_nodes: the ancestors of " + rid.ToString() +
                                " do not end at the root: found " + next.ToString());
    }
    next = node->parent;
    chain.push_back(*std::move(node));
  }
  return chain;
}

}  // namespace tarn::tree
