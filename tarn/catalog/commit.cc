// Commits of catalog.h: requirements, updates, files, and the one SQL transaction that moves all
// pointers.
#include "tarn/iceberg/commit.h"

#include <algorithm>

#include "tarn/base/crash_point.h"
#include "tarn/catalog/catalog.h"
#include "tarn/catalog/catalog_state.h"
#include "tarn/catalog/location.h"
#include "tarn/iceberg/metadata_builder.h"

namespace tarn::catalog {

namespace {

using iceberg::table_update::AddSnapshot;
using iceberg::table_update::SetSnapshotRef;

// True when a commit of these updates has been made already: its snapshots are in the table, and
// the refs it set have them as heads or ancestors.
bool IsApplied(const iceberg::TableMetadata& base,
               const std::vector<iceberg::TableUpdate>& updates) {
  bool any = false;
  for (const iceberg::TableUpdate& update : updates) {
    if (const auto* add = std::get_if<AddSnapshot>(&update)) {
      const iceberg::Snapshot* found = base.FindSnapshot(add->snapshot.snapshot_id);
      if (found == nullptr || found->manifest_list != add->snapshot.manifest_list) {
        return false;
      }
      any = true;
    } else if (const auto* set = std::get_if<SetSnapshotRef>(&update)) {
      const iceberg::Snapshot* head = base.FindSnapshotOf(set->name);
      if (head == nullptr ||
          !iceberg::IsAncestorOf(base, set->ref.snapshot_id, head->snapshot_id)) {
        return false;
      }
    }
  }
  return any;
}

// The object of a commit that makes a table.
ObjectDefinition DefinitionOf(const ObjectPlace& object, const iceberg::TableMetadata& metadata,
                              const std::string& metadata_location, const std::string& location) {
  return {.kind = ObjectKind::kTable,
          .folder = object.folder,
          .name = object.name,
          .uuid = metadata.table_uuid,
          .metadata_location = metadata_location,
          .writers = Writers::kAnyone,
          .by = object.by,
          .location = location};
}

}  // namespace

struct Catalog::Pending {
  LoadedTable base;  // Metadata is null where the commit makes the table.
  const TableChange* change = nullptr;
  TableMetadataPtr next;      // The base's when nothing changes.
  std::string next_location;  // Of the new metadata file; empty when nothing changes.
  std::string moved_to{};     // The table's folder where that is new.
};

Result<Catalog::Pending> Catalog::Prepare(const TableChange& change) {
  Pending pending{.base = {}, .change = &change, .next = {}, .next_location = {}};
  if (!change.create) {
    TARN_ASSIGN_OR_RETURN(pending.base, LoadTable(change.table.rid));
  }
  const iceberg::TableMetadata* base = pending.base.metadata.get();
  const Status required = iceberg::CheckRequirements(base, change.requirements);
  if (required.code() == ErrorCode::kConflict && base != nullptr &&
      IsApplied(*base, change.updates)) {
    pending.next = pending.base.metadata;
    return pending;
  }
  TARN_RETURN_IF_ERROR(required);
  TARN_ASSIGN_OR_RETURN(iceberg::UpdateResult result,
                        iceberg::ApplyUpdates(base, change.updates, ToMillis(deps_.clock.Now())));
  if (!result.changed && base != nullptr) {
    pending.next = pending.base.metadata;
    return pending;
  }
  std::string base_location;
  if (base == nullptr || result.metadata.location != base->location) {
    TARN_ASSIGN_OR_RETURN(pending.moved_to,
                          CanonicalLocation(deps_.warehouse, result.metadata.location));
    result.metadata.location = pending.moved_to;
  }
  if (base != nullptr) {
    base_location = pending.base.object.metadata_location;
    // Files that fall out of the log stay until orphan clean-up: readers may still be at them.
    iceberg::LogPreviousMetadata(*base, base_location, result.metadata);
  }
  for (const std::string& path : NewWritePaths(base, result.metadata)) {
    TARN_RETURN_IF_ERROR(CanonicalLocation(deps_.warehouse, path));
  }
  TARN_ASSIGN_OR_RETURN(
      pending.next_location,
      iceberg::WriteMetadata(deps_.warehouse, result.metadata, base_location, deps_.uuids));
  pending.next = std::make_shared<const iceberg::TableMetadata>(std::move(result.metadata));
  return pending;
}

Status Catalog::Move(std::vector<Pending>& pending, const metastore::SqlFunction& also) {
  return deps_.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    for (Pending& table : pending) {
      if (table.next_location.empty()) {
        continue;
      }
      if (table.change->create) {
        TARN_ASSIGN_OR_RETURN(table.base.object,
                              CreateIn(sql, DefinitionOf(*table.change->create, *table.next,
                                                         table.next_location, table.moved_to)));
      }
      const LocationClaim claim{.location = table.moved_to,
                                .owner = table.base.object.rid,
                                .folder = table.base.object.folder};
      for (const std::string& path : NewWritePaths(table.base.metadata.get(), *table.next)) {
        TARN_RETURN_IF_ERROR(RequireOwnFile(sql, deps_.warehouse, claim, path));
      }
      if (table.change->create) {
        continue;
      }
      if (!table.moved_to.empty()) {
        TARN_RETURN_IF_ERROR(RequireFreeLocation(sql, deps_.warehouse, claim));
      }
      TARN_RETURN_IF_ERROR(
          MovePointer(sql, {.rid = table.base.object.rid,
                            .expected_location = table.base.object.metadata_location,
                            .next_location = table.next_location,
                            .object_location = table.moved_to}));
    }
    return also ? also(sql) : Status::Ok();
  });
}

