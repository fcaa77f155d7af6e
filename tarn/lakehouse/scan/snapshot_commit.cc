#include "tarn/lakehouse/scan/snapshot_commit.h"

#include <fmt/format.h>

namespace tarn::lakehouse {

namespace {

constexpr int kAttemptsMax = 10;

}  // namespace

Result<SnapshotCommit> CommitSnapshot(catalog::Catalog& catalog, const Rid& table,
                                      const iceberg::SnapshotUpdate& update,
                                      const metastore::SqlFunction& also) {
  // One producer over all attempts: manifests of new files are written once.
  iceberg::SnapshotProducer producer(update, {catalog.deps().warehouse, catalog.manifest_cache()});
  for (int attempt = 1;; ++attempt) {
    SnapshotCommit commit;
    TARN_ASSIGN_OR_RETURN(commit.before, catalog.LoadTable(table));
    if (commit.before.object.writers != catalog::Writers::kAnyone) {
      return Status::PermissionDenied(
          fmt::format("table {} is written by its pipeline only", commit.before.object.name));
    }
    const Result<iceberg::PreparedSnapshot> prepared =
        producer.Prepare(*commit.before.metadata, ToMillis(catalog.deps().clock.Now()));
    if (!prepared.ok()) {
      producer.CleanUp(nullptr);
      return prepared.status().WithContext(commit.before.object.name);
    }
    Result<std::vector<catalog::LoadedTable>> committed =
        catalog.CommitTables({{.table = commit.before.object,
                               .requirements = prepared->requirements,
                               .updates = prepared->updates}},
                             also);
    if (committed.ok()) {
      producer.CleanUp(&prepared->snapshot);
      commit.after = committed->front();
      commit.snapshot_id = prepared->snapshot.snapshot_id;
      return commit;
    }
    const ErrorCode code = committed.status().code();
    if (code == ErrorCode::kCommitStateUnknown) {
      return committed.status();
    }
    if (code != ErrorCode::kConflict || attempt == kAttemptsMax) {
      producer.CleanUp(nullptr);
      return committed.status();
    }
  }
}

}  // namespace tarn::lakehouse
