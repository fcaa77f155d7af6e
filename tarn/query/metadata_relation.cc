#include "tarn/query/metadata_relation.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <arrow/api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "tarn/base/arrow_status.h"
#include "tarn/engine/quoting.h"
#include "tarn/iceberg/scan.h"
#include "tarn/lakehouse/scan/snapshot_relation.h"
#include "tarn/query/table_relation.h"

namespace tarn::query {

namespace {

using iceberg::DataFile;
using iceberg::DataFileContent;
using iceberg::ManifestEntry;
using iceberg::ManifestFile;
using iceberg::Snapshot;
using iceberg::TableMetadata;
using nlohmann::json;

constexpr std::array<std::pair<std::string_view, MetadataTable>, 11> kWords = {{
    {"snapshots", MetadataTable::kSnapshots},
    {"history", MetadataTable::kHistory},
    {"refs", MetadataTable::kRefs},
    {"manifests", MetadataTable::kManifests},
    {"files", MetadataTable::kFiles},
    {"data_files", MetadataTable::kDataFiles},
    {"delete_files", MetadataTable::kDeleteFiles},
    {"entries", MetadataTable::kEntries},
    {"partitions", MetadataTable::kPartitions},
    {"metadata_log_entries", MetadataTable::kMetadataLogEntries},
    {"rows", MetadataTable::kRows},
}};

struct Milliseconds {
  int64_t value = 0;
};
using Cell = std::variant<std::monostate, bool, int64_t, std::string, Milliseconds>;

template <typename T>
Cell CellOf(const std::optional<T>& value) {
  return value ? Cell(static_cast<int64_t>(*value)) : Cell();
}
Cell CellOf(const std::optional<std::string>& value) { return value ? Cell(*value) : Cell(); }

enum class CellType : uint8_t { kBoolean, kLong, kText, kTime };
struct CellColumn {
  const char* name;
  CellType type;
};

Result<std::shared_ptr<arrow::Array>> MakeColumn(CellType type,
                                                 const std::vector<std::vector<Cell>>& rows,
                                                 size_t index) {
  const auto fill = [&](auto& builder,
                        const auto& append) -> Result<std::shared_ptr<arrow::Array>> {
    for (const std::vector<Cell>& row : rows) {
      TARN_RETURN_IF_ERROR(std::holds_alternative<std::monostate>(row[index]) ? builder.AppendNull()
                                                                              : append(row[index]));
    }
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> array, builder.Finish());
    return array;
  };
  switch (type) {
    case CellType::kBoolean: {
      arrow::BooleanBuilder builder;
      return fill(builder, [&](const Cell& cell) { return builder.Append(std::get<bool>(cell)); });
    }
    case CellType::kLong: {
      arrow::Int64Builder builder;
      return fill(builder,
                  [&](const Cell& cell) { return builder.Append(std::get<int64_t>(cell)); });
    }
    case CellType::kText: {
      arrow::StringBuilder builder;
      return fill(builder,
                  [&](const Cell& cell) { return builder.Append(std::get<std::string>(cell)); });
    }
    case CellType::kTime:
      break;
  }
  arrow::TimestampBuilder builder(arrow::timestamp(arrow::TimeUnit::MICRO, "UTC"),
                                  arrow::default_memory_pool());
  return fill(builder, [&](const Cell& cell) {
    return builder.Append(std::get<Milliseconds>(cell).value * 1000);
  });
}

std::shared_ptr<arrow::DataType> ArrowTypeOf(CellType type) {
  switch (type) {
    case CellType::kBoolean:
      return arrow::boolean();
    case CellType::kLong:
      return arrow::int64();
    case CellType::kText:
      return arrow::utf8();
    case CellType::kTime:
      break;
  }
  return arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");
}

/// Rows on their way into a view.
struct CellTable {
  std::vector<CellColumn> columns;
  std::vector<std::vector<Cell>> rows;

  Status Register(engine::Session& session, const std::string& name) const {
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    for (size_t i = 0; i < columns.size(); ++i) {
      TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> array,
                            MakeColumn(columns[i].type, rows, i));
      fields.push_back(arrow::field(columns[i].name, ArrowTypeOf(columns[i].type)));
      arrays.push_back(std::move(array));
    }
    const std::shared_ptr<arrow::Schema> schema = arrow::schema(std::move(fields));
    return session.RegisterBatches(
        name, schema,
        {arrow::RecordBatch::Make(schema, static_cast<int64_t>(rows.size()), std::move(arrays))});
  }
};