// Looks the outcome up after a commit whose reply was lost.
Result<bool> Catalog::IsCommitted(const std::vector<Pending>& pending) {
  for (const Pending& table : pending) {
    if (table.next_location.empty()) {
      continue;
    }
    // All pointers moved together, so one of them tells.
    if (table.change->create) {
      return IsNamed(
          DefinitionOf(*table.change->create, *table.next, table.next_location, table.moved_to));
    }
    TARN_ASSIGN_OR_RETURN(const LoadedTable now, LoadTable(table.base.object.rid));
    bool found = now.object.metadata_location == table.next_location;
    for (const iceberg::MetadataLogEntry& entry : now.metadata->metadata_log) {
      found = found || entry.metadata_file == table.next_location;
    }
    return found;
  }
  return false;
}

void Catalog::RemoveWritten(const std::vector<Pending>& pending) {
  for (const Pending& table : pending) {
    if (!table.next_location.empty()) {
      RemoveFile(table.next_location);
    }
  }
}

Result<std::vector<LoadedTable>> Catalog::TryCommit(const std::vector<TableChange>& changes,
                                                    const metastore::SqlFunction& also) {
  std::vector<Pending> pending;
  for (const TableChange& change : changes) {
    Result<Pending> prepared = Prepare(change);
    if (!prepared.ok()) {
      RemoveWritten(pending);
      return prepared.status();
    }
    pending.push_back(std::move(prepared).value());
  }
  CrashPoint("catalog-before-pointer");
  Status moved = Move(pending, also);
  if (moved.code() == ErrorCode::kCommitStateUnknown) {
    const Result<bool> committed = IsCommitted(pending);
    if (!committed.ok() || !*committed) {
      return moved;
    }
    moved = Status::Ok();
  }
  if (!moved.ok()) {
    RemoveWritten(pending);
    return moved;
  }
  CrashPoint("catalog-after-pointer");
  std::vector<LoadedTable> tables;
  for (Pending& table : pending) {
    LoadedTable& loaded = tables.emplace_back(std::move(table.base));
    loaded.metadata = table.next;
    if (!table.next_location.empty()) {
      loaded.object.metadata_location = table.next_location;
      caches_->Add(table.next_location, table.next);
    }
    if (!table.moved_to.empty()) {
      loaded.object.location = table.moved_to;
    }
  }
  return tables;
}

Result<std::vector<LoadedTable>> Catalog::CommitTables(const std::vector<TableChange>& changes,
                                                       const metastore::SqlFunction& also) {
  if (changes.size() == 1 && !changes[0].create) {
    TARN_ASSIGN_OR_RETURN(LoadedTable table, CommitWaiting(changes[0], also));
    return std::vector<LoadedTable>{std::move(table)};
  }
  std::vector<Rid> rids;
  for (const TableChange& change : changes) {
    rids.push_back(change.create ? Rid() : change.table.rid);
  }
  const Locks::Held held = locks_->Take(rids);
  for (int attempt = 1;; ++attempt) {
    Result<std::vector<LoadedTable>> committed = TryCommit(changes, also);
    // Another server moved a pointer: the requirements decide on the newest metadata.
    if (committed.ok() || committed.status().reason() != kPointerMoved ||
        attempt >= options_.commit_attempts_max) {
      return committed;
    }
  }
}

