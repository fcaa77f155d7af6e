#include "tarn/query/text_relation.h"

#include <arrow/api.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/engine/quoting.h"
#include "tarn/engine/sql_type.h"

namespace tarn::query {

namespace {

using nlohmann::json;

constexpr std::string_view kTextReader = "TextDataFrameReader";

Status Wrong(std::string_view member, std::string_view what) {
  return Status::InvalidArgument(fmt::format("textParserParams: {} {}", member, what));
}

Result<std::string> TextIn(const json& params, const char* member, std::string otherwise) {
  const auto found = params.find(member);
  if (found == params.end() || found->is_null()) {
    return otherwise;
  }
  if (!found->is_string()) {
    return Wrong(member, "must be a text");
  }
  return found->get<std::string>();
}

// One of two words, the second of which means true.
Result<bool> ChoiceIn(const json& params, const char* member, const char* second) {
  TARN_ASSIGN_OR_RETURN(const std::string text, TextIn(params, member, "THROW_EXCEPTION"));
  if (text != "THROW_EXCEPTION" && text != second) {
    return Wrong(member, fmt::format("must be THROW_EXCEPTION or {}", second));
  }
  return text == second;
}

Status RefuseExtraColumns(const json& params) {
  for (const char* member : {"addFilePath", "addByteOffset", "addImportedAt", "addRowNumber"}) {
    const auto found = params.find(member);
    if (found != params.end() && found->is_boolean() && found->get<bool>()) {
      return Status::Unimplemented(
          fmt::format("textParserParams: {} is not offered when rows are read", member));
    }
  }
  return Status::Ok();
}

Result<TextOptions> OptionsIn(const json& params) {
  TextOptions options;
  TARN_RETURN_IF_ERROR(RefuseExtraColumns(params));
  TARN_ASSIGN_OR_RETURN(const std::string parser, TextIn(params, "parser", "CSV_PARSER"));
  if (parser != "CSV_PARSER" && parser != "MULTILINE_CSV_PARSER" && parser != "SIMPLE_PARSER") {
    return Status::Unimplemented(
        fmt::format("textParserParams: parser {} is not offered when rows are read", parser));
  }
  TARN_ASSIGN_OR_RETURN(options.delimiter, TextIn(params, "fieldDelimiter", ","));
  TARN_ASSIGN_OR_RETURN(options.quote, TextIn(params, "quoteCharacter", "\""));
  if (options.delimiter.size() != 1 || options.quote.size() > 1) {
    return Wrong("fieldDelimiter, quoteCharacter", "must be one character");
  }
  if (parser == "SIMPLE_PARSER") {
    options.quote.clear();
  }
  const auto skip = params.find("skipLines");
  options.skip_lines = 0;
  if (skip != params.end() && !skip->is_null()) {
    if (!skip->is_number_integer() || skip->get<int64_t>() < 0) {
      return Wrong("skipLines", "must be a number from 0");
    }
    options.skip_lines = skip->get<int64_t>();
  }
  const auto nulls = params.find("nullValues");
  if (nulls != params.end() && nulls->is_array()) {
    for (const json& value : *nulls) {
      if (!value.is_string()) {
        return Wrong("nullValues", "must be a list of texts");
      }
      options.null_values.push_back(value.get<std::string>());
    }
  }
  TARN_ASSIGN_OR_RETURN(options.null_on_error,
                        ChoiceIn(params, "parseErrorBehavior", "REPLACE_WITH_NULL"));
  TARN_ASSIGN_OR_RETURN(options.drop_jagged, ChoiceIn(params, "jaggedRowBehavior", "DROP_ROW"));
  return options;
}

}  // namespace

Result<std::optional<TextOptions>> ReadTextOptions(const dataset::DatasetSchema& schema) {
  const json whole = json::parse(schema.json, nullptr, false);
  const bool is_csv =
      whole.is_object() && whole.contains("dataframeReader") && whole["dataframeReader"] == "CSV";
  if (!is_csv && !schema.reader_class.ends_with(kTextReader)) {
    return std::optional<TextOptions>();
  }
  const json metadata = schema.custom_metadata_json.empty()
                            ? json::object()
                            : json::parse(schema.custom_metadata_json, nullptr, false);
  if (!metadata.is_object() || !metadata.contains("textParserParams") ||
      !metadata["textParserParams"].is_object()) {
    return std::optional<TextOptions>(TextOptions());
  }
  TARN_ASSIGN_OR_RETURN(const TextOptions options, OptionsIn(metadata["textParserParams"]));
  return std::optional<TextOptions>(options);
}

Result<std::string> BuildTextScan(const std::vector<format::Field>& fields,
                                  const std::vector<std::string>& uris,
                                  const TextOptions& options) {
  std::vector<std::string> selected;
  std::vector<std::string> columns;
  const std::shared_ptr<arrow::Schema> schema = format::ToArrowSchema(fields);
  for (const std::shared_ptr<arrow::Field>& field : schema->fields()) {
    TARN_ASSIGN_OR_RETURN(const std::string type, engine::SqlTypeOf(*field->type()));
    const std::string name = engine::QuoteName(field->name());
    selected.push_back(uris.empty() ? fmt::format("CAST(NULL AS {}) AS {}", type, name)
                                    : fmt::format("{}({} AS {}) AS {}",
                                                  options.null_on_error ? "TRY_CAST" : "CAST", name,
                                                  type, name));
    columns.push_back(engine::QuoteText(field->name()) + ": 'VARCHAR'");
  }
  const std::string select = fmt::format("SELECT {} ", fmt::join(selected, ", "));
  if (uris.empty()) {
    return select + "WHERE false";
  }
  std::vector<std::string> nulls = options.null_values;
  nulls.emplace_back();
  return fmt::format(
      "{}FROM read_csv({}, auto_detect = false, header = false, skip = {}, delim = {}, "
      "quote = {}, escape = {}, columns = {{{}}}, nullstr = {}, allow_quoted_nulls = false, "
      "ignore_errors = {})",
      select, engine::QuoteTextList(uris), options.skip_lines, engine::QuoteText(options.delimiter),
      engine::QuoteText(options.quote), engine::QuoteText(options.quote), fmt::join(columns, ", "),
      engine::QuoteTextList(nulls), options.drop_jagged);
}

}  // namespace tarn::query
