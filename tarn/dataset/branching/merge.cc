#include "tarn/dataset/branching/merge.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "tarn/base/crash_point.h"
#include "tarn/base/json_text.h"
#include "tarn/dataset/ancestry.h"
#include "tarn/dataset/branching/merge_rows.h"
#include "tarn/dataset/errors.h"
#include "tarn/dataset/file_scan.h"
#include "tarn/dataset/in_sql.h"
#include "tarn/dataset/net_change.h"
#include "tarn/dataset/rows.h"
#include "tarn/dataset/view_lineage.h"

namespace tarn::dataset::branching {

using metastore::Durability;
using metastore::SqlTransaction;

namespace {

constexpr size_t kPathsShownMax = 100;
constexpr size_t kChangesInOneWrite = 5000;
constexpr size_t kChangesPerBatch = 512;
constexpr int kDifferencesPerPage = 1000;
constexpr int64_t kWalkMax = 100'000;  // Transactions looked at for earlier merges.

// The two sides and what both contain.
struct Sides {
  DatasetRow dataset;
  std::optional<TransactionRow> target;
  TransactionRow source;
  std::optional<TransactionRow> base;
};

// What the merge does to the target, in path order.
struct Changes {
  std::vector<StoredFile> puts;
  std::vector<std::string> removals;
};

// The newest transaction that both sides contain, by parents and by what merges took in.
// Identifiers grow from parents to children, so the greatest not yet looked at is never an ancestor
// of something found later.
Result<std::optional<TransactionRow>> FindBase(SqlTransaction& sql, const TransactionRow& target,
                                               const TransactionRow& source) {
  constexpr int kOfTarget = 1;
  constexpr int kOfSource = 2;
  std::map<int64_t, int> contained_by;
  contained_by[target.id] |= kOfTarget;
  contained_by[source.id] |= kOfSource;
  for (int64_t i = 0; !contained_by.empty(); ++i) {
    if (i == kWalkMax) {
      return Status(
          ErrorCode::kResourceExhausted,
          "the branches parted more than " + std::to_string(kWalkMax) + " transactions ago");
    }
    const auto newest = std::prev(contained_by.end());
    const auto [id, sides] = *newest;
    contained_by.erase(newest);
    TARN_ASSIGN_OR_RETURN(TransactionRow row, LoadTransactionById(sql, id));
    if (sides == (kOfTarget | kOfSource)) {
      return std::optional<TransactionRow>(std::move(row));
    }
    for (const std::optional<int64_t>& parent : {row.parent_id, row.merged_id}) {
      if (parent) {
        contained_by[*parent] |= sides;
      }
    }
  }
  return std::optional<TransactionRow>();
}

Result<Sides> LoadSides(SqlTransaction& sql, const MergeRequest& request) {
  Sides sides;
  TARN_ASSIGN_OR_RETURN(sides.dataset, LoadDataset(sql, request.dataset));
  TARN_ASSIGN_OR_RETURN(const BranchRow target, LoadBranch(sql, sides.dataset, request.target));
  if (target.open_id) {
    return OpenTransactionAlreadyExists(request.dataset, request.target);
  }
  TARN_ASSIGN_OR_RETURN(const ResolvedView source, Resolve(sql, sides.dataset, request.source));
  if (!source.end || source.end->state != TransactionState::kCommitted) {
    return Status::InvalidArgument("the source of a merge must have a committed transaction")
        .WithReason("InvalidParameterCombination");
  }
  sides.source = *source.end;
  if (target.head_id) {
    TARN_ASSIGN_OR_RETURN(sides.target, LoadTransactionById(sql, *target.head_id));
    TARN_ASSIGN_OR_RETURN(sides.base, FindBase(sql, *sides.target, sides.source));
  }
  return sides;
}

// Decides path by path. One owner thread.
class Decider {
 public:
  Decider(const MergeRequest& request, const Sides& sides, MergeReport& report)
      : request_(request), sides_(sides), report_(report) {}

