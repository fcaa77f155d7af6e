#include "tarn/catalog/namespace.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/catalog/pointer_store.h"

namespace tarn::catalog {

namespace {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;
using nlohmann::json;

Status WriteProperties(SqlTransaction& sql, const Rid& folder,
                       const NamespaceProperties& properties) {
  TARN_RETURN_IF_ERROR(
      sql.Execute("DELETE FROM catalog_namespace WHERE folder = ?1", {folder.ToString()}));
  if (properties.empty()) {
    return Status::Ok();
  }
  return StatusOf(sql.Execute(
      "INSERT INTO catalog_namespace (folder, properties) VALUES (?1, ?2)",
      {folder.ToString(), json(properties).dump(-1, ' ', false, json::error_handler_t::replace)}));
}

}  // namespace

Result<Rid> CreateNamespace(SqlTransaction& sql, tree::Tree& tree,
                            const NamespaceDefinition& definition) {
  TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> clash,
                        FindClash(sql, definition.parent, definition.name));
  if (clash) {
    return Status::AlreadyExists(
        fmt::format("the folder has the {} {}", tree::NodeTypeName(clash->type), clash->name));
  }
  TARN_ASSIGN_OR_RETURN(const tree::Node node, tree.Create(sql, {.rid = {},
                                                                 .parent = definition.parent,
                                                                 .name = definition.name,
                                                                 .type = tree::NodeType::kFolder,
                                                                 .description = {},
                                                                 .by = definition.by}));
  TARN_RETURN_IF_ERROR(WriteProperties(sql, node.rid, definition.properties));
  return node.rid;
}

Result<NamespaceProperties> ReadProperties(SqlTransaction& sql, const Rid& folder) {
  NamespaceProperties properties;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT properties FROM catalog_namespace WHERE folder = ?1", {folder.ToString()},
                [&](const SqlRow& row) -> Result<RowAction> {
                  const json stored = json::parse(row.Text(0), nullptr, false);
                  if (!stored.is_object()) {
                    return Status::Corruption("catalog_namespace: the properties of " +
                                              folder.ToString() + " are no JSON object");
                  }
                  for (const auto& [key, value] : stored.items()) {
                    properties[key] = value.is_string() ? value.get<std::string>() : value.dump();
                  }
                  return RowAction::kStop;
                }));
  return properties;
}

Result<PropertyReport> ChangeProperties(SqlTransaction& sql, const Rid& folder,
                                        const PropertyChange& change) {
  TARN_ASSIGN_OR_RETURN(NamespaceProperties properties, ReadProperties(sql, folder));
  PropertyReport report;
  for (const std::string& key : change.removals) {
    if (change.updates.contains(key)) {
      return Status::InvalidArgument("Cannot remove and update the same key: " + key);
    }
    (properties.erase(key) > 0 ? report.removed : report.missing).push_back(key);
  }
  for (const auto& [key, value] : change.updates) {
    properties[key] = value;
    report.updated.push_back(key);
  }
  TARN_RETURN_IF_ERROR(WriteProperties(sql, folder, properties));
  return report;
}

Status DropNamespace(SqlTransaction& sql, tree::Tree& tree, const Rid& folder,
                     const std::string& by) {
  TARN_ASSIGN_OR_RETURN(
      const tree::ChildrenPage page,
      tree::ListChildren(sql, {.parent = folder, .page_size = 1, .page_token = {}}));
  if (!page.nodes.empty()) {
    const tree::Node& child = page.nodes.front();
    return Status::FailedPrecondition(fmt::format("it is not empty: it holds the {} {}",
                                                  tree::NodeTypeName(child.type), child.name));
  }
  TARN_RETURN_IF_ERROR(tree.Trash(sql, folder, by));
  TARN_ASSIGN_OR_RETURN(const tree::ChildrenPage trashed,
                        tree::ListChildren(sql, {.parent = folder,
                                                 .page_size = 1,
                                                 .page_token = {},
                                                 .trashed = tree::Trashed::kInclude}));
  if (!trashed.nodes.empty()) {
    return Status::Ok();
  }
  TARN_RETURN_IF_ERROR(tree.PermanentlyDelete(sql, folder));
  return WriteProperties(sql, folder, {});
}

}  // namespace tarn::catalog