CellTable Snapshots(const TableMetadata& metadata) {
  CellTable table{.columns = {{"committed_at", CellType::kTime},
                              {"snapshot_id", CellType::kLong},
                              {"parent_id", CellType::kLong},
                              {"sequence_number", CellType::kLong},
                              {"operation", CellType::kText},
                              {"manifest_list", CellType::kText},
                              {"schema_id", CellType::kLong},
                              {"first_row_id", CellType::kLong},
                              {"added_rows", CellType::kLong},
                              {"summary", CellType::kText}}};
  for (const iceberg::SnapshotPtr& snapshot : metadata.snapshots) {
    table.rows.push_back({Milliseconds{snapshot->timestamp_ms}, snapshot->snapshot_id,
                          CellOf(snapshot->parent_snapshot_id), snapshot->sequence_number,
                          std::string(iceberg::SnapshotOperationName(snapshot->operation)),
                          snapshot->manifest_list, CellOf(snapshot->schema_id),
                          CellOf(snapshot->first_row_id), CellOf(snapshot->added_rows),
                          json(snapshot->summary).dump()});
  }
  return table;
}

CellTable History(const TableMetadata& metadata) {
  CellTable table{.columns = {{"made_current_at", CellType::kTime},
                              {"snapshot_id", CellType::kLong},
                              {"parent_id", CellType::kLong},
                              {"is_current_ancestor", CellType::kBoolean}}};
  std::vector<int64_t> ancestors;
  if (metadata.current_snapshot_id) {
    ancestors = iceberg::AncestorsOf(metadata, *metadata.current_snapshot_id);
  }
  std::sort(ancestors.begin(), ancestors.end());
  for (const iceberg::SnapshotLogEntry& entry : metadata.snapshot_log) {
    const Snapshot* snapshot = metadata.FindSnapshot(entry.snapshot_id);
    table.rows.push_back(
        {Milliseconds{entry.timestamp_ms}, entry.snapshot_id,
         snapshot == nullptr ? Cell() : CellOf(snapshot->parent_snapshot_id),
         std::binary_search(ancestors.begin(), ancestors.end(), entry.snapshot_id)});
  }
  return table;
}

CellTable Refs(const TableMetadata& metadata) {
  CellTable table{.columns = {{"name", CellType::kText},
                              {"type", CellType::kText},
                              {"snapshot_id", CellType::kLong},
                              {"max_reference_age_in_ms", CellType::kLong},
                              {"min_snapshots_to_keep", CellType::kLong},
                              {"max_snapshot_age_in_ms", CellType::kLong}}};
  for (const auto& [name, ref] : metadata.refs) {
    table.rows.push_back(
        {name, std::string(ref.type == iceberg::SnapshotRefType::kBranch ? "BRANCH" : "TAG"),
         ref.snapshot_id, CellOf(ref.max_ref_age_ms), CellOf(ref.min_snapshots_to_keep),
         CellOf(ref.max_snapshot_age_ms)});
  }
  return table;
}

CellTable MetadataLog(const TableMetadata& metadata) {
  CellTable table{.columns = {{"timestamp", CellType::kTime}, {"file", CellType::kText}}};
  for (const iceberg::MetadataLogEntry& entry : metadata.metadata_log) {
    table.rows.push_back({Milliseconds{entry.timestamp_ms}, entry.metadata_file});
  }
  return table;
}

// Makes the tables that are read from manifests.
class ManifestTables {
 public:
  ManifestTables(catalog::Catalog& catalog, const MetadataRelation& relation)
      : catalog_(catalog), relation_(relation), metadata_(*relation.metadata) {}

  Result<CellTable> Manifests() {
    CellTable table{.columns = {{"content", CellType::kLong},
                                {"path", CellType::kText},
                                {"length", CellType::kLong},
                                {"partition_spec_id", CellType::kLong},
                                {"added_snapshot_id", CellType::kLong},
                                {"sequence_number", CellType::kLong},
                                {"min_sequence_number", CellType::kLong},
                                {"added_files_count", CellType::kLong},
                                {"existing_files_count", CellType::kLong},
                                {"deleted_files_count", CellType::kLong},
                                {"added_rows_count", CellType::kLong},
                                {"existing_rows_count", CellType::kLong},
                                {"deleted_rows_count", CellType::kLong},
                                {"first_row_id", CellType::kLong}}};
    TARN_RETURN_IF_ERROR(VisitManifests([&table](const ManifestFile& manifest) {
      table.rows.push_back({static_cast<int64_t>(manifest.content), manifest.manifest_path,
                            manifest.manifest_length, int64_t{manifest.partition_spec_id},
                            manifest.added_snapshot_id, manifest.sequence_number,
                            manifest.min_sequence_number, CellOf(manifest.added_files_count),
                            CellOf(manifest.existing_files_count),
                            CellOf(manifest.deleted_files_count), CellOf(manifest.added_rows_count),
                            CellOf(manifest.existing_rows_count),
                            CellOf(manifest.deleted_rows_count), CellOf(manifest.first_row_id)});
      return Status::Ok();
    }));
    return table;
  }

