#include "tarn/query/json_relation.h"

#include <arrow/api.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/engine/quoting.h"
#include "tarn/engine/sql_type.h"

namespace tarn::query {

namespace {

constexpr int64_t kDocumentBytesMax = 64LL << 20;

}  // namespace

Result<bool> IsJson(const dataset::DatasetSchema& schema) {
  if (!schema.reader_class.ends_with("DataSourceDataFrameReader")) {
    return false;
  }
  const nlohmann::json metadata =
      nlohmann::json::parse(schema.custom_metadata_json, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json format =
      metadata.is_object() ? metadata.value("format", nlohmann::json()) : nlohmann::json();
  if (format != "json") {
    return Status::Unimplemented(fmt::format(
        "the schema asks for a reader of the format {}: json is offered", format.dump()));
  }
  return true;
}

Result<std::string> BuildJsonScan(const std::vector<format::Field>& fields,
                                  const std::vector<std::string>& uris) {
  std::vector<std::string> selected;
  std::vector<std::string> columns;
  const std::shared_ptr<arrow::Schema> schema = format::ToArrowSchema(fields);
  for (const std::shared_ptr<arrow::Field>& field : schema->fields()) {
    TARN_ASSIGN_OR_RETURN(const std::string type, engine::SqlTypeOf(*field->type()));
    const std::string name = engine::QuoteName(field->name());
    selected.push_back(uris.empty() ? fmt::format("CAST(NULL AS {}) AS {}", type, name) : name);
    columns.push_back(engine::QuoteText(field->name()) + ": " + engine::QuoteText(type));
  }
  const std::string select = fmt::format("SELECT {} ", fmt::join(selected, ", "));
  if (uris.empty()) {
    return select + "WHERE false";
  }
  return fmt::format(
      "{}FROM read_json({}, format = 'auto', records = true, columns = {{{}}}, "
      "maximum_object_size = {}, ignore_errors = false)",
      select, engine::QuoteTextList(uris), fmt::join(columns, ", "), kDocumentBytesMax);
}

}  // namespace tarn::query