  Status Decide(SqlTransaction& sql, const FileDifference& difference) {
    const std::string& path = difference.path();
    std::optional<File> current;
    if (sides_.target) {
      TARN_ASSIGN_OR_RETURN(current, FindFile(sql, sides_.target->lineage, path));
    }
    if (SameContent(current, difference.after)) {
      return Status::Ok();
    }
    if (!SameContent(current, difference.before)) {
      ++report_.conflicts;
      const auto choice = request_.choices.find(path);
      if (choice == request_.choices.end() && !request_.otherwise) {
        unresolved_ += 1;
        if (report_.unresolved.size() < kPathsShownMax) {
          report_.unresolved.push_back(path);
        }
        return Status::Ok();
      }
      if ((choice == request_.choices.end() ? *request_.otherwise : choice->second) ==
          MergeSide::kTarget) {
        return Status::Ok();
      }
    }
    if (!difference.after) {
      ++report_.removed;
      changes_.removals.push_back(path);
      return Status::Ok();
    }
    ++report_.put;
    return TakeFile(sql, path);
  }

  [[nodiscard]] int64_t unresolved() const { return unresolved_; }
  [[nodiscard]] const Changes& changes() const { return changes_; }

 private:
  // The source's file as it was registered, statistics included.
  Status TakeFile(SqlTransaction& sql, const std::string& path) {
    TARN_ASSIGN_OR_RETURN(
        const std::optional<LocatedFile> found,
        FindNewest(sql, sides_.source.lineage, path, FileDetail::kWithStatistics));
    if (!found || found->removed()) {
      return Status::Corruption("the source of the merge no longer has " + JsonString(path));
    }
    const File& file = found->file;
    StoredFile taken{.path = path,
                     .location = file.location,
                     .managed = file.managed,
                     .size_bytes = file.size_bytes,
                     .checksum = file.checksum,
                     .etag = file.etag,
                     .row_count = file.row_count,
                     .statistics = std::nullopt};
    if (!file.statistics.empty()) {
      taken.statistics = file.statistics;
    }
    changes_.puts.push_back(std::move(taken));
    return Status::Ok();
  }

  const MergeRequest& request_;
  const Sides& sides_;
  MergeReport& report_;
  Changes changes_;
  int64_t unresolved_ = 0;
};

Status DecideAll(metastore::Database& database, Decider& decider,
                 std::span<const FileDifference> differences) {
  return database.Read([&](SqlTransaction& sql) -> Status {
    for (const FileDifference& difference : differences) {
      TARN_RETURN_IF_ERROR(decider.Decide(sql, difference));
    }
    return Status::Ok();
  });
}

// Everything that the source changed since the base.
Status ReadChanges(metastore::Database& database, DatasetStore& datasets, const Sides& sides,
                   Decider& decider) {
  ViewSelector source;
  source.end = sides.source.rid;
  const DatasetRid& rid = sides.dataset.dataset.rid;
  if (!sides.base) {
    TARN_ASSIGN_OR_RETURN(const FileView view, datasets.ResolveView(rid, source));
    return datasets.StreamFiles(view, "", [&](std::span<const File> files) {
      std::vector<FileDifference> differences;
      for (const File& file : files) {
        differences.push_back({.before = std::nullopt, .after = file});
      }
      return DecideAll(database, decider, differences);
    });
  }
  ViewSelector base;
  base.end = sides.base->rid;
  std::string token;
  do {
    TARN_ASSIGN_OR_RETURN(const ComparePage page,
                          datasets.CompareViews(rid, base, source, kDifferencesPerPage, token));
    TARN_RETURN_IF_ERROR(DecideAll(database, decider, page.differences));
    token = page.next_page_token.value_or("");
  } while (!token.empty());
  return Status::Ok();
}

Status ConflictsFailure(const MergeRequest& request, const MergeReport& report, int64_t count) {
  constexpr size_t kShownMax = 5;
  std::string paths;
  std::string shown;
  for (size_t i = 0; i < report.unresolved.size(); ++i) {
    const std::string path = JsonString(report.unresolved[i]);
    paths += (i == 0 ? "" : ",") + path;
    if (i <= kShownMax) {
      shown += (i == 0 ? "" : ", ") + (i < kShownMax ? path : "…");
    }
  }
  return Status::Conflict("merge into branch " + JsonString(request.target) + " of dataset " +
                          request.dataset.ToString() + ": both sides changed " +
                          std::to_string(count) + " path(s) differently: " + shown +
                          "; choose source or target for each")
      .WithReason("MergeConflicts", R"({"datasetRid":)" + JsonString(request.dataset.ToString()) +
                                        R"(,"branchName":)" + JsonString(request.target) +
                                        R"(,"paths":[)" + paths + R"(],"count":)" +
                                        std::to_string(count) + "}");
}

// Writes what was decided. One owner thread.
class Writer {
 public:
  Writer(metastore::Database& database, DatasetStore& datasets, const MergeRequest& request,
         const Sides& sides)
      : database_(database), datasets_(datasets), request_(request), sides_(sides) {}

