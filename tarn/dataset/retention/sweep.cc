#include "tarn/dataset/retention/sweep.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "tarn/base/crash_point.h"
#include "tarn/base/hash.h"
#include "tarn/dataset/in_sql.h"
#include "tarn/dataset/physical_name.h"
#include "tarn/dataset/retention/dataset_facts.h"
#include "tarn/dataset/retention/live_files.h"
#include "tarn/dataset/rows.h"

namespace tarn::dataset::retention {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

namespace {

constexpr int64_t kMarksPerWrite = 100;
constexpr size_t kObjectsPerPage = 1000;
constexpr std::chrono::milliseconds kAgeFloor = std::chrono::hours(1);

struct DueMark {
  int64_t transaction_id = 0;
  int64_t dataset_id = 0;
};

Result<std::vector<DueMark>> DueMarks(SqlTransaction& sql, Timestamp now, int64_t after) {
  std::vector<DueMark> due;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT transaction_id, dataset_id FROM dataset_retention_marks WHERE sweep_at <= ?1 AND "
      "transaction_id > ?2 ORDER BY transaction_id LIMIT ?3",
      {ToMicros(now), after, kMarksPerWrite}, [&](const SqlRow& row) -> Result<RowAction> {
        due.push_back({.transaction_id = row.Int(0), .dataset_id = row.Int(1)});
        return RowAction::kContinue;
      }));
  return due;
}

// Takes the view of a due transaction away, unless something stands on it again.
Status Condemn(SqlTransaction& sql, const DueMark& due, bool stays, Timestamp now) {
  if (!stays) {
    TARN_RETURN_IF_ERROR(
        sql.Execute("UPDATE dataset_transactions SET swept_at = ?2 WHERE id = ?1 AND state <> 0",
                    {due.transaction_id, ToMicros(now)}));
  }
  return StatusOf(sql.Execute("DELETE FROM dataset_retention_marks WHERE transaction_id = ?1",
                              {due.transaction_id}));
}

// A dataset whose objects are looked at; without an id it is deleted and everything may go.
struct Target {
  std::optional<int64_t> id;
  DatasetRid rid;
  std::string base_uri;
};

struct HashRange {
  uint64_t first = 0;
  uint64_t last = 0;  // Inclusive.

  [[nodiscard]] bool Contains(uint64_t hash) const { return hash >= first && hash <= last; }
};

// One sweep. One owner thread.
class Sweeper {
 public:
  Sweeper(const RetentionDeps& deps, storage::ObjectStore& store, const SweepOptions& options)
      : deps_(deps),
        store_(store),
        options_(options),
        now_(deps.clock.Now()),
        age_min_(std::max(options.age_min, kAgeFloor)) {}

  Result<SweepReport> Run() {
    TARN_RETURN_IF_ERROR(CondemnDue());
    TARN_RETURN_IF_ERROR(SweepDatasets());
    TARN_RETURN_IF_ERROR(SweepRemains());
    return std::move(report_);
  }

 private:
  bool Stopped() {
    report_.stopped = report_.stopped || (options_.stop && options_.stop());
    return report_.stopped;
  }

  Status CondemnDue() {
    int64_t after = 0;
    bool more = true;
    while (more && !Stopped()) {
      SweepReport before = report_;
      const auto page = [&](SqlTransaction& sql) -> Status {
        report_ = before;  // A write may be tried again.
        TARN_ASSIGN_OR_RETURN(const std::vector<DueMark> due, DueMarks(sql, now_, after));
        more = !due.empty();
        std::map<int64_t, Guarded> guarded;
        for (const DueMark& mark : due) {
          if (!guarded.contains(mark.dataset_id)) {
            TARN_ASSIGN_OR_RETURN(guarded[mark.dataset_id], LoadGuarded(sql, mark.dataset_id));
          }
          const bool stays = guarded[mark.dataset_id].transactions.contains(mark.transaction_id);
          report_.condemned += stays ? 0 : 1;
          report_.unmarked += stays ? 1 : 0;
          if (options_.mode == RunMode::kDo) {
            TARN_RETURN_IF_ERROR(Condemn(sql, mark, stays, now_));
          }
        }
        after = due.empty() ? after : due.back().transaction_id;
        return Status::Ok();
      };
      // Durable before any byte goes.
      TARN_RETURN_IF_ERROR(options_.mode == RunMode::kDo ? deps_.database.Write(page)
                                                         : deps_.database.Read(page));
    }
    CrashPoint("dataset-sweep-condemned");
    return Status::Ok();
  }

