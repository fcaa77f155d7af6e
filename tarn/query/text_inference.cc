#include "tarn/query/text_inference.h"

#include <arrow/api.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/arrow_status.h"
#include "tarn/engine/quoting.h"

namespace tarn::query {

namespace {

// One row of a result, column by column.
using Row = std::vector<std::shared_ptr<arrow::Scalar>>;

Result<Row> ReadRow(engine::Session& session, const std::string& sql) {
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<engine::ArrowStream> stream, session.Query(sql));
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::Table> table, engine::ReadAll(*stream));
  if (table->num_rows() != 1) {
    return Status::Internal("one row is expected, found " + std::to_string(table->num_rows()));
  }
  Row row;
  for (int i = 0; i < table->num_columns(); ++i) {
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Scalar> value, table->column(i)->GetScalar(0));
    row.push_back(std::move(value));
  }
  return row;
}

bool IsTrue(const std::shared_ptr<arrow::Scalar>& value) {
  return value->is_valid && value->ToString() == "true";
}

std::string TextOf(const std::shared_ptr<arrow::Scalar>& value) {
  return value->is_valid ? value->ToString() : std::string();
}

// Conditions on the column `$`, in the order of TextColumn. Numbers keep their text: no leading
// zeros, and no more digits than a double has.
constexpr const char* kTests[] = {
    "regexp_full_match($, '-?(0|[1-9][0-9]{0,18})') AND TRY_CAST($ AS BIGINT) IS NOT NULL",
    "regexp_full_match($, '-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?') AND "
    "isfinite(TRY_CAST($ AS DOUBLE)) AND length(regexp_replace(regexp_replace($, '[eE].*', ''), "
    "'[^0-9]', '', 'g')) <= 15",
    "lower($) IN ('true', 'false')",
    "regexp_full_match($, '[0-9]{4}-[0-9]{2}-[0-9]{2}') AND TRY_CAST($ AS DATE) IS NOT NULL",
    "regexp_full_match($, '[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?"
    "(Z|[-+][0-9]{2}(:?[0-9]{2})?)?') AND TRY_CAST($ AS TIMESTAMPTZ) IS NOT NULL"};

std::string With(std::string_view test, const std::string& column) {
  std::string sql;
  for (const char c : test) {
    sql += c == '$' ? column : std::string(1, c);
  }
  return sql;
}

}  // namespace

struct TextInference::Dialect {
  TextOptions options;
  std::vector<std::string> names;
};

format::FieldKind TextColumn::kind() const {
  if (!any) {
    return format::FieldKind::kString;
  }
  if (is_long) {
    return format::FieldKind::kLong;
  }
  if (is_double) {
    return format::FieldKind::kDouble;
  }
  if (is_boolean) {
    return format::FieldKind::kBoolean;
  }
  if (is_date) {
    return format::FieldKind::kDate;
  }
  return is_timestamp ? format::FieldKind::kTimestamp : format::FieldKind::kString;
}

Result<TextInference::Dialect> TextInference::Sniff(const std::string& uri) {
  TARN_ASSIGN_OR_RETURN(
      const Row sniffed,
      ReadRow(session_,
              fmt::format("SELECT Delimiter, Quote, SkipRows, HasHeader, to_json([c.name FOR c IN "
                          "Columns])::VARCHAR FROM sniff_csv({})",
                          engine::QuoteText(uri))));
  Dialect dialect;
  dialect.options.delimiter = TextOf(sniffed[0]);
  const std::string quote = TextOf(sniffed[1]);
  dialect.options.quote = quote.size() == 1 ? quote : "\"";
  if (dialect.options.delimiter.size() != 1) {
    dialect.options.delimiter = ",";  // One column.
  }
  const std::string skipped = TextOf(sniffed[2]);
  dialect.options.skip_lines = skipped.empty() ? 0 : std::stoll(skipped);
  dialect.options.skip_lines += IsTrue(sniffed[3]) ? 1 : 0;
  const nlohmann::json names = nlohmann::json::parse(TextOf(sniffed[4]), nullptr, false);
  if (!names.is_array() || names.empty()) {
    return Status::InvalidArgument("the file has no columns");
  }
  for (const nlohmann::json& name : names) {
    dialect.names.push_back(name.is_string() ? name.get<std::string>() : name.dump());
  }
  return dialect;
}

Result<int64_t> TextInference::Add(const std::string& uri, std::optional<int64_t> rows_max) {
  TARN_ASSIGN_OR_RETURN(const Dialect dialect, Sniff(uri));
  std::vector<TextColumn> columns;
  for (const std::string& name : dialect.names) {
    columns.push_back({.name = name});
  }
  if (has_first_) {
    const auto same = [](const TextColumn& a, const TextColumn& b) { return a.name == b.name; };
    if (!std::equal(columns.begin(), columns.end(), columns_.begin(), columns_.end(), same) ||
        dialect.options != options_) {
      return Status::InvalidArgument(fmt::format(
          "the file has the columns {} with the delimiter {} behind {} lines, unlike the first one",
          fmt::join(dialect.names, ", "), dialect.options.delimiter, dialect.options.skip_lines));
    }
    columns = columns_;
  }
  std::vector<std::string> texts;
  std::string tests;
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string column = fmt::format("c{}", i);
    texts.push_back(fmt::format("'{}': 'VARCHAR'", column));
    tests += fmt::format(", count({}) > 0", column);
    for (const char* test : kTests) {
      tests += fmt::format(", coalesce(bool_and({}) FILTER (WHERE {} IS NOT NULL), true)",
                           With(test, column), column);
    }
  }
  TARN_ASSIGN_OR_RETURN(
      const Row row,
      ReadRow(session_,
              fmt::format("SELECT count(*){} FROM (SELECT * FROM read_csv({}, auto_detect = false, "
                          "header = false, skip = {}, delim = {}, quote = {}, escape = {}, columns "
                          "= {{{}}}){})",
                          tests, engine::QuoteText(uri), dialect.options.skip_lines,
                          engine::QuoteText(dialect.options.delimiter),
                          engine::QuoteText(dialect.options.quote),
                          engine::QuoteText(dialect.options.quote), fmt::join(texts, ", "),
                          rows_max ? fmt::format(" LIMIT {}", *rows_max) : std::string())));
  size_t at = 1;
  for (TextColumn& column : columns) {
    column.any = IsTrue(row[at++]) || column.any;
    for (bool TextColumn::* allowed :
         {&TextColumn::is_long, &TextColumn::is_double, &TextColumn::is_boolean,
          &TextColumn::is_date, &TextColumn::is_timestamp}) {
      const bool holds = IsTrue(row[at++]);
      column.*allowed = column.*allowed && holds;
    }
  }
  columns_ = std::move(columns);
  options_ = dialect.options;
  has_first_ = true;
  return std::stoll(TextOf(row[0]));
}

std::vector<format::Field> TextInference::Fields() const {
  std::vector<format::Field> fields;
  for (const TextColumn& column : columns_) {
    format::Field field;
    field.name = column.name;
    field.type.kind = column.kind();
    fields.push_back(std::move(field));
  }
  return fields;
}

}  // namespace tarn::query
