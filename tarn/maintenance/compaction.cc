#include "tarn/maintenance/compaction.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/iceberg/delete_index.h"
#include "tarn/iceberg/update/table_operation.h"
#include "tarn/lakehouse/scan/snapshot_commit.h"
#include "tarn/lakehouse/scan/snapshot_relation.h"
#include "tarn/lakehouse/scan/table_rows.h"
#include "tarn/lakehouse/table_writer.h"

namespace tarn::maintenance {

namespace {

using iceberg::DataFile;
using iceberg::DataFileContent;
using iceberg::FileScanTask;
using iceberg::TableMetadata;

// Deletes that make a file worth rewriting by themselves.
bool IsMuchDeleted(const FileScanTask& task, const CompactionOptions& options) {
  int64_t deleted = 0;
  for (const iceberg::DeleteFilePtr& deletes : task.deletes) {
    if (deletes->file.content == DataFileContent::kEqualityDeletes) {
      return true;
    }
    // Files that cover several data files tell nothing of this one.
    deleted += iceberg::ReferencedDataFile(deletes->file) ? deletes->file.record_count : 0;
  }
  return deleted > 0 && static_cast<double>(deleted) >=
                            options.deleted_ratio * static_cast<double>(task.file.record_count);
}

bool IsOfWrongSize(const DataFile& file, const CompactionOptions& options) {
  const auto size = static_cast<double>(file.file_size_bytes);
  const auto target = static_cast<double>(options.target_bytes);
  return size < options.small_ratio * target || size > options.large_ratio * target;
}

// A group of one is worth it only for its deletes, or to be cut.
bool IsWorthIt(const CompactionGroup& group, const CompactionOptions& options) {
  return group.files.size() > 1 || IsMuchDeleted(group.files.front(), options) ||
         static_cast<double>(group.size_bytes) >
             options.large_ratio * static_cast<double>(options.target_bytes);
}

class Compactor {
 public:
  Compactor(catalog::Catalog& catalog, engine::Engine& engine, const catalog::LoadedTable& table)
      : catalog_(catalog),
        engine_(engine),
        table_(table),
        lineage_(table.metadata->format_version >= 3),
        layout_(lineage_ ? lakehouse::WithLineageColumns(*table.metadata) : *table.metadata) {}

  Status Rewrite(const CompactionGroup& group, const CompactionOptions& options,
                 const metastore::SqlFunction& also, CompactionReport& report) {
    int64_t rows = 0;
    TARN_ASSIGN_OR_RETURN(std::vector<DataFile> written, WriteRows(group, options, rows));
    const iceberg::OperationContext context{.store = catalog_.deps().warehouse,
                                            .cache = catalog_.manifest_cache(),
                                            .metadata = *table_.metadata};
    Result<iceberg::SnapshotUpdate> update = iceberg::RewriteUpdate(context, group.files, written);
    const Status committed =
        update.ok()
            ? StatusOf(lakehouse::CommitSnapshot(catalog_, table_.object.rid, *update, also))
            : update.status();
    if (!committed.ok() && committed.code() != ErrorCode::kCommitStateUnknown) {
      lakehouse::RemoveFiles(catalog_.deps().warehouse, written);
    }
    if (committed.code() == ErrorCode::kConflict) {
      ++report.conflicts;
      return Status::Ok();
    }
    TARN_RETURN_IF_ERROR(committed);
    report.files_after += static_cast<int64_t>(written.size());
    for (const DataFile& file : written) {
      report.bytes_after += file.file_size_bytes;
    }
    for (const FileScanTask& task : group.files) {
      report.deleted_rows += task.file.record_count;
    }
    report.deleted_rows -= rows;
    return Status::Ok();
  }

