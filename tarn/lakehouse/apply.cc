#include "tarn/lakehouse/apply.h"

#include <algorithm>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/base/crash_point.h"
#include "tarn/iceberg/position_delete.h"
#include "tarn/iceberg/snapshot_update.h"
#include "tarn/lakehouse/apply_pass.h"
#include "tarn/lakehouse/apply_plan.h"
#include "tarn/lakehouse/file_rows.h"
#include "tarn/lakehouse/header_columns.h"
#include "tarn/lakehouse/internal_schema.h"

namespace tarn::lakehouse {

namespace {

// Bytes of a key in memory, when it is a text of unknown length.
constexpr int64_t kKeyBytesPerColumn = 32;

TableWriterOptions WriterOptions(const ApplyRequest& request, std::string_view partition) {
  return {
      .metadata = &request.metadata,
      .spec_id = request.metadata.default_spec_id,
      .partition = std::string(partition),
      .sort = SortRows::kByTableOrder,
      .target_bytes = request.metadata.LongProperty("write.target-file-size-bytes", 256LL << 20)};
}

// The writers of one apply; abandoned together.
struct Writers {
  Writers(const ApplyRequest& request, const ApplyDeps& deps)
      : current(WriterOptions(request, kCurrentPartition), {deps.store, deps.uuids}),
        current_deleted(WriterOptions(request, kCurrentPartition), {deps.store, deps.uuids}),
        prior(WriterOptions(request, kPriorPartition), {deps.store, deps.uuids}),
        prior_deleted(WriterOptions(request, kPriorPartition), {deps.store, deps.uuids}) {}

  TableWriter current;
  TableWriter current_deleted;
  TableWriter prior;
  TableWriter prior_deleted;
};

// Moves the live rows of a file to the writer.
Result<int64_t> CopyLiveRows(const ApplyRequest& request, const ApplyDeps& deps,
                             const iceberg::DataFile& file, const std::vector<int64_t>& dead,
                             TableWriter& writer) {
  std::vector<std::string> columns;
  for (const HeaderColumn column :
       {HeaderColumn::kKeyHash, HeaderColumn::kOperation, HeaderColumn::kFromTimestamp,
        HeaderColumn::kInsertedTimestamp, HeaderColumn::kModifiedTimestamp}) {
    columns.emplace_back(Name(column));
  }
  const std::vector<std::string> users = UserColumnNames(request.metadata.CurrentSchema());
  columns.insert(columns.end(), users.begin(), users.end());
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<FileRows> rows,
                        FileRows::Open(deps.store, {.file_path = file.file_path,
                                                    .schema = &request.metadata.CurrentSchema(),
                                                    .columns = columns}));
  int64_t moved = 0;
  while (true) {
    TARN_ASSIGN_OR_RETURN(const FileRowsBatch batch, rows->Next());
    if (batch.rows == nullptr) {
      return moved;
    }
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> live,
                          TakeRows(batch.rows, LiveRows(batch, dead)));
    moved += live->num_rows();
    TARN_RETURN_IF_ERROR(writer.Write(live));
  }
}

// Gives one file of Current its new deletes, or replaces it.
Status SettleFile(const ApplyRequest& request, const ApplyDeps& deps, const FileScanTask& task,
                  const iceberg::Positions& before, iceberg::Positions added, Writers& writers,
                  ApplyResult& result) {
  std::sort(added.begin(), added.end());
  const iceberg::Positions dead = iceberg::MergePositions(before, added);
  switch (ChooseFileAction(task.file.record_count, static_cast<int64_t>(before.size()),
                           static_cast<int64_t>(dead.size()))) {
    case FileAction::kKeep:
      return Status::Ok();
    case FileAction::kRemove:
      result.removed.push_back(task.file);
      return Status::Ok();
    case FileAction::kRewrite: {
      TableWriter& writer = HoldsDeletesOnly(task.file) ? writers.current_deleted : writers.current;
      TARN_ASSIGN_OR_RETURN(const int64_t moved,
                            CopyLiveRows(request, deps, task.file, dead, writer));
      result.counts.moved_rows += moved;
      ++result.counts.rewritten_files;
      result.removed.push_back(task.file);
      return Status::Ok();
    }
    case FileAction::kWriteDeletes:
      break;
  }
  iceberg::PositionDeleteOptions options;
  options.file_path = fmt::format("{}/{}-deletes.parquet", iceberg::DataFolder(request.metadata),
                                  deps.uuids.NextV7().ToString());
  options.data_file_path = task.file.file_path;
  options.spec_id = task.file.spec_id;
  options.partition = task.file.partition;
  TARN_ASSIGN_OR_RETURN(iceberg::DataFile deletes,
                        iceberg::WritePositionDeletes(deps.store, options, dead));
  result.deletes.push_back(std::move(deletes));
  for (const iceberg::DeleteFilePtr& old : task.deletes) {
    result.removed_deletes.push_back(old->file);
  }
  return Status::Ok();
}