  // `with_entry`: also how the file got there, and deleted ones.
  Result<CellTable> Files(bool with_entry) {
    CellTable table;
    if (with_entry) {
      table.columns = {{"status", CellType::kLong},
                       {"snapshot_id", CellType::kLong},
                       {"sequence_number", CellType::kLong},
                       {"file_sequence_number", CellType::kLong}};
    }
    const std::vector<CellColumn> file_columns = {{"content", CellType::kLong},
                                                  {"file_path", CellType::kText},
                                                  {"file_format", CellType::kText},
                                                  {"spec_id", CellType::kLong},
                                                  {"partition", CellType::kText},
                                                  {"record_count", CellType::kLong},
                                                  {"file_size_in_bytes", CellType::kLong},
                                                  {"null_value_counts", CellType::kText},
                                                  {"lower_bounds", CellType::kText},
                                                  {"upper_bounds", CellType::kText},
                                                  {"equality_ids", CellType::kText},
                                                  {"sort_order_id", CellType::kLong},
                                                  {"first_row_id", CellType::kLong},
                                                  {"referenced_data_file", CellType::kText},
                                                  {"content_offset", CellType::kLong},
                                                  {"content_size_in_bytes", CellType::kLong}};
    table.columns.insert(table.columns.end(), file_columns.begin(), file_columns.end());
    TARN_RETURN_IF_ERROR(VisitEntries([&](const ManifestEntry& entry) {
      if (!with_entry && (!entry.is_live() || !IsWanted(entry.data_file))) {
        return;
      }
      std::vector<Cell> row;
      if (with_entry) {
        row = {static_cast<int64_t>(entry.status), CellOf(entry.snapshot_id),
               CellOf(entry.sequence_number), CellOf(entry.file_sequence_number)};
      }
      AddFile(entry.data_file, row);
      table.rows.push_back(std::move(row));
    }));
    return table;
  }

  Result<CellTable> Partitions() {
    CellTable table{.columns = {{"partition", CellType::kText},
                                {"spec_id", CellType::kLong},
                                {"record_count", CellType::kLong},
                                {"file_count", CellType::kLong},
                                {"total_data_file_size_in_bytes", CellType::kLong},
                                {"position_delete_record_count", CellType::kLong},
                                {"position_delete_file_count", CellType::kLong},
                                {"equality_delete_record_count", CellType::kLong},
                                {"equality_delete_file_count", CellType::kLong},
                                {"last_updated_at", CellType::kTime},
                                {"last_updated_snapshot_id", CellType::kLong}}};
    std::map<std::pair<int32_t, std::string>, Sums> partitions;
    TARN_RETURN_IF_ERROR(VisitEntries([&](const ManifestEntry& entry) {
      if (entry.is_live()) {
        const DataFile& file = entry.data_file;
        partitions[{file.spec_id, PartitionText(file)}].Add(entry, metadata_);
      }
    }));
    for (const auto& [key, sums] : partitions) {
      table.rows.push_back(
          {key.second, int64_t{key.first}, sums.rows, sums.files, sums.bytes, sums.position_rows,
           sums.position_files, sums.equality_rows, sums.equality_files,
           sums.snapshot == nullptr ? Cell() : Cell(Milliseconds{sums.snapshot->timestamp_ms}),
           sums.snapshot == nullptr ? Cell() : Cell(sums.snapshot->snapshot_id)});
    }
    return table;
  }

 private:
  struct Sums {
    int64_t rows = 0;
    int64_t files = 0;
    int64_t bytes = 0;
    int64_t position_rows = 0;
    int64_t position_files = 0;
    int64_t equality_rows = 0;
    int64_t equality_files = 0;
    const Snapshot* snapshot = nullptr;  // The newest that added a file.