  Result<TransactionRid> Write(const Changes& changes) {
    if (changes.puts.size() + changes.removals.size() <= kChangesInOneWrite) {
      return InWrite(
          database_, Durability::kDurable, [&](SqlTransaction& sql) -> Result<TransactionRid> {
            TARN_ASSIGN_OR_RETURN(const TransactionRid rid, Start(sql));
            TARN_RETURN_IF_ERROR(WriteMergeRows(
                sql, request_.dataset, rid,
                {.puts = changes.puts, .removals = changes.removals, .now = request_.now}));
            TARN_RETURN_IF_ERROR(Commit(sql, rid));
            return rid;
          });
    }
    TARN_ASSIGN_OR_RETURN(
        const TransactionRid rid,
        InWrite(database_, Durability::kLazy, [&](SqlTransaction& sql) { return Start(sql); }));
    Status status = WriteBatches(changes, rid);
    CrashPoint("dataset-merge-written");
    if (status.ok()) {
      status = database_.Write([&](SqlTransaction& sql) { return Commit(sql, rid); });
    }
    if (!status.ok() && status.code() != ErrorCode::kCommitStateUnknown) {
      (void)datasets_.AbortTransaction(request_.dataset, rid, request_.by).ok();
    }
    TARN_RETURN_IF_ERROR(status);
    return rid;
  }

 private:
  // The target must still stand where the decisions were made.
  Result<TransactionRid> Start(SqlTransaction& sql) {
    TARN_ASSIGN_OR_RETURN(const DatasetRow dataset, LoadDataset(sql, request_.dataset));
    TARN_ASSIGN_OR_RETURN(const BranchRow branch, LoadBranch(sql, dataset, request_.target));
    TARN_ASSIGN_OR_RETURN(const TransactionRow source, LoadTransactionById(sql, sides_.source.id));
    if (source.swept) {
      return TransactionSwept(request_.dataset, source.rid);
    }
    if (branch.head_id.value_or(0) != (sides_.target ? sides_.target->id : 0)) {
      return Status::Conflict("branch " + JsonString(request_.target) + " of dataset " +
                              request_.dataset.ToString() +
                              " moved while the merge was being prepared; try again");
    }
    TARN_ASSIGN_OR_RETURN(
        const Transaction started,
        datasets_.StartTransaction(sql, request_.dataset, request_.target,
                                   {.type = TransactionType::kUpdate, .by = request_.by}));
    return started.rid;
  }