// Under the table's lock.
Result<LoadedTable> Catalog::CommitAlone(const TableChange& change,
                                         const metastore::SqlFunction& also) {
  for (int attempt = 1;; ++attempt) {
    Result<std::vector<LoadedTable>> committed = TryCommit({change}, also);
    if (committed.ok()) {
      return std::move(committed->front());
    }
    if (committed.status().reason() != kPointerMoved || attempt >= options_.commit_attempts_max) {
      return committed.status();
    }
  }
}

Result<LoadedTable> Catalog::CommitWaiting(const TableChange& change,
                                           const metastore::SqlFunction& also) {
  Waiting::Entry own{.change = &change, .also = &also};
  waiting_->Add(own);
  const Locks::Held held = locks_->Take({change.table.rid});
  if (!own.result) {
    CommitTogether(change.table.rid, *waiting_);
  }
  if (!own.result) {
    // Who took it along was thrown out of its work.
    own.result.emplace(CommitAlone(change, also));
  }
  return *std::move(own.result);
}

Result<LoadedView> Catalog::TryCommitView(const ViewChange& change,
                                          const metastore::SqlFunction& also) {
  TARN_ASSIGN_OR_RETURN(LoadedView view, LoadView(change.view.rid));
  TARN_RETURN_IF_ERROR(iceberg::CheckViewRequirements(*view.metadata, change.requirements));
  TARN_ASSIGN_OR_RETURN(
      iceberg::ViewUpdateResult result,
      iceberg::ApplyViewUpdates(view.metadata.get(), change.updates, ToMillis(deps_.clock.Now())));
  if (!result.changed) {
    return view;
  }
  const std::string base_location = view.object.metadata_location;
  std::string moved_to;
  if (result.metadata.location != view.metadata->location) {
    TARN_ASSIGN_OR_RETURN(moved_to, CanonicalLocation(deps_.warehouse, result.metadata.location));
    result.metadata.location = moved_to;
  }
  TARN_ASSIGN_OR_RETURN(
      const std::string file,
      iceberg::WriteMetadata(deps_.warehouse, result.metadata, base_location, deps_.uuids));
  CrashPoint("catalog-before-pointer");
  Status moved = deps_.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    if (!moved_to.empty()) {
      TARN_RETURN_IF_ERROR(RequireFreeLocation(
          sql, deps_.warehouse,
          {.location = moved_to, .owner = view.object.rid, .folder = view.object.folder}));
    }
    TARN_RETURN_IF_ERROR(MovePointer(sql, {.rid = view.object.rid,
                                           .expected_location = base_location,
                                           .next_location = file,
                                           .object_location = moved_to}));
    return also ? also(sql) : Status::Ok();
  });
  if (moved.code() == ErrorCode::kCommitStateUnknown) {
    const Result<LoadedView> now = LoadView(change.view.rid);
    if (now.ok() && now->object.metadata_location == file) {
      moved = Status::Ok();
    }
  }
  if (!moved.ok()) {
    if (moved.code() != ErrorCode::kCommitStateUnknown) {
      RemoveFile(file);
    }
    return moved;
  }
  CrashPoint("catalog-after-pointer");
  view.object.metadata_location = file;
  view.metadata = std::make_shared<const iceberg::ViewMetadata>(std::move(result.metadata));
  caches_->Add(file, view.metadata);
  return view;
}

Result<LoadedView> Catalog::CommitView(const ViewChange& change,
                                       const metastore::SqlFunction& also) {
  const Locks::Held held = locks_->Take({change.view.rid});
  for (int attempt = 1;; ++attempt) {
    Result<LoadedView> committed = TryCommitView(change, also);
    if (committed.ok() || committed.status().reason() != kPointerMoved ||
        attempt >= options_.commit_attempts_max) {
      return committed;
    }
  }
}

}  // namespace tarn::catalog
