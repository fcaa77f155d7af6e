#include "tarn/lakehouse/table_views.h"

#include <fmt/format.h>

#include "tarn/lakehouse/header_columns.h"
#include "tarn/lakehouse/internal_schema.h"

namespace tarn::lakehouse {

namespace {

// Header columns of the history view besides the two that no table stores.
constexpr HeaderColumn kHistoryTimes[] = {HeaderColumn::kFromTimestamp, HeaderColumn::kToTimestamp};
constexpr HeaderColumn kHistoryWasTimes[] = {HeaderColumn::kWasCurrentFromTimestamp,
                                             HeaderColumn::kWasCurrentToTimestamp};

// Ids of the view's own columns, out of the way of the table's.
constexpr int32_t kStoreFieldId = 1'000'001;
constexpr int32_t kDeletedFieldId = 1'000'002;

iceberg::SchemaField Optional(int32_t id, std::string_view name, iceberg::Type type) {
  iceberg::SchemaField field;
  field.id = id;
  field.name = std::string(name);
  field.required = false;
  field.type = std::move(type);
  return field;
}

iceberg::SchemaField Header(const iceberg::Schema& internal, HeaderColumn column) {
  const iceberg::SchemaField* field = internal.FindField(Spec(column).field_id);
  return field != nullptr ? *field
                          : Optional(Spec(column).field_id, Name(column), iceberg::Type::String());
}

}  // namespace

ViewShape ShapeOf(const TableSpec& spec, const iceberg::Schema& internal) {
  return {.key_columns = spec.key,
          .user_columns = UserColumnNames(internal),
          .view_headers = spec.view_headers,
          .null_keys = spec.null_keys,
          .fold = spec.fold};
}

Result<std::string> TableViewSql(const TableSpec& spec, const iceberg::Schema& internal,
                                 TableView view, SqlDialect dialect) {
  const std::string table = fmt::format("{}.{}", QuoteIdentifier(dialect, spec.internal_schema),
                                        QuoteIdentifier(dialect, spec.internal_name()));
  const ViewShape shape = ShapeOf(spec, internal);
  if (spec.mode == Mode::kAppend) {
    const ViewSources sources{.current = table, .changes = {}, .prior = {}};
    return CurrentViewSql(dialect, shape, sources, Unapplied::kNone);
  }
  const ViewSources sources = SourcesOfTable(dialect, table);
  if (view == TableView::kCurrent) {
    return CurrentViewSql(dialect, shape, sources, Unapplied::kPossible);
  }
  return HistoryViewSql(dialect, shape, sources, Unapplied::kPossible);
}

iceberg::Schema TableViewSchema(const TableSpec& spec, const iceberg::Schema& internal,
                                TableView view) {
  iceberg::Schema schema;
  if (view == TableView::kCurrent) {
    for (const std::string& header : spec.view_headers) {
      if (const iceberg::SchemaField* field =
              internal.FindField(header, iceberg::CaseRule::kSensitive)) {
        schema.fields.push_back(*field);
      }
    }
  } else {
    schema.fields.push_back(Header(internal, HeaderColumn::kKeyHash));
    for (const HeaderColumn column : kHistoryTimes) {
      schema.fields.push_back(Header(internal, column));
    }
    schema.fields.push_back(Optional(kStoreFieldId, "hdr__store", iceberg::Type::String()));
    schema.fields.push_back(Header(internal, HeaderColumn::kOperation));
    schema.fields.push_back(Optional(kDeletedFieldId, "hdr__deleted", iceberg::Type::Boolean()));
    for (const HeaderColumn column : kHistoryWasTimes) {
      schema.fields.push_back(Header(internal, column));
    }
  }
  const iceberg::Schema users = UserSchema(internal);
  schema.fields.insert(schema.fields.end(), users.fields.begin(), users.fields.end());
  return schema;
}

Result<iceberg::ViewMetadata> MakeTableView(const TableSpec& spec,
                                            const iceberg::TableMetadata& internal, TableView view,
                                            const iceberg::ViewMetadata* previous,
                                            const std::string& view_uuid, int64_t now_ms) {
  iceberg::ViewVersion version;
  version.schema_id = iceberg::kLastAdded;
  version.timestamp_ms = now_ms;
  version.version_id = previous == nullptr ? 1 : previous->current_version_id + 1;
  version.default_namespace = {spec.external_schema};
  version.summary["engine-name"] = "tarn";
  for (const SqlDialect dialect : {SqlDialect::kSpark, SqlDialect::kTrino, SqlDialect::kDuckDb}) {
    TARN_ASSIGN_OR_RETURN(std::string sql,
                          TableViewSql(spec, internal.CurrentSchema(), view, dialect));
    version.representations.push_back({.type = "sql",
                                       .sql = std::move(sql),
                                       .dialect = std::string(SqlDialectName(dialect)),
                                       .unknown = {}});
  }
  std::vector<iceberg::ViewUpdate> updates;
  if (previous == nullptr) {
    updates.emplace_back(iceberg::table_update::AssignUuid{.uuid = view_uuid});
    updates.emplace_back(iceberg::table_update::SetLocation{
        .location = fmt::format("{}-views/{}", internal.location, view_uuid)});
  }
  updates.emplace_back(iceberg::table_update::AddSchema{
      .schema = TableViewSchema(spec, internal.CurrentSchema(), view), .last_column_id = {}});
  updates.emplace_back(
      iceberg::table_update::SetProperties{.updates = FormatOrigin(OriginOf(spec, view))});
  updates.emplace_back(iceberg::view_update::AddViewVersion{.version = std::move(version)});
  updates.emplace_back(
      iceberg::view_update::SetCurrentViewVersion{.version_id = iceberg::kLastAdded});
  TARN_ASSIGN_OR_RETURN(iceberg::ViewUpdateResult result,
                        iceberg::ApplyViewUpdates(previous, updates, now_ms));
  return std::move(result.metadata);
}

}  // namespace tarn::lakehouse
