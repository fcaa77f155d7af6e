#include "tarn/maintenance/expiry.h"

#include <fmt/format.h>

#include "tarn/iceberg/metadata_builder.h"
#include "tarn/iceberg/snapshot_expiry.h"

namespace tarn::maintenance {

namespace {

using iceberg::ExpiryPlan;
using iceberg::TableMetadata;
using iceberg::TableUpdate;
using iceberg::UnreachableFiles;

Status RequireExpirable(const catalog::LoadedTable& table) {
  if (!table.metadata->BoolProperty("gc.enabled", true)) {
    return Status::FailedPrecondition(
        fmt::format("table {}: gc.enabled is false: its files may be those of another table",
                    table.object.name));
  }
  if (table.object.writers == catalog::Writers::kProduct) {
    return Status::FailedPrecondition(fmt::format(
        "table {} belongs to a pipeline: its snapshots expire with its commits, as the pipeline's "
        "snapshots settings say",
        table.object.name));
  }
  return Status::Ok();
}

iceberg::ExpiryOptions OptionsOf(const TableMetadata& metadata, const ExpiryRequest& request) {
  iceberg::ExpiryOptions options = iceberg::ExpiryOptions::FromProperties(metadata);
  if (request.older_than) {
    options.max_age_ms = request.older_than->count();
  }
  if (request.keep) {
    options.min_keep = std::max(*request.keep, 1);
  }
  return options;
}

// Every branch and tag must be where it was when the plan was made.
std::vector<iceberg::TableRequirement> RequireRefs(const TableMetadata& metadata) {
  std::vector<iceberg::TableRequirement> requirements;
  requirements.emplace_back(iceberg::table_requirement::AssertTableUuid{metadata.table_uuid});
  for (const auto& [name, ref] : metadata.refs) {
    requirements.emplace_back(
        iceberg::table_requirement::AssertRefSnapshotId{name, ref.snapshot_id});
  }
  return requirements;
}

void Count(const UnreachableFiles& files, ExpiryReport& report) {
  report.manifest_lists = static_cast<int64_t>(files.manifest_lists.size());
  report.manifests = static_cast<int64_t>(files.manifests.size());
  report.data_files = static_cast<int64_t>(files.data_files.size());
  report.statistics = static_cast<int64_t>(files.statistics.size());
}

}  // namespace

Result<ExpiryReport> ExpireSnapshots(catalog::Catalog& catalog, const Rid& table,
                                     const ExpiryRequest& request) {
  storage::ObjectStore& store = catalog.deps().warehouse;
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable before, catalog.LoadTable(table));
  TARN_RETURN_IF_ERROR(RequireExpirable(before));
  const int64_t now_ms = ToMillis(catalog.deps().clock.Now());
  const ExpiryPlan plan =
      iceberg::PlanExpiry(*before.metadata, OptionsOf(*before.metadata, request), now_ms);
  ExpiryReport report{.snapshot_ids = plan.snapshot_ids, .refs = plan.refs};
  if (plan.empty()) {
    return report;
  }
  const std::vector<TableUpdate> updates = iceberg::UpdatesFor(plan);
  if (request.dry_run) {
    TARN_ASSIGN_OR_RETURN(const iceberg::UpdateResult after,
                          iceberg::ApplyUpdates(before.metadata.get(), updates, now_ms));
    TARN_ASSIGN_OR_RETURN(const UnreachableFiles files,
                          iceberg::FindUnreachableFiles(store, catalog.manifest_cache(),
                                                        *before.metadata, after.metadata));
    Count(files, report);
    return report;
  }
  TARN_ASSIGN_OR_RETURN(const std::vector<catalog::LoadedTable> committed,
                        catalog.CommitTables({{.table = before.object,
                                               .requirements = RequireRefs(*before.metadata),
                                               .updates = updates}},
                                             request.also));
  TARN_ASSIGN_OR_RETURN(
      const UnreachableFiles files,
      iceberg::FindUnreachableFiles(store, catalog.manifest_cache(), *before.metadata,
                                    *committed.front().metadata));
  Count(files, report);
  for (const std::string& uri : files.All()) {
    const Result<std::string> key = storage::KeyOf(store, uri);
    const Status removed = key.ok() ? store.Delete(*key) : key.status();
    report.left_behind += removed.ok() ? 0 : 1;
  }
  return report;
}

}  // namespace tarn::maintenance