  Status Commit(SqlTransaction& sql, const TransactionRid& rid) {
    TARN_RETURN_IF_ERROR(
        sql.Execute("UPDATE dataset_transactions SET merged_id = ?2 WHERE uuid = ?1 AND state = 0",
                    {ToBlob(rid.uuid), sides_.source.id}));
    CommitOptions options;
    options.by = request_.by;
    return StatusOf(datasets_.CommitTransaction(sql, request_.dataset, rid, options));
  }

  Status WriteBatches(const Changes& changes, const TransactionRid& rid) {
    std::span<const StoredFile> puts = changes.puts;
    std::span<const std::string> removals = changes.removals;
    while (!puts.empty() || !removals.empty()) {
      const MergeRows rows{.puts = puts.first(std::min(puts.size(), kChangesPerBatch)),
                           .removals = removals.first(std::min(removals.size(), kChangesPerBatch)),
                           .now = request_.now};
      TARN_RETURN_IF_ERROR(database_.Write(
          [&](SqlTransaction& sql) { return WriteMergeRows(sql, request_.dataset, rid, rows); },
          Durability::kLazy));
      puts = puts.subspan(rows.puts.size());
      removals = removals.subspan(rows.removals.size());
    }
    return Status::Ok();
  }

  metastore::Database& database_;
  DatasetStore& datasets_;
  const MergeRequest& request_;
  const Sides& sides_;
};

// The outcome where no path needs to be looked at, if it is that simple.
Result<std::optional<MergeOutcome>> Shortcut(SqlTransaction& sql, const Sides& sides) {
  if (!sides.target) {
    return std::optional<MergeOutcome>(MergeOutcome::kFastForward);
  }
  if (sides.base && sides.base->id == sides.source.id) {
    return std::optional<MergeOutcome>(MergeOutcome::kUpToDate);
  }
  TARN_ASSIGN_OR_RETURN(const bool forward, IsAncestor(sql, *sides.target, sides.source));
  return forward ? std::optional<MergeOutcome>(MergeOutcome::kFastForward)
                 : std::optional<MergeOutcome>();
}

}  // namespace

std::string_view MergeOutcomeName(MergeOutcome outcome) {
  constexpr std::array<std::string_view, 4> kNames = {"upToDate", "fastForward", "merged",
                                                      "conflicts"};
  return kNames.at(static_cast<size_t>(outcome));
}

Result<MergeReport> MergeBranch(metastore::Database& database, DatasetStore& datasets,
                                const MergeRequest& request) {
  Sides sides;
  std::optional<MergeOutcome> shortcut;
  TARN_RETURN_IF_ERROR(database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(sides, LoadSides(sql, request));
    TARN_ASSIGN_OR_RETURN(shortcut, Shortcut(sql, sides));
    return Status::Ok();
  }));
  MergeReport report;
  if (sides.target) {
    report.head = sides.target->rid;
  }
  if (sides.base) {
    report.base = sides.base->rid;
  }
  if (shortcut) {
    report.outcome = *shortcut;
    if (*shortcut == MergeOutcome::kFastForward && request.mode == MergeMode::kDo) {
      TARN_RETURN_IF_ERROR(database.Write([&](SqlTransaction& sql) {
        return StatusOf(datasets.FastForwardBranch(sql, request.dataset, request.target,
                                                   sides.source.rid, request.by));
      }));
      report.head = sides.source.rid;
    }
    return report;
  }
  Decider decider(request, sides, report);
  TARN_RETURN_IF_ERROR(ReadChanges(database, datasets, sides, decider));
  report.outcome = MergeOutcome::kMerged;
  if (decider.unresolved() > 0) {
    if (request.mode == MergeMode::kDo) {
      return ConflictsFailure(request, report, decider.unresolved());
    }
    report.outcome = MergeOutcome::kConflicts;
  }
  if (request.mode == MergeMode::kDo) {
    TARN_ASSIGN_OR_RETURN(report.head,
                          Writer(database, datasets, request, sides).Write(decider.changes()));
  }
  return report;
}

}  // namespace tarn::dataset::branching
