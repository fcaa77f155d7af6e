// Commits to one table that waited for each other: one metadata file and one move of the pointer
// for all of them.
#include "tarn/base/crash_point.h"
#include "tarn/catalog/catalog.h"
#include "tarn/catalog/catalog_state.h"
#include "tarn/catalog/location.h"
#include "tarn/iceberg/commit.h"
#include "tarn/iceberg/metadata_builder.h"

namespace tarn::catalog {

namespace {

constexpr size_t kGroupMax = 64;

// The metadata after one more change, or null where the change has to be looked at by itself: it
// fails, changes nothing, or says where files are put.
TableMetadataPtr Next(const TableMetadataPtr& state, const TableChange& change, int64_t now_ms) {
  if (!iceberg::CheckRequirements(state.get(), change.requirements).ok()) {
    return nullptr;
  }
  Result<iceberg::UpdateResult> result = iceberg::ApplyUpdates(state.get(), change.updates, now_ms);
  if (!result.ok() || !result->changed || result->metadata.location != state->location ||
      !NewWritePaths(state.get(), result->metadata).empty()) {
    return nullptr;
  }
  return std::make_shared<const iceberg::TableMetadata>(std::move(result->metadata));
}

}  // namespace

// Writes the next metadata of a table and moves its pointer there, with `also`.
Result<LoadedTable> Catalog::MoveTo(const LoadedTable& base, iceberg::TableMetadata next,
                                    const metastore::SqlFunction& also) {
  const std::string& base_location = base.object.metadata_location;
  iceberg::LogPreviousMetadata(*base.metadata, base_location, next);
  TARN_ASSIGN_OR_RETURN(const std::string file,
                        iceberg::WriteMetadata(deps_.warehouse, next, base_location, deps_.uuids));
  CrashPoint("catalog-before-pointer");
  Status moved = deps_.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(MovePointer(
        sql, {.rid = base.object.rid, .expected_location = base_location, .next_location = file}));
    return also(sql);
  });
  if (moved.code() == ErrorCode::kCommitStateUnknown) {
    const Result<LoadedTable> now = LoadTable(base.object.rid);
    const bool committed = now.ok() && now->object.metadata_location == file;
    moved = committed ? Status::Ok() : moved;
  }
  if (!moved.ok()) {
    if (moved.code() != ErrorCode::kCommitStateUnknown) {
      RemoveFile(file);
    }
    return moved;
  }
  CrashPoint("catalog-after-pointer");
  LoadedTable after = base;
  after.object.metadata_location = file;
  after.metadata = std::make_shared<const iceberg::TableMetadata>(std::move(next));
  caches_->Add(file, after.metadata);
  return after;
}

// Under the table's lock. Gives every entry that waited its result.
void Catalog::CommitTogether(const Rid& rid, Waiting& waiting) {
  const std::vector<Waiting::Entry*> entries = waiting.TakeAll(rid);
  std::vector<Waiting::Entry*> joined;
  const Result<LoadedTable> base =
      entries.size() > 1 ? LoadTable(rid) : Result<LoadedTable>(Status::NotFound("one alone"));
  TableMetadataPtr state = base.ok() ? base->metadata : nullptr;
  for (Waiting::Entry* entry : entries) {
    if (state == nullptr || joined.size() == kGroupMax) {
      break;
    }
    if (TableMetadataPtr next = Next(state, *entry->change, ToMillis(deps_.clock.Now()))) {
      state = std::move(next);
      joined.push_back(entry);
    }
  }
  if (joined.size() > 1) {
    const Result<LoadedTable> after =
        MoveTo(*base, *state, [&](metastore::SqlTransaction& sql) -> Status {
          for (const Waiting::Entry* entry : joined) {
            TARN_RETURN_IF_ERROR(*entry->also ? (*entry->also)(sql) : Status::Ok());
          }
          return Status::Ok();
        });
    if (after.ok() || after.status().code() == ErrorCode::kCommitStateUnknown) {
      for (Waiting::Entry* entry : joined) {
        entry->result.emplace(after);
      }
    }
  }
  // The rest, and all of them where one kept the others from going through.
  for (Waiting::Entry* entry : entries) {
    if (!entry->result) {
      entry->result.emplace(CommitAlone(*entry->change, *entry->also));
    }
  }
}

}  // namespace tarn::catalog