  Status SweepDatasets() {
    int64_t after = 0;
    while (!Stopped()) {
      std::optional<Target> target;
      TARN_RETURN_IF_ERROR(deps_.database.Read([&](SqlTransaction& sql) {
        return sql.Query(
            "SELECT id, uuid, base_uri FROM dataset_datasets WHERE id > ?1 AND deleted_at IS NULL "
            "ORDER BY id LIMIT 1",
            {after}, [&](const SqlRow& row) -> Result<RowAction> {
              target = Target{.id = row.Int(0),
                              .rid = {.uuid = ReadUuid(row, 1)},
                              .base_uri = std::string(row.Text(2))};
              return RowAction::kStop;
            });
      }));
      if (!target) {
        return Status::Ok();
      }
      after = *target->id;
      TARN_RETURN_IF_ERROR(SweepTarget(*target));
    }
    return Status::Ok();
  }

  // What deleted datasets left; forgotten once nothing is left.
  Status SweepRemains() {
    std::vector<Target> targets;
    TARN_RETURN_IF_ERROR(deps_.database.Read([&](SqlTransaction& sql) {
      return sql.Query(
          "SELECT uuid, base_uri FROM dataset_remains WHERE uuid NOT IN (SELECT uuid "
          "FROM dataset_datasets) ORDER BY deleted_at LIMIT 1000",
          {}, [&](const SqlRow& row) -> Result<RowAction> {
            targets.push_back({.id = std::nullopt,
                               .rid = {.uuid = ReadUuid(row, 0)},
                               .base_uri = std::string(row.Text(1))});
            return RowAction::kContinue;
          });
    }));
    for (const Target& target : targets) {
      if (Stopped()) {
        return Status::Ok();
      }
      const int64_t objects_before = report_.objects;
      TARN_RETURN_IF_ERROR(SweepTarget(target));
      const bool forget = options_.mode == RunMode::kDo && !report_.stopped &&
                          report_.objects == objects_before && IsHere(target);
      if (forget) {
        TARN_RETURN_IF_ERROR(deps_.database.Write([&](SqlTransaction& sql) {
          return StatusOf(
              sql.Execute("DELETE FROM dataset_remains WHERE uuid = ?1 AND deleted_at "
                          "<= ?2",
                          {ToBlob(target.rid.uuid), ToMicros(now_ - age_min_)}));
        }));
      }
    }
    return Status::Ok();
  }

  bool IsHere(const Target& target) const {
    return target.base_uri.empty() || target.base_uri == store_.base_uri();
  }

  Status SweepTarget(const Target& target) {
    if (!IsHere(target)) {
      ++report_.datasets_elsewhere;
      return Status::Ok();
    }
    ++report_.datasets;
    // Too many live files to hold are taken in parts, each with a pass over the store.
    std::vector<HashRange> ranges = {{0, std::numeric_limits<uint64_t>::max()}};
    while (!ranges.empty() && !Stopped()) {
      const HashRange range = ranges.back();
      ranges.pop_back();
      TARN_ASSIGN_OR_RETURN(const bool fits, LoadLive(target, range));
      if (fits) {
        TARN_RETURN_IF_ERROR(RemoveDead(target, range));
        continue;
      }
      const uint64_t middle = range.first + (range.last - range.first) / 2;
      if (middle == range.last) {
        return Status::Internal("sweep of " + target.rid.ToString() + ": files cannot be parted");
      }
      ranges.push_back({middle + 1, range.last});
      ranges.push_back({range.first, middle});
    }
    return Status::Ok();
  }

