#include "tarn/lakehouse/table_commit.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "tarn/base/crash_point.h"
#include "tarn/base/log.h"
#include "tarn/iceberg/snapshot_expiry.h"
#include "tarn/lakehouse/header_columns.h"
#include "tarn/lakehouse/table_files.h"

namespace tarn::lakehouse {

namespace {

// A snapshot expires in groups of this many, so that clean-up reads manifests seldom.
constexpr int32_t kExpiryBatch = 20;

// The file as the published table lists it: without the value of hdr__partition and without the
// statistics of header columns.
iceberg::DataFile AsPublished(iceberg::DataFile file, const iceberg::TableMetadata& internal) {
  const iceberg::PartitionSpec* spec = internal.FindSpec(file.spec_id);
  iceberg::PartitionValues users;
  for (size_t i = 0; spec != nullptr && i < spec->fields.size() && i < file.partition.size(); ++i) {
    if (spec->fields[i].source_id >= kFirstUserFieldId) {
      users.push_back(file.partition[i]);
    }
  }
  file.partition = std::move(users);
  if (file.content == iceberg::DataFileContent::kData) {
    for (const HeaderColumnSpec& column : kHeaderColumns) {
      file.column_sizes.Remove(column.field_id);
      file.value_counts.Remove(column.field_id);
      file.null_value_counts.Remove(column.field_id);
      file.lower_bounds.Remove(column.field_id);
      file.upper_bounds.Remove(column.field_id);
    }
  }
  return file;
}

// True when the delete file is about a data file that the published table does not list.
bool IsAbout(const iceberg::DataFile& deletes, const std::unordered_set<std::string>& paths) {
  return deletes.referenced_data_file && paths.contains(*deletes.referenced_data_file);
}

struct Attempt {
  iceberg::SnapshotProducer producer;
  iceberg::PreparedSnapshot prepared;
};

Result<std::unique_ptr<Attempt>> Prepare(catalog::Catalog& catalog, iceberg::SnapshotUpdate update,
                                         const iceberg::TableMetadata& base, Timestamp now) {
  auto attempt = std::unique_ptr<Attempt>(
      new Attempt{{std::move(update), {catalog.deps().warehouse, catalog.manifest_cache()}}, {}});
  Result<iceberg::PreparedSnapshot> prepared = attempt->producer.Prepare(base, ToMillis(now));
  if (!prepared.ok()) {
    attempt->producer.CleanUp(nullptr);
    return prepared.status();
  }
  attempt->prepared = std::move(prepared).value();
  return attempt;
}

Result<TableCommitted> TryCommit(catalog::Catalog& catalog, const TableCommitRequest& request) {
  TableCommitted committed;
  TARN_ASSIGN_OR_RETURN(committed.before, catalog.LoadTable(request.internal));
  TARN_ASSIGN_OR_RETURN(SnapshotPair pair, request.plan(*committed.before.metadata));
  TARN_ASSIGN_OR_RETURN(
      const std::unique_ptr<Attempt> internal,
      Prepare(catalog, std::move(pair.internal), *committed.before.metadata, request.now));
  std::vector<catalog::TableChange> changes;
  changes.push_back({.table = committed.before.object,
                     .requirements = internal->prepared.requirements,
                     .updates = internal->prepared.updates});
  std::unique_ptr<Attempt> applied;
  if (request.applied && !pair.applied) {
    // It does not change, but what its snapshots refer to must stay.
    TARN_ASSIGN_OR_RETURN(committed.applied_after, catalog.LoadTable(*request.applied));
  }
  if (pair.applied && request.applied) {
    Result<catalog::LoadedTable> table = catalog.LoadTable(*request.applied);
    Result<std::unique_ptr<Attempt>> attempt =
        table.ok() ? Prepare(catalog, std::move(*pair.applied), *table->metadata, request.now)
                   : Result<std::unique_ptr<Attempt>>(table.status());
    if (!attempt.ok()) {
      internal->producer.CleanUp(nullptr);
      return attempt.status();
    }
    applied = std::move(attempt).value();
    committed.applied_before = *table;
    changes.push_back({.table = table->object,
                       .requirements = applied->prepared.requirements,
                       .updates = applied->prepared.updates});
  }
  committed.snapshot_id = internal->prepared.snapshot.snapshot_id;
  const std::string uuid = committed.before.metadata->table_uuid;
  CrashPoint("lakehouse-before-commit");
  Result<std::vector<catalog::LoadedTable>> tables =
      catalog.CommitTables(changes, [&](metastore::SqlTransaction& sql) -> Status {
        TARN_RETURN_IF_ERROR(WriteInputs(sql, uuid, committed.snapshot_id, request.inputs));
        return request.also ? request.also(sql) : Status::Ok();
      });
  if (!tables.ok()) {
    if (tables.status().code() != ErrorCode::kCommitStateUnknown) {
      internal->producer.CleanUp(nullptr);
      if (applied != nullptr) {
        applied->producer.CleanUp(nullptr);
      }
    }
    return tables.status();
  }
  internal->producer.CleanUp(&internal->prepared.snapshot);
  committed.after = tables->front();
  if (applied != nullptr) {
    applied->producer.CleanUp(&applied->prepared.snapshot);
    committed.applied_after = tables->back();
  }
  return committed;
}

Status RemoveUnreachable(catalog::Catalog& catalog, const catalog::LoadedTable& before,
                         const catalog::LoadedTable& after,
                         const std::optional<catalog::LoadedTable>& applied) {
  storage::ObjectStore& store = catalog.deps().warehouse;
  if (before.metadata->snapshots.size() < after.metadata->snapshots.size()) {
    return Status::Ok();  // Nothing expired.
  }
  TARN_ASSIGN_OR_RETURN(const iceberg::UnreachableFiles files,
                        iceberg::FindUnreachableFiles(store, catalog.manifest_cache(),
                                                      *before.metadata, *after.metadata));
  std::unordered_set<std::string> kept;
  if (applied && !files.data_files.empty()) {
    TARN_ASSIGN_OR_RETURN(
        const std::vector<std::string> referenced,
        iceberg::ListReferencedFiles(store, catalog.manifest_cache(), *applied->metadata,
                                     applied->object.metadata_location));
    kept.insert(referenced.begin(), referenced.end());
  }
  for (const std::string& file : files.All()) {
    if (kept.contains(file)) {
      continue;
    }
    TARN_ASSIGN_OR_RETURN(const std::string key, storage::KeyOf(store, file));
    TARN_RETURN_IF_ERROR(store.Delete(key));
  }
  return Status::Ok();
}

}  // namespace

std::string SummaryOf(const iceberg::TableMetadata& metadata, std::string_view key) {
  const iceberg::Snapshot* snapshot = metadata.CurrentSnapshot();
  if (snapshot == nullptr) {
    return {};
  }
  const auto found = snapshot->summary.find(std::string(key));
  return found == snapshot->summary.end() ? std::string() : found->second;
}

Result<TableCommitted> CommitSnapshots(catalog::Catalog& catalog,
                                       const TableCommitRequest& request) {
  for (int attempt = 1;; ++attempt) {
    Result<TableCommitted> committed = TryCommit(catalog, request);
    if (committed.ok() || committed.status().code() != ErrorCode::kConflict ||
        attempt == kCommitAttemptsMax) {
      return committed;
    }
  }
}

void RemoveExpiredFiles(catalog::Catalog& catalog, const TableCommitted& committed) {
  Status status =
      RemoveUnreachable(catalog, committed.before, committed.after, committed.applied_after);
  if (status.ok() && committed.applied_before && committed.applied_after) {
    status = RemoveUnreachable(catalog, *committed.applied_before, *committed.applied_after, {});
  }
  if (!status.ok()) {
    Log(LogLevel::kWarning, "lakehouse",
        fmt::format("files of expired snapshots of {} stay for orphan clean-up: {}",
                    committed.after.object.name, status.ToString()));
  }
}

iceberg::SnapshotUpdate PublishedUpdate(const ApplyResult& result,
                                        const iceberg::TableMetadata& internal) {
  iceberg::SnapshotUpdate update;
  update.operation = iceberg::SnapshotOperation::kOverwrite;
  for (const iceberg::DataFile& file : result.current) {
    update.added_data_files.push_back(AsPublished(file, internal));
  }
  std::unordered_set<std::string> hidden;  // Files of rows that soft_delete keeps.
  for (const iceberg::DataFile& file : result.removed) {
    if (!HoldsDeletesOnly(file)) {
      update.removed_data_files.push_back(AsPublished(file, internal));
    }
  }
  for (const std::string& path : result.hidden_paths) {
    hidden.insert(path);
  }
  for (const iceberg::DataFile& file : result.deletes) {
    if (!IsAbout(file, hidden)) {
      update.added_delete_files.push_back(AsPublished(file, internal));
    }
  }
  for (const iceberg::DataFile& file : result.removed_deletes) {
    if (!IsAbout(file, hidden)) {
      update.removed_delete_files.push_back(AsPublished(file, internal));
    }
  }
  return update;
}

iceberg::ExpiryOptions ExpiryOf(const SnapshotRetention& retention) {
  iceberg::ExpiryOptions options;
  options.max_age_ms = retention.age_max.count() / 1000;
  options.min_keep = retention.min_keep;
  options.max_count = retention.count_max;
  options.batch = kExpiryBatch;
  return options;
}

}  // namespace tarn::lakehouse
