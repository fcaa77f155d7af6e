#include "tarn/iceberg/update/table_operation.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

namespace tarn::iceberg {
namespace {

const Snapshot* HeadOf(const OperationContext& context) {
  return context.metadata.FindSnapshotOf(context.branch);
}

Result<std::vector<FileScanTask>> PlanHead(const OperationContext& context,
                                           const Expression& filter) {
  const Snapshot* head = HeadOf(context);
  if (head == nullptr) {
    return std::vector<FileScanTask>();
  }
  return PlanScan(context.store, context.cache, context.metadata, head->snapshot_id, filter, {});
}

SnapshotUpdate StartUpdate(const OperationContext& context) {
  SnapshotUpdate update;
  update.branch = context.branch;
  if (const Snapshot* head = HeadOf(context)) {
    update.validation.starting_snapshot_id = head->snapshot_id;
  }
  return update;
}

// What the snapshot did, by what it holds.
SnapshotOperation OperationOf(const SnapshotUpdate& update) {
  const bool adds = !update.added_data_files.empty();
  const bool removes = !update.removed_data_files.empty() || !update.added_delete_files.empty() ||
                       !update.removed_delete_files.empty();
  if (adds && removes) {
    return SnapshotOperation::kOverwrite;
  }
  return removes ? SnapshotOperation::kDelete : SnapshotOperation::kAppend;
}

// Deletes that are about one removed file alone go with it without being named.
void RemoveWhole(const std::vector<FileScanTask>& tasks, SnapshotUpdate& update) {
  for (const FileScanTask& task : tasks) {
    update.removed_data_files.push_back(task.file);
  }
}

Status RequireNoPartial(const FilteredFiles& files, const Expression& filter) {
  if (files.partial.empty()) {
    return Status::Ok();
  }
  return Status::InvalidArgument(
      fmt::format("Cannot delete file where some, but not all, rows match filter {}: {}",
                  FormatExpression(filter), files.partial.front().file.file_path));
}

Status RequireInside(const OperationContext& context, const Expression& filter,
                     const std::vector<DataFile>& added) {
  const Schema& schema = context.metadata.CurrentSchema();
  TARN_ASSIGN_OR_RETURN(const Expression bound, Bind(filter, schema));
  for (const DataFile& file : added) {
    const PartitionSpec* spec = context.metadata.FindSpec(file.spec_id);
    const bool by_partition =
        spec != nullptr &&
        ResidualOf(bound, schema, *spec, file.partition).kind == ExpressionKind::kTrue;
    if (!by_partition && !MustMatchFile(bound, schema, file)) {
      return Status::InvalidArgument(
          fmt::format("Cannot append file with rows that do not match filter {}: {}",
                      FormatExpression(filter), file.file_path));
    }
  }
  return Status::Ok();
}

}  // namespace

Result<IsolationLevel> IsolationOf(const TableMetadata& metadata, std::string_view operation) {
  const std::string key = fmt::format("write.{}.isolation-level", operation);
  const auto found = metadata.properties.find(key);
  if (found == metadata.properties.end() || found->second == "serializable") {
    return IsolationLevel::kSerializable;
  }
  if (found->second == "snapshot") {
    return IsolationLevel::kSnapshot;
  }
  return Status::InvalidArgument(
      fmt::format("{} is \"{}\": it can be serializable or snapshot", key, found->second));
}

Result<FilteredFiles> SplitByFilter(const OperationContext& context, const Expression& filter) {
  FilteredFiles files;
  TARN_ASSIGN_OR_RETURN(std::vector<FileScanTask> tasks, PlanHead(context, filter));
  const Snapshot* head = HeadOf(context);
  for (FileScanTask& task : tasks) {
    // A residual of "true": the partition alone decides for every row.
    const bool whole = task.residual.kind == ExpressionKind::kTrue ||
                       MustMatchFile(task.residual, context.metadata.SchemaOf(*head), task.file);
    (whole ? files.whole : files.partial).push_back(std::move(task));
  }
  return files;
}

Result<SnapshotUpdate> DeleteByFilter(const OperationContext& context, const Expression& filter) {
  TARN_ASSIGN_OR_RETURN(const FilteredFiles files, SplitByFilter(context, filter));
  TARN_RETURN_IF_ERROR(RequireNoPartial(files, filter));
  SnapshotUpdate update = StartUpdate(context);
  RemoveWhole(files.whole, update);
  update.operation = SnapshotOperation::kDelete;
  return update;
}

Result<SnapshotUpdate> OverwriteByFilter(const OperationContext& context, const Expression& filter,
                                         std::vector<DataFile> added, IsolationLevel isolation) {
  TARN_RETURN_IF_ERROR(RequireInside(context, filter, added));
  TARN_ASSIGN_OR_RETURN(const FilteredFiles files, SplitByFilter(context, filter));
  TARN_RETURN_IF_ERROR(RequireNoPartial(files, filter));
  SnapshotUpdate update = StartUpdate(context);
  RemoveWhole(files.whole, update);
  update.added_data_files = std::move(added);
  update.operation = OperationOf(update);
  update.validation.no_new_deletes = true;
  if (isolation == IsolationLevel::kSerializable) {
    update.validation.no_new_data = filter;
  }
  return update;
}

Result<SnapshotUpdate> ReplacePartitions(const OperationContext& context,
                                         std::vector<DataFile> added, IsolationLevel isolation) {
  using Key = std::pair<int32_t, PartitionValues>;
  const auto hash = [](const Key& key) {
    return PartitionValuesHash{}(key.second) ^ static_cast<size_t>(key.first);
  };
  std::unordered_set<Key, decltype(hash)> partitions(16, hash);
  for (const DataFile& file : added) {
    partitions.emplace(file.spec_id, file.partition);
  }
  TARN_ASSIGN_OR_RETURN(const std::vector<FileScanTask> tasks,
                        PlanHead(context, Expression::True()));
  SnapshotUpdate update = StartUpdate(context);
  for (const FileScanTask& task : tasks) {
    if (partitions.contains(Key{task.file.spec_id, task.file.partition})) {
      update.removed_data_files.push_back(task.file);
    }
  }
  if (isolation == IsolationLevel::kSerializable) {
    for (const auto& [spec_id, values] : partitions) {
      update.validation.no_new_data_in.push_back({.spec_id = spec_id, .values = values});
    }
  }
  update.added_data_files = std::move(added);
  update.operation = SnapshotOperation::kOverwrite;
  update.summary["replace-partitions"] = "true";
  update.validation.no_new_deletes = true;
  return update;
}

Result<SnapshotUpdate> DeltaUpdate(const OperationContext& context, RowDelta delta) {
  SnapshotUpdate update = StartUpdate(context);
  update.added_data_files = std::move(delta.added);
  update.added_delete_files = std::move(delta.deletes.added);
  update.removed_delete_files = std::move(delta.deletes.removed);
  update.removed_data_files = std::move(delta.removed_files);
  update.validation.referenced_data_files = std::move(delta.deletes.data_files);
  update.validation.no_new_deletes = true;
  if (delta.isolation == IsolationLevel::kSerializable) {
    update.validation.no_new_data = std::move(delta.filter);
  }
  update.operation = OperationOf(update);
  return update;
}

Result<SnapshotUpdate> RewriteUpdate(const OperationContext& context,
                                     const std::vector<FileScanTask>& replaced,
                                     std::vector<DataFile> added) {
  const Snapshot* head = HeadOf(context);
  if (head == nullptr || replaced.empty()) {
    return Status::InvalidArgument("there are no files to rewrite");
  }
  SnapshotUpdate update = StartUpdate(context);
  RemoveWhole(replaced, update);
  update.added_data_files = std::move(added);
  update.operation = SnapshotOperation::kReplace;
  update.data_sequence_number = head->sequence_number;
  update.validation.no_new_deletes = true;
  return update;
}

}  // namespace tarn::iceberg