    void Add(const ManifestEntry& entry, const TableMetadata& metadata) {
      const DataFile& file = entry.data_file;
      if (file.content == DataFileContent::kData) {
        ++files;
        rows += file.record_count;
        bytes += file.file_size_bytes;
      } else if (file.content == DataFileContent::kPositionDeletes) {
        ++position_files;
        position_rows += file.record_count;
      } else {
        ++equality_files;
        equality_rows += file.record_count;
      }
      const Snapshot* added = metadata.FindSnapshot(entry.snapshot_id.value_or(0));
      if (added != nullptr &&
          (snapshot == nullptr || added->timestamp_ms > snapshot->timestamp_ms)) {
        snapshot = added;
      }
    }
  };

  Status VisitManifests(const std::function<Status(const ManifestFile&)>& visit) {
    if (relation_.snapshot == nullptr) {
      return Status::Ok();
    }
    TARN_ASSIGN_OR_RETURN(const iceberg::ManifestList list,
                          catalog_.manifest_cache().ReadList(catalog_.deps().warehouse, metadata_,
                                                             *relation_.snapshot));
    for (const ManifestFile& manifest : *list) {
      TARN_RETURN_IF_ERROR(visit(manifest));
    }
    return Status::Ok();
  }

  Status VisitEntries(const std::function<void(const ManifestEntry&)>& visit) {
    return VisitManifests([&](const ManifestFile& manifest) -> Status {
      TARN_ASSIGN_OR_RETURN(
          const iceberg::ManifestEntries entries,
          catalog_.manifest_cache().ReadManifest(catalog_.deps().warehouse, metadata_, manifest));
      for (const ManifestEntry& entry : *entries) {
        visit(entry);
      }
      return Status::Ok();
    });
  }

  [[nodiscard]] bool IsWanted(const DataFile& file) const {
    const bool is_data = file.content == DataFileContent::kData;
    return relation_.part == MetadataTable::kFiles ||
           is_data == (relation_.part == MetadataTable::kDataFiles);
  }

  [[nodiscard]] std::string PartitionText(const DataFile& file) const {
    const iceberg::PartitionSpec* spec = metadata_.FindSpec(file.spec_id);
    if (spec == nullptr || spec->fields.empty()) {
      return {};
    }
    const Result<std::string> path =
        iceberg::FormatPartitionPath(*spec, metadata_.CurrentSchema(), file.partition);
    return path.ok() ? *path : std::string();
  }

  // Bounds as text by the name of the column; columns that are gone are left out.
  [[nodiscard]] std::string BoundsText(const iceberg::FieldMap<std::string>& bounds) const {
    json text = json::object();
    for (const auto& [id, bytes] : bounds) {
      const iceberg::SchemaField* field = metadata_.CurrentSchema().FindField(id);
      if (field == nullptr || field->type.is_nested()) {
        continue;
      }
      const Result<iceberg::Literal> value = iceberg::DecodeLiteral(field->type, bytes);
      if (value.ok()) {
        text[metadata_.CurrentSchema().NameOf(id).value_or(field->name)] =
            iceberg::FormatLiteral(field->type, *value);
      }
    }
    return text.dump(-1, ' ', false, json::error_handler_t::replace);
  }

  [[nodiscard]] std::string CountsText(const iceberg::FieldMap<int64_t>& counts) const {
    json text = json::object();
    for (const auto& [id, count] : counts) {
      text[metadata_.CurrentSchema().NameOf(id).value_or(std::to_string(id))] = count;
    }
    return text.dump();
  }

  void AddFile(const DataFile& file, std::vector<Cell>& row) const {
    row.insert(
        row.end(),
        {static_cast<int64_t>(file.content), file.file_path, file.file_format,
         int64_t{file.spec_id}, PartitionText(file), file.record_count, file.file_size_bytes,
         CountsText(file.null_value_counts), BoundsText(file.lower_bounds),
         BoundsText(file.upper_bounds),
         file.equality_ids.empty() ? Cell() : Cell(json(file.equality_ids).dump()),
         CellOf(file.sort_order_id), CellOf(file.first_row_id), CellOf(file.referenced_data_file),
         CellOf(file.content_offset), CellOf(file.content_size_bytes)});
  }

  catalog::Catalog& catalog_;
  const MetadataRelation& relation_;
  const TableMetadata& metadata_;
};

