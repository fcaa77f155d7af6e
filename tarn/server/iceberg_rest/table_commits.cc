// Commits: the changes of one table, or of several in one go.
#include <algorithm>

#include <fmt/format.h>

#include "tarn/catalog/location.h"
#include "tarn/catalog/pointer_store.h"
#include "tarn/server/iceberg_rest/iceberg_api.h"

namespace tarn::server::iceberg_rest {

using access::Role;
using catalog::ObjectKind;
using iceberg::TableUpdate;
using iceberg::table_requirement::AssertCreate;
using iceberg::table_update::AddSnapshot;
using iceberg::table_update::AssignUuid;
using iceberg::table_update::SetLocation;
using iceberg::table_update::SetPartitionStatistics;
using iceberg::table_update::SetStatistics;
using metastore::SqlTransaction;

namespace {

bool MakesTable(const TableCommitRequest& commit) {
  return std::any_of(commit.requirements.begin(), commit.requirements.end(),
                     [](const iceberg::TableRequirement& requirement) {
                       return std::holds_alternative<AssertCreate>(requirement);
                     });
}

template <typename T>
const T* FindUpdate(const std::vector<TableUpdate>& updates) {
  for (const TableUpdate& update : updates) {
    if (const auto* found = std::get_if<T>(&update)) {
      return found;
    }
  }
  return nullptr;
}

// The file that an update adds to the table, or nothing.
std::string_view FileOf(const TableUpdate& update) {
  if (const auto* snapshot = std::get_if<AddSnapshot>(&update)) {
    return snapshot->snapshot.manifest_list;
  }
  if (const auto* statistics = std::get_if<SetStatistics>(&update)) {
    return statistics->statistics.statistics_path;
  }
  if (const auto* statistics = std::get_if<SetPartitionStatistics>(&update)) {
    return statistics->statistics.statistics_path;
  }
  return {};
}

}  // namespace

Result<std::vector<TableUpdate>> IcebergApi::Settled(std::vector<TableUpdate> updates) const {
  std::vector<TableUpdate> settled;
  for (TableUpdate& update : updates) {
    if (auto* location = std::get_if<SetLocation>(&update)) {
      Result<std::string> canonical =
          catalog::CanonicalLocation(deps_.catalog.deps().warehouse, location->location);
      if (!canonical.ok()) {
        if (options_.foreign_locations == ForeignLocations::kRefuse) {
          return canonical.status();
        }
        continue;
      }
      location->location = *std::move(canonical);
    }
    settled.push_back(std::move(update));
  }
  return settled;
}

// What the commit does to one table, once the caller may do it.
Result<catalog::TableChange> IcebergApi::PlanChange(SqlTransaction& sql, RequestContext& context,
                                                    const CatalogPath& path,
                                                    TableCommitRequest commit) {
  catalog::TableChange change;
  const bool makes_table = MakesTable(commit);
  TARN_ASSIGN_OR_RETURN(change.updates, Settled(std::move(commit.updates)));
  change.requirements = std::move(commit.requirements);
  const Result<Target> target = FindTarget(sql, context, path, ObjectKind::kTable, Role::kEditor);
  if (makes_table && target.status().reason() == "NoSuchTableException") {
    const CatalogPath folder{path.prefix, path.levels, {}};
    TARN_ASSIGN_OR_RETURN(const Place place, FindPlace(sql, context, folder, Role::kEditor));
    TARN_RETURN_IF_ERROR(RequireFreeName(sql, place, ObjectKind::kTable, path.name));
    // Some writers send more than they need to; of a table that is not there nothing else holds.
    change.requirements = {AssertCreate{}};
    const auto* uuid = FindUpdate<AssignUuid>(change.updates);
    const std::string own =
        uuid != nullptr ? uuid->uuid : deps_.catalog.deps().uuids.NextV7().ToString();
    if (uuid == nullptr) {
      change.updates.insert(change.updates.begin(), AssignUuid{own});
    }
    if (FindUpdate<SetLocation>(change.updates) == nullptr) {
      TARN_ASSIGN_OR_RETURN(std::string location, LocationFor({}, "tables", own));
      change.updates.insert(change.updates.begin(), SetLocation{std::move(location)});
    }
    change.create = catalog::ObjectPlace{
        .folder = place.folder, .name = path.name, .by = context.principal.user_id};
    return change;
  }
  TARN_RETURN_IF_ERROR(target);
  TARN_RETURN_IF_ERROR(RequireChangeable(sql, context, *target));
  change.table = target->object;
  return change;
}

// Files of snapshots and statistics that the commit adds must not be another table's.
Status IcebergApi::CheckFiles(SqlTransaction& sql, const catalog::TableChange& change) const {
  const storage::ObjectStore& store = deps_.catalog.deps().warehouse;
  catalog::LocationClaim claim{
      .location = {}, .owner = change.table.rid, .folder = change.table.folder};
  if (change.create) {
    TARN_ASSIGN_OR_RETURN(const std::optional<catalog::CatalogObject> made,
                          catalog::FindObject(sql, change.create->folder, change.create->name));
    claim.owner = made ? made->rid : Rid();
    claim.folder = change.create->folder;
  }
  for (const TableUpdate& update : change.updates) {
    const std::string_view file = FileOf(update);
    // Where clients may name foreign locations they also write there; tarn cannot read that.
    const bool foreign = options_.foreign_locations == ForeignLocations::kReplace &&
                         !catalog::CanonicalLocation(store, file).ok();
    if (!file.empty() && !foreign) {
      TARN_RETURN_IF_ERROR(catalog::RequireOwnFile(sql, store, claim, file));
    }
  }
  return Status::Ok();
}

Result<http::Response> IcebergApi::CommitTable(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  TARN_ASSIGN_OR_RETURN(TableCommitRequest commit, ReadTableCommit(context));
  const std::string name = path.identifier().ToString();
  std::vector<catalog::TableChange> changes(1);
  const Status planned = database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(changes[0], PlanChange(sql, context, path, commit));
    return Status::Ok();
  });
  TARN_RETURN_IF_ERROR(AuditDenial(context, "table.commit", name, planned));
  const Result<std::vector<catalog::LoadedTable>> committed =
      deps_.catalog.CommitTables(changes, [&](SqlTransaction& sql) -> Status {
        TARN_RETURN_IF_ERROR(CheckFiles(sql, changes[0]));
        return AuditChange(sql, context, "table.commit", name);
      });
  if (committed.status().code() == ErrorCode::kNotFound && !changes[0].create) {
    // Gone since it was found, or its metadata file is.
    return committed.status().message().starts_with("Table does not exist")
               ? NoObject(ObjectKind::kTable, path.identifier())
               : committed.status();
  }
  TARN_RETURN_IF_ERROR(AuditDenial(context, "table.commit", name, committed.status()));
  return CommittedResponse(committed->front());
}