 private:
  Result<std::vector<DataFile>> WriteRows(const CompactionGroup& group,
                                          const CompactionOptions& options, int64_t& rows) {
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Session> session, engine_.OpenSession());
    TARN_RETURN_IF_ERROR(
        lakehouse::MakeSnapshotRelation(*session, catalog_.deps().warehouse,
                                        {.name = "tarn_compaction",
                                         .metadata = table_.metadata.get(),
                                         .columns = table_.metadata->CurrentSchema().fields,
                                         .files = group.files,
                                         .with_lineage = lineage_}));
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<engine::ArrowStream> stream,
                          session->Query("SELECT * FROM tarn_compaction"));
    lakehouse::TableWriter writer({.metadata = &layout_,
                                   .spec_id = table_.metadata->default_spec_id,
                                   .partition = {},
                                   .sort = lakehouse::SortRuleOf(*table_.metadata),
                                   .target_bytes = options.target_bytes},
                                  {catalog_.deps().warehouse, catalog_.deps().uuids});
    while (true) {
      TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch, stream->Next());
      if (batch == nullptr) {
        break;
      }
      TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> typed,
                            lakehouse::AsTableRows(layout_.CurrentSchema().fields, batch));
      TARN_RETURN_IF_ERROR(writer.Write(typed));
    }
    rows = writer.row_count();
    return writer.Close();
  }

  catalog::Catalog& catalog_;
  engine::Engine& engine_;
  const catalog::LoadedTable& table_;
  const bool lineage_;
  const TableMetadata layout_;  // Of the files to write.
};

}  // namespace

CompactionOptions CompactionOptions::FromProperties(const TableMetadata& metadata) {
  CompactionOptions options;
  const int64_t target =
      metadata.LongProperty("write.target-file-size-bytes", options.target_bytes);
  options.target_bytes = std::max<int64_t>(target, 1 << 20);
  return options;
}

std::vector<CompactionGroup> PlanCompaction(const std::vector<FileScanTask>& files,
                                            const CompactionOptions& options) {
  using Key = std::pair<int32_t, iceberg::PartitionValues>;
  const auto hash = [](const Key& key) {
    return iceberg::PartitionValuesHash{}(key.second) ^ static_cast<size_t>(key.first);
  };
  std::unordered_map<Key, size_t, decltype(hash)> open(16, hash);  // Newest group of a partition.
  std::vector<CompactionGroup> groups;
  for (const FileScanTask& task : files) {
    if (!IsOfWrongSize(task.file, options) && !IsMuchDeleted(task, options)) {
      continue;
    }
    const auto [entry, inserted] =
        open.try_emplace(Key{task.file.spec_id, task.file.partition}, groups.size());
    const bool full = !inserted && groups[entry->second].size_bytes + task.file.file_size_bytes >
                                       options.group_bytes_max;
    if (inserted || full) {
      entry->second = groups.size();
      groups.emplace_back();
    }
    CompactionGroup& group = groups[entry->second];
    group.size_bytes += task.file.file_size_bytes;
    group.files.push_back(task);
  }
  std::erase_if(groups, [&](const CompactionGroup& group) { return !IsWorthIt(group, options); });
  return groups;
}

Result<CompactionReport> CompactTable(catalog::Catalog& catalog, engine::Engine& engine,
                                      const Rid& rid, const CompactionRequest& request) {
  TARN_ASSIGN_OR_RETURN(catalog::LoadedTable table, catalog.LoadTable(rid));
  if (table.object.writers == catalog::Writers::kProduct) {
    return Status::FailedPrecondition(fmt::format(
        "table {} belongs to a pipeline: its applies rewrite its files", table.object.name));
  }
  if (table.metadata->format_version < 2) {
    return Status::Unimplemented(fmt::format(
        "table {} is of format version 1, which is read only here: upgrade it to version 2 first",
        table.object.name));
  }
  const CompactionOptions options = CompactionOptions::FromProperties(*table.metadata);
  TARN_ASSIGN_OR_RETURN(const std::vector<FileScanTask> files,
                        iceberg::PlanScan(catalog.deps().warehouse, catalog.manifest_cache(),
                                          *table.metadata, {}, iceberg::Expression::True(), {}));
  const std::vector<CompactionGroup> groups = PlanCompaction(files, options);
  CompactionReport report;
  for (const CompactionGroup& group : groups) {
    ++report.groups;
    report.files_before += static_cast<int64_t>(group.files.size());
    report.bytes_before += group.size_bytes;
    if (!request.dry_run) {
      TARN_RETURN_IF_ERROR(
          Compactor(catalog, engine, table).Rewrite(group, options, request.also, report));
    }
  }
  return report;
}

}  // namespace tarn::maintenance