// SQL that picks values[r.tarn_file - first]. No join: the engine cannot tell that the rows are
// many and the files few, and would hold the rows. No long list: it is made anew for each chunk of
// rows.
std::string ValueOfFile(std::span<const std::string> values, size_t first) {
  constexpr size_t kListMax = 16;
  if (values.empty()) {
    return "NULL";
  }
  if (std::ranges::all_of(values, [&](const std::string& v) { return v == values.front(); })) {
    return values.front();
  }
  if (values.size() <= kListMax) {
    return fmt::format("([{}])[r.tarn_file - {} + 1]", fmt::join(values, ", "), first);
  }
  const size_t half = values.size() / 2;
  return fmt::format("CASE WHEN r.tarn_file < {} THEN {} ELSE {} END", first + half,
                     ValueOfFile(values.first(half), first),
                     ValueOfFile(values.subspan(half), first + half));
}

// The rows themselves, each with its place.
Status MakeRows(engine::Session& session, catalog::Catalog& catalog,
                const MetadataRelation& relation) {
  // The newest rows have the newest columns, as when the table itself is read.
  const bool newest = relation.snapshot == relation.metadata->CurrentSnapshot();
  const iceberg::Schema& schema =
      newest ? relation.metadata->CurrentSchema() : relation.metadata->SchemaOf(*relation.snapshot);
  TARN_ASSIGN_OR_RETURN(const std::vector<iceberg::FileScanTask> tasks,
                        PlanFiles(catalog, *relation.metadata, relation.snapshot, schema,
                                  FilterOf(relation.conditions, schema)));
  TARN_RETURN_IF_ERROR(lakehouse::MakeSnapshotRelation(session, catalog.deps().warehouse,
                                                       {.name = relation.name + "_located",
                                                        .metadata = relation.metadata.get(),
                                                        .columns = schema.fields,
                                                        .files = tasks,
                                                        .with_position = true,
                                                        .with_lineage = true}));
  std::vector<std::string> paths;
  std::vector<std::string> snapshots;
  for (const iceberg::FileScanTask& task : tasks) {
    paths.push_back(engine::QuoteText(task.file.file_path));
    snapshots.push_back(std::to_string(task.added_snapshot_id));
  }
  return session.Execute(fmt::format(
      "CREATE OR REPLACE TEMP VIEW {} AS SELECT r.* EXCLUDE (tarn_file, tarn_pos, _row_id, "
      "_last_updated_sequence_number), CAST({} AS VARCHAR) AS _file, r.tarn_pos AS _pos, "
      "r._row_id, r._last_updated_sequence_number, CAST({} AS BIGINT) AS _snapshot_id FROM {} AS r",
      engine::QuoteName(relation.name), ValueOfFile(paths, 0), ValueOfFile(snapshots, 0),
      engine::QuoteName(relation.name + "_located")));
}

Result<CellTable> MakeCells(catalog::Catalog& catalog, const MetadataRelation& relation) {
  const TableMetadata& metadata = *relation.metadata;
  switch (relation.part) {
    case MetadataTable::kSnapshots:
      return Snapshots(metadata);
    case MetadataTable::kHistory:
      return History(metadata);
    case MetadataTable::kRefs:
      return Refs(metadata);
    case MetadataTable::kMetadataLogEntries:
      return MetadataLog(metadata);
    case MetadataTable::kManifests:
      return ManifestTables(catalog, relation).Manifests();
    case MetadataTable::kPartitions:
      return ManifestTables(catalog, relation).Partitions();
    case MetadataTable::kEntries:
      return ManifestTables(catalog, relation).Files(/*with_entry=*/true);
    default:
      return ManifestTables(catalog, relation).Files(/*with_entry=*/false);
  }
}

}  // namespace

std::optional<MetadataTable> FindMetadataTable(std::string_view word) {
  for (const auto& [name, part] : kWords) {
    if (name == word) {
      return part;
    }
  }
  return std::nullopt;
}

std::optional<MetadataName> SplitMetadataName(std::string_view name) {
  const size_t at = name.rfind('$');
  if (at == std::string_view::npos || at == 0) {
    return std::nullopt;
  }
  const std::optional<MetadataTable> part = FindMetadataTable(name.substr(at + 1));
  return part ? std::optional<MetadataName>({std::string(name.substr(0, at)), *part})
              : std::nullopt;
}

Status MakeMetadataRelation(engine::Session& session, catalog::Catalog& catalog,
                            const MetadataRelation& relation) {
  if (relation.part == MetadataTable::kRows) {
    return MakeRows(session, catalog, relation);
  }
  TARN_ASSIGN_OR_RETURN(const CellTable table, MakeCells(catalog, relation));
  return table.Register(session, relation.name);
}

}  // namespace tarn::query
