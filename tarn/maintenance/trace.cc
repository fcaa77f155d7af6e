#include "tarn/maintenance/trace.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "tarn/engine/quoting.h"
#include "tarn/lakehouse/internal_schema.h"
#include "tarn/lakehouse/scan/sql_type.h"

namespace tarn::maintenance {

namespace {

using nlohmann::json;

// The parts of a key as text, or nothing for NULL: a JSON array for several columns, else the value
// itself.
Result<std::vector<std::optional<std::string>>> KeyParts(const std::string& text, size_t count) {
  if (count == 1) {
    return std::vector<std::optional<std::string>>{text};
  }
  const json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_array() || parsed.size() != count) {
    return Status::InvalidArgument(
        fmt::format("the key has {} columns: give a JSON array of {} values", count, count));
  }
  std::vector<std::optional<std::string>> parts;
  for (const json& part : parsed) {
    if (part.is_null()) {
      parts.emplace_back();
    } else {
      parts.emplace_back(part.is_string() ? part.get<std::string>() : part.dump());
    }
  }
  return parts;
}

}  // namespace

Result<std::string> TraceSql(const catalog::CatalogObject& table,
                             const iceberg::TableMetadata& metadata, const std::string& key) {
  const auto property = metadata.properties.find("tarn.key");
  if (table.writers != catalog::Writers::kProduct || property == metadata.properties.end() ||
      property->second.empty()) {
    return Status::InvalidArgument(fmt::format(
        "{} keeps no changes by key: only tables that a pipeline merges into do", table.name));
  }
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= property->second.size();) {
    const size_t end = std::min(property->second.find('\x1f', begin), property->second.size());
    names.push_back(property->second.substr(begin, end - begin));
    begin = end + 1;
  }
  TARN_ASSIGN_OR_RETURN(const std::vector<std::optional<std::string>> parts,
                        KeyParts(key, names.size()));
  const iceberg::Schema users = lakehouse::UserSchema(metadata.CurrentSchema());
  std::vector<std::string> conditions;
  for (size_t i = 0; i < names.size(); ++i) {
    const iceberg::SchemaField* column = lakehouse::FindColumn(users.fields, names[i]);
    if (column == nullptr) {
      return Status::Corruption(
          fmt::format("{} has no column {}, which is part of its key", table.name, names[i]));
    }
    TARN_ASSIGN_OR_RETURN(const std::string type, lakehouse::SqlTypeOf(column->type));
    const std::string name = engine::QuoteName(column->name);
    conditions.push_back(
        parts[i] ? fmt::format("{} = CAST({} AS {})", name, engine::QuoteText(*parts[i]), type)
                 : name + " IS NULL");
  }
  std::vector<std::string> columns;
  for (const std::string& name : lakehouse::UserColumnNames(metadata.CurrentSchema())) {
    columns.push_back(engine::QuoteText(name) + ": " + engine::QuoteName(name));
  }
  return fmt::format(
      "SELECT hdr__change_identifier AS change_identifier, hdr__operation AS operation, "
      "coalesce(hdr__from_timestamp, hdr__timestamp) AS \"from\", hdr__to_timestamp AS \"to\", "
      "hdr__partition AS store, _snapshot_id AS snapshot_id, {{{}}} AS \"row\" FROM {} WHERE "
      "hdr__partition IN ('Changes', 'Current', 'Prior') AND {} ORDER BY 1 NULLS FIRST, 3, 4 NULLS "
      "LAST",
      fmt::join(columns, ", "), engine::QuoteName(table.rid.ToString() + "$rows"),
      fmt::join(conditions, " AND "));
}

}  // namespace tarn::maintenance