std::string NewestIdentifier(const TableFiles& files) {
  std::string newest;
  for (const FileScanTask& task : files.changes) {
    const std::string* upper =
        task.file.upper_bounds.Find(Spec(HeaderColumn::kChangeIdentifier).field_id);
    if (upper != nullptr && *upper > newest) {
      newest = *upper;
    }
  }
  return newest;
}

Status FoldAndEmit(const ApplyRequest& request, const ApplyDeps& deps, const DeletedByFile& deleted,
                   DeletedByFile& dead, Writers& writers, ApplyResult& result) {
  const int64_t passes =
      PassCount(request.files.change_rows(),
                kKeyBytesPerColumn * static_cast<int64_t>(request.spec.key.size()),
                request.spec.memory_bytes);
  const ApplyWriters targets{writers.current, writers.current_deleted, writers.prior,
                             writers.prior_deleted};
  for (int64_t number = 0; number < passes; ++number) {
    ApplyPass pass(
        request, deps,
        {.number = static_cast<uint64_t>(number), .count = static_cast<uint64_t>(passes)});
    TARN_RETURN_IF_ERROR(pass.Fold(deleted));
    TARN_RETURN_IF_ERROR(pass.Emit(targets, dead, result.counts));
  }
  return Status::Ok();
}

Status Run(const ApplyRequest& request, const ApplyDeps& deps, Writers& writers,
           ApplyResult& result) {
  result.newest_identifier = NewestIdentifier(request.files);
  for (const FileScanTask& task : request.files.current) {
    if (HoldsDeletesOnly(task.file)) {
      result.hidden_paths.push_back(task.file.file_path);
    }
  }
  DeletedByFile deleted(request.files.current.size());
  for (size_t i = 0; i < deleted.size(); ++i) {
    TARN_ASSIGN_OR_RETURN(deleted[i], DeletedPositions(deps.store, request.files.current[i]));
  }
  DeletedByFile dead(request.files.current.size());
  TARN_RETURN_IF_ERROR(FoldAndEmit(request, deps, deleted, dead, writers, result));
  CrashPoint("apply-before-settle");
  for (size_t i = 0; i < dead.size(); ++i) {
    TARN_RETURN_IF_ERROR(SettleFile(request, deps, request.files.current[i], deleted[i],
                                    std::move(dead[i]), writers, result));
  }
  TARN_ASSIGN_OR_RETURN(result.current, writers.current.Close());
  TARN_ASSIGN_OR_RETURN(result.current_deleted, writers.current_deleted.Close());
  TARN_ASSIGN_OR_RETURN(result.prior, writers.prior.Close());
  TARN_ASSIGN_OR_RETURN(std::vector<iceberg::DataFile> prior_deleted,
                        writers.prior_deleted.Close());
  std::move(prior_deleted.begin(), prior_deleted.end(), std::back_inserter(result.prior));
  return Status::Ok();
}

}  // namespace

Result<ApplyResult> RunApply(const ApplyRequest& request, const ApplyDeps& deps) {
  ApplyResult result;
  Writers writers(request, deps);
  const Status status = Run(request, deps, writers, result);
  if (!status.ok()) {
    RemoveFiles(deps.store, AddedFiles(result));
    return status.WithContext("apply changes of " + request.spec.name);
  }
  CrashPoint("apply-after-files");
  return result;
}

std::vector<iceberg::DataFile> AddedFiles(const ApplyResult& result) {
  std::vector<iceberg::DataFile> files;
  for (const std::vector<iceberg::DataFile>* group :
       {&result.current, &result.current_deleted, &result.prior, &result.deletes}) {
    files.insert(files.end(), group->begin(), group->end());
  }
  return files;
}

}  // namespace tarn::lakehouse