  // Loads the hashes of one part of the live files; false when they are too many.
  Result<bool> LoadLive(const Target& target, const HashRange& range) {
    live_.clear();
    const size_t hashes_max = std::max<size_t>(options_.hashes_max, 1024);
    bool fits = true;
    const auto add = [&](std::string_view location) {
      const uint64_t hash = Xxh3(location);
      if (fits && range.Contains(hash)) {
        fits = live_.size() < hashes_max || Compact(hashes_max);
        live_.push_back(hash);
      }
    };
    if (target.id) {
      std::optional<Timestamp> due_at;
      if (options_.mode == RunMode::kDryRun) {
        due_at = now_;
      }
      TARN_RETURN_IF_ERROR(
          VisitLiveFiles(deps_.database, *target.id, due_at, [&](const std::string& location) {
            add(location);
            return Status::Ok();
          }));
    }
    for (const OtherOwner& owner : options_.other_owners) {
      TARN_RETURN_IF_ERROR(owner(target.rid, add));
    }
    std::sort(live_.begin(), live_.end());
    return fits;
  }

  // Drops doubles; true when that made room.
  bool Compact(size_t hashes_max) {
    std::sort(live_.begin(), live_.end());
    live_.erase(std::unique(live_.begin(), live_.end()), live_.end());
    return live_.size() <= hashes_max / 2;
  }

  Status RemoveDead(const Target& target, const HashRange& range) {
    storage::ListRequest request;
    request.prefix = target.rid.uuid.ToString() + "/";
    request.limit = kObjectsPerPage;
    bool more = true;
    while (more && !Stopped()) {
      TARN_ASSIGN_OR_RETURN(const storage::ListPage page, store_.List(request));
      for (const storage::ObjectMeta& object : page.objects) {
        const uint64_t hash = Xxh3(object.key);
        if (range.Contains(hash)) {
          TARN_RETURN_IF_ERROR(Judge(target, object, hash));
        }
      }
      more = page.truncated && !page.objects.empty();
      if (more) {
        request.start_after = page.objects.back().key;
      }
    }
    return Status::Ok();
  }

  Status Judge(const Target& target, const storage::ObjectMeta& object, uint64_t hash) {
    ++report_.objects;
    // Only what this server named itself is its own to remove.
    const std::optional<Timestamp> named_at = PhysicalNameTime(target.rid, object.key);
    if (!named_at || std::binary_search(live_.begin(), live_.end(), hash)) {
      return Status::Ok();
    }
    if (std::max(*named_at, object.modified) + age_min_ > now_) {
      ++report_.too_young;
      return Status::Ok();
    }
    if (options_.mode == RunMode::kDo) {
      TARN_RETURN_IF_ERROR(store_.Delete(object.key));
      CrashPoint("dataset-sweep-removed");
    }
    ++report_.removed;
    report_.removed_bytes += static_cast<int64_t>(object.size_bytes);
    if (report_.entries.size() < options_.entries_max) {
      report_.entries.push_back(
          {.key = object.key, .size_bytes = static_cast<int64_t>(object.size_bytes)});
    }
    return Status::Ok();
  }

  const RetentionDeps& deps_;
  storage::ObjectStore& store_;
  const SweepOptions& options_;
  const Timestamp now_;
  const std::chrono::milliseconds age_min_;
  std::vector<uint64_t> live_;  // Sorted once it is complete.
  SweepReport report_;
};

}  // namespace

Result<SweepReport> RunSweep(const RetentionDeps& deps, storage::ObjectStore& store,
                             const SweepOptions& options) {
  return Sweeper(deps, store, options).Run();
}

}  // namespace tarn::dataset::retention
