#include "tarn/task/target_removal.h"

#include <optional>

#include <fmt/format.h>

#include "tarn/lakehouse/table_making.h"
#include "tarn/tree/tree.h"

namespace tarn::task {

Status RemoveTarget(metastore::SqlTransaction& sql, catalog::Catalog& catalog, const Rid& project,
                    const lakehouse::TableSpec& table, const std::string& by) {
  const auto find = [&](const std::string& folder,
                        const std::string& name) -> Result<std::optional<catalog::CatalogObject>> {
    TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> node,
                          tree::FindChild(sql, project, folder));
    return node ? catalog::FindObject(sql, node->rid, name)
                : Result<std::optional<catalog::CatalogObject>>(std::nullopt);
  };
  TARN_ASSIGN_OR_RETURN(const std::optional<catalog::CatalogObject> internal,
                        find(table.internal_schema, table.internal_name()));
  if (!internal) {
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(const catalog::TableMetadataPtr metadata,
                        catalog.ReadTable(internal->metadata_location));
  const auto owner = metadata->properties.find("tarn.owner");
  if (owner == metadata->properties.end() || owner->second != table.owner) {
    return Status::AlreadyExists(fmt::format(
        "table {}.{} belongs to {}, not to task {}", table.internal_schema, table.internal_name(),
        owner == metadata->properties.end() ? "no task of a pipeline" : "task " + owner->second,
        table.owner));
  }
  const auto drop = [&, at = catalog.deps().clock.Now()](const catalog::CatalogObject& object) {
    return catalog::DropObject(sql, catalog.deps().tree,
                               {.object = object, .by = by, .at = at, .purge = true});
  };
  TARN_RETURN_IF_ERROR(drop(*internal));
  // The views are where the table was made to have them, which may not be what the file says now.
  const auto made = [&](std::string_view property, const std::string& otherwise) {
    const auto found = metadata->properties.find(std::string(property));
    return found == metadata->properties.end() ? otherwise : found->second;
  };
  const std::string schema = made(lakehouse::kSchemaProperty, table.external_schema);
  const std::string history =
      table.name + made(lakehouse::kHistorySuffixProperty, table.history_suffix);
  for (const std::string& name : {table.name, history, table.applied_name()}) {
    TARN_ASSIGN_OR_RETURN(const std::optional<catalog::CatalogObject> object, find(schema, name));
    if (object && object->writers == catalog::Writers::kProduct) {
      TARN_RETURN_IF_ERROR(drop(*object));
    }
  }
  return Status::Ok();
}

}  // namespace tarn::task
