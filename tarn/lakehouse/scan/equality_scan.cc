#include "tarn/lakehouse/scan/equality_scan.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tarn/engine/quoting.h"
#include "tarn/engine/scan_sql.h"
#include "tarn/lakehouse/scan/sql_type.h"

namespace tarn::lakehouse {

using iceberg::DataFile;
using iceberg::SchemaField;
using iceberg::TableMetadata;

const SchemaField* FindColumn(const TableMetadata& metadata, int32_t id) {
  const auto find = [id](const iceberg::Schema& schema) -> const SchemaField* {
    for (const SchemaField& field : schema.fields) {
      if (field.id == id) {
        return &field;
      }
    }
    return nullptr;
  };
  if (const SchemaField* field = find(metadata.CurrentSchema())) {
    return field;
  }
  for (auto at = metadata.schemas.rbegin(); at != metadata.schemas.rend(); ++at) {
    if (const SchemaField* field = find(**at)) {
      return field;
    }
  }
  return nullptr;
}

std::string NumberByIndex(std::span<const int64_t> numbers, const std::string& index) {
  const bool all_same =
      std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == numbers.front(); });
  if (all_same && !numbers.empty()) {
    return fmt::format("CAST({} AS BIGINT)", numbers.front());
  }
  const bool ascending =
      std::adjacent_find(numbers.begin(), numbers.end(),
                         [](int64_t a, int64_t b) { return b != a + 1; }) == numbers.end();
  if (ascending && !numbers.empty()) {
    // The engine makes lists anew for each chunk of rows.
    return fmt::format("({} + {})", index, numbers.front());
  }
  return fmt::format("(CAST([{}] AS BIGINT[])[{} + 1])", fmt::join(numbers, ", "), index);
}

size_t EqualityDeletes::PartitionHash::operator()(
    const std::pair<int32_t, iceberg::PartitionValues>& key) const {
  return iceberg::PartitionValuesHash{}(key.second) ^ static_cast<size_t>(key.first) * 0x9E3779B1U;
}

int64_t EqualityDeletes::ScopeOf(const DataFile& file) {
  const auto [entry, inserted] =
      scopes_.try_emplace({file.spec_id, file.partition}, static_cast<int64_t>(scopes_.size()));
  return entry->second;
}

Status EqualityDeletes::Add(const iceberg::FileScanTask& task) {
  for (const iceberg::DeleteFilePtr& deletes : task.deletes) {
    const DataFile& file = deletes->file;
    if (file.content != iceberg::DataFileContent::kEqualityDeletes ||
        !known_.insert(file.file_path).second) {
      continue;
    }
    if (engine::LowerCase(file.file_format) != "parquet") {
      return Status::Unimplemented(fmt::format("{}: equality deletes in {} cannot be read",
                                               file.file_path, file.file_format));
    }
    if (file.key_metadata && !file.key_metadata->empty()) {
      return Status::Unimplemented(
          fmt::format("{} is encrypted: encrypted files cannot be read", file.file_path));
    }
    std::vector<int32_t> ids = file.equality_ids;
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    Set& set = sets_[ids];
    if (set.columns.empty()) {
      for (const int32_t id : ids) {
        const SchemaField* column = FindColumn(metadata_, id);
        if (column == nullptr || column->type.is_nested()) {
          return Status::Unimplemented(fmt::format(
              "{}: equality deletes by field {}, which is no plain top-level column, cannot be "
              "read",
              file.file_path, id));
        }
        set.columns.push_back(*column);
      }
    }
    if (set.columns.empty()) {
      return Status::Corruption(
          fmt::format("{}: equality deletes without columns", file.file_path));
    }
    const iceberg::PartitionSpec* spec = metadata_.FindSpec(file.spec_id);
    const bool everywhere = spec == nullptr || spec->is_unpartitioned();
    set.files.push_back(deletes);
    set.scopes.push_back(everywhere ? kEverywhere : ScopeOf(file));
  }
  return Status::Ok();
}

std::vector<SchemaField> EqualityDeletes::Columns() const {
  std::map<int32_t, const SchemaField*> columns;
  for (const auto& [ids, set] : sets_) {
    for (const SchemaField& column : set.columns) {
      columns[column.id] = &column;
    }
  }
  std::vector<SchemaField> out;
  for (const auto& [id, column] : columns) {
    out.push_back(*column);
  }
  return out;
}

Status EqualityDeletes::MakeViews(engine::Session& session, const std::string& name) {
  for (auto& [ids, set] : sets_) {
    engine::ScanRequest request;
    std::vector<std::string> keys;
    for (const SchemaField& column : set.columns) {
      engine::ScanColumn scan;
      scan.name = fmt::format("e{}", column.id);
      scan.field_id = column.id;
      TARN_ASSIGN_OR_RETURN(scan.type, SqlTypeOf(column.type));
      keys.push_back(scan.name);
      request.columns.push_back(std::move(scan));
    }
    std::vector<int64_t> numbers;
    for (const iceberg::DeleteFilePtr& file : set.files) {
      request.files.push_back({.path = file->file.file_path});
      numbers.push_back(file->sequence_number);
    }
    request.with_position = true;
    TARN_ASSIGN_OR_RETURN(const std::string scan, engine::BuildScan(request));
    set.view = fmt::format("{}_equality_{}", name, fmt::join(ids, "_"));
    const std::string columns = fmt::format("{}", fmt::join(keys, ", "));
    TARN_RETURN_IF_ERROR(session.Execute(fmt::format(
        "CREATE OR REPLACE TEMP VIEW {0} AS SELECT {1}, scope, max(seq) AS seq FROM (SELECT {1}, "
        "{2} AS scope, {3} AS seq FROM ({4}) AS f) AS d GROUP BY ALL",
        engine::QuoteName(set.view), columns, NumberByIndex(set.scopes, "tarn_file"),
        NumberByIndex(numbers, "tarn_file"), scan)));
  }
  return Status::Ok();
}

EqualityDeletes::Joins EqualityDeletes::JoinText(
    const std::map<int32_t, std::string>& columns) const {
  Joins text;
  int count = 0;
  const auto join = [&](const Set& set, const std::string& scope) {
    const std::string alias = fmt::format("d{}", count++);
    std::string on = fmt::format("{}.scope = {}", alias, scope);
    for (const SchemaField& column : set.columns) {
      on += fmt::format(" AND {}.e{} IS NOT DISTINCT FROM s.{}", alias, column.id,
                        columns.at(column.id));
    }
    text.joins += fmt::format(" LEFT JOIN {} AS {} ON {}", engine::QuoteName(set.view), alias, on);
    text.condition += fmt::format("{}({}.seq IS NULL OR {}.seq <= s.tarn_seq)",
                                  text.condition.empty() ? "" : " AND ", alias, alias);
  };
  for (const auto& [ids, set] : sets_) {
    const bool global = std::count(set.scopes.begin(), set.scopes.end(), kEverywhere) > 0;
    const bool scoped = std::any_of(set.scopes.begin(), set.scopes.end(),
                                    [](int64_t scope) { return scope != kEverywhere; });
    if (scoped) {
      join(set, "s.tarn_scope");
    }
    if (global) {
      join(set, std::to_string(kEverywhere));
    }
  }
  return text;
}

}  // namespace tarn::lakehouse