Result<http::Response> IcebergApi::CommitTransaction(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  TARN_ASSIGN_OR_RETURN(const std::vector<TableCommitRequest> requests, ReadTransaction(context));
  std::string names;
  for (const TableCommitRequest& request : requests) {
    names += (names.empty() ? "" : ", ") + request.identifier->ToString();
  }
  std::vector<catalog::TableChange> changes;
  const Status planned = database().Read([&](SqlTransaction& sql) -> Status {
    changes.clear();
    for (const TableCommitRequest& request : requests) {
      const CatalogPath table{path.prefix, request.identifier->levels, request.identifier->name};
      TARN_ASSIGN_OR_RETURN(catalog::TableChange change, PlanChange(sql, context, table, request));
      changes.push_back(std::move(change));
    }
    return Status::Ok();
  });
  TARN_RETURN_IF_ERROR(AuditDenial(context, "table.commit", names, planned));
  const Result<std::vector<catalog::LoadedTable>> committed =
      deps_.catalog.CommitTables(changes, [&](SqlTransaction& sql) -> Status {
        for (const catalog::TableChange& change : changes) {
          TARN_RETURN_IF_ERROR(CheckFiles(sql, change));
        }
        return AuditChange(sql, context, "table.commit", names);
      });
  TARN_RETURN_IF_ERROR(AuditDenial(context, "table.commit", names, committed.status()));
  return NoContent();
}

}  // namespace tarn::server::iceberg_rest
