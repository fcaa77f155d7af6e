// DatasetStore: comparing two views.
//
// Inside one view the paths that either side's own transactions wrote are looked at, in commit
// order; across views both listings are read side by side, in path order.
#include <algorithm>
#include <utility>

#include "tarn/dataset/dataset_store.h"
#include "tarn/dataset/errors.h"
#include "tarn/dataset/in_sql.h"
#include "tarn/dataset/net_change.h"
#include "tarn/dataset/page_token.h"
#include "tarn/dataset/rows.h"
#include "tarn/dataset/view_lineage.h"

namespace tarn::dataset {

using metastore::SqlTransaction;

namespace {

constexpr int kPageSizeMax = 50'000;
constexpr size_t kPathsPerRead = 500;
constexpr size_t kFilesPerFill = 1024;
constexpr int64_t kRowsPerFill = 4096;

// Which paths are being looked at.
enum class Stage : char {
  kTo = 't',       // Those that only the target's transactions wrote.
  kFrom = 'f',     // Then those that only the source's did.
  kListing = 'l',  // All, side by side.
};

struct Plan {
  ResolvedView from;
  ResolvedView to;
  Lineage only_to;
  Lineage only_from;
  Stage stage = Stage::kListing;
  ChangedPaths::Position position;  // Its path is also where a listing goes on.
};

// The selector of a token's pinned side.
ViewSelector Pinned(const std::string& end, const std::string& start) {
  ViewSelector selector;
  selector.end = RidOfTokenBytes(end);
  selector.start = RidOfTokenBytes(start);
  return selector;
}

Result<Plan> PlanCompare(SqlTransaction& sql, const DatasetRow& dataset, const ViewSelector& from,
                         const ViewSelector& to, std::string_view token) {
  Plan plan;
  if (token.empty()) {
    TARN_ASSIGN_OR_RETURN(plan.from, Resolve(sql, dataset, from));
    TARN_ASSIGN_OR_RETURN(plan.to, Resolve(sql, dataset, to));
  } else {
    TARN_ASSIGN_OR_RETURN(const std::vector<std::string> fields,
                          DecodePageToken(TokenKind::kCompare, 8, token));
    const auto resolve = [&](size_t first) -> Result<ResolvedView> {
      if (fields[first].empty()) {
        return ResolvedView{};  // The view was absent on the first page.
      }
      return Resolve(sql, dataset, Pinned(fields[first], fields[first + 1]));
    };
    Result<ResolvedView> from_view = resolve(0);
    Result<ResolvedView> to_view = resolve(2);
    if (!from_view.ok() || !to_view.ok() || fields[4].size() != 1) {
      return InvalidPageToken(token);
    }
    plan.from = *std::move(from_view);
    plan.to = *std::move(to_view);
    plan.stage = static_cast<Stage>(fields[4][0]);
    plan.position = {.interval = std::strtoull(fields[5].c_str(), nullptr, 10),
                     .ordinal = std::strtoll(fields[6].c_str(), nullptr, 10),
                     .path = fields[7]};
  }
  const bool one_view = plan.from.end && plan.to.end && !plan.from.view.start &&
                        !plan.to.view.start &&
                        plan.from.end->view_start() == plan.to.end->view_start();
  if (!one_view) {
    plan.stage = Stage::kListing;
    return plan;
  }
  const Lineage& from_lineage = plan.from.view.lineage;
  const Lineage& to_lineage = plan.to.view.lineage;
  TARN_ASSIGN_OR_RETURN(plan.only_to, ChangesBetween(sql, from_lineage, to_lineage));
  TARN_ASSIGN_OR_RETURN(plan.only_from, ChangesBetween(sql, to_lineage, from_lineage));
  if (token.empty()) {
    plan.stage = Stage::kTo;
  }
  return plan;
}

// The difference at a path that one side's own transactions wrote, at its last such write.
Result<std::optional<FileDifference>> DifferenceAt(SqlTransaction& sql, const Plan& plan,
                                                   const ChangedPaths::Change& change) {
  const bool in_to = plan.stage == Stage::kTo;
  TARN_ASSIGN_OR_RETURN(const std::optional<LocatedFile> newest,
                        FindNewest(sql, in_to ? plan.only_to : plan.only_from, change.path));
  if (!newest || newest->line != change.line || newest->ordinal != change.ordinal) {
    return std::optional<FileDifference>();
  }
  if (!in_to) {
    TARN_ASSIGN_OR_RETURN(const std::optional<LocatedFile> given,
                          FindNewest(sql, plan.only_to, change.path));
    if (given) {
      return std::optional<FileDifference>();
    }
  }
  FileDifference difference;
  TARN_ASSIGN_OR_RETURN(difference.before, FindFile(sql, plan.from.view.lineage, change.path));
  if (!in_to || !plan.only_from.empty()) {
    TARN_ASSIGN_OR_RETURN(difference.after, FindFile(sql, plan.to.view.lineage, change.path));
  } else if (!newest->removed()) {
    difference.after = newest->file;  // The source is an ancestor: nothing in `to` is newer.
  }
  if (SameContent(difference.before, difference.after)) {
    return std::optional<FileDifference>();
  }
  return std::optional<FileDifference>(std::move(difference));
}

// Fills the page from the stages kTo and kFrom; returns whether more may come.
Result<bool> FillFromChanges(metastore::Database& database, Plan& plan, size_t size,
                             ComparePage& page) {
  while (true) {
    ChangedPaths paths(plan.stage == Stage::kTo ? plan.only_to : plan.only_from, plan.position);
    bool more = true;
    while (more && page.differences.size() < size) {
      TARN_RETURN_IF_ERROR(database.Read([&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(
            const std::vector<ChangedPaths::Change> changes,
            paths.Next(sql, std::min(size - page.differences.size(), kPathsPerRead)));
        more = !changes.empty();
        for (const ChangedPaths::Change& change : changes) {
          TARN_ASSIGN_OR_RETURN(std::optional<FileDifference> difference,
                                DifferenceAt(sql, plan, change));
          if (difference) {
            page.differences.push_back(*std::move(difference));
          }
        }
        return Status::Ok();
      }));
    }
    plan.position = paths.position();
    if (more) {
      return true;
    }
    if (plan.stage == Stage::kFrom) {
      return false;
    }
    plan.stage = Stage::kFrom;
    plan.position = {};
  }
}

// One listing of two that are read side by side.
struct Side {
  FileScan scan;
  std::span<const File> files;
  size_t next = 0;

  Status Fill(SqlTransaction& sql) {
    while (next == files.size() && !scan.done()) {
      TARN_ASSIGN_OR_RETURN(files, scan.Next(sql, kFilesPerFill, kRowsPerFill));
      next = 0;
    }
    return Status::Ok();
  }
  [[nodiscard]] const File* Peek() const { return next < files.size() ? &files[next] : nullptr; }
};

// Takes the lesser path off both sides; adds it to the page if they differ in it.
void StepListing(Side& from, Side& to, Plan& plan, ComparePage& page) {
  const File* const before = from.Peek();
  const File* const after = to.Peek();
  FileDifference difference;
  if (before != nullptr && (after == nullptr || before->path <= after->path)) {
    difference.before = *before;
    ++from.next;
  }
  if (after != nullptr && (before == nullptr || after->path <= before->path)) {
    difference.after = *after;
    ++to.next;
  }
  plan.position.path = After(difference.path());
  if (!SameContent(difference.before, difference.after)) {
    page.differences.push_back(std::move(difference));
  }
}

Result<bool> FillFromListings(metastore::Database& database, Plan& plan, size_t size,
                              ComparePage& page) {
  Side from{.scan = FileScan(plan.from.view.lineage, {}, plan.position.path), .files = {}};
  Side to{.scan = FileScan(plan.to.view.lineage, {}, plan.position.path), .files = {}};
  bool more = true;
  while (more && page.differences.size() < size) {
    const Status read = database.Read([&](SqlTransaction& sql) -> Status {
      TARN_RETURN_IF_ERROR(from.Fill(sql));
      return to.Fill(sql);
    });
    TARN_RETURN_IF_ERROR(read);
    // Up to the end of the shorter buffer nothing needs the database.
    do {
      if (from.Peek() == nullptr && to.Peek() == nullptr) {
        more = false;
        break;
      }
      StepListing(from, to, plan, page);
    } while (page.differences.size() < size && (from.Peek() != nullptr || from.scan.done()) &&
             (to.Peek() != nullptr || to.scan.done()));
  }
  return more;
}

}  // namespace

Result<ComparePage> DatasetStore::CompareViews(const DatasetRid& dataset, const ViewSelector& from,
                                               const ViewSelector& to, int page_size,
                                               std::string_view page_token) {
  TARN_RETURN_IF_ERROR(CheckPageSize(page_size, kPageSizeMax));
  TARN_ASSIGN_OR_RETURN(Plan plan, InRead(database_, [&](SqlTransaction& sql) -> Result<Plan> {
                          TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
                          return PlanCompare(sql, row, from, to, page_token);
                        }));
  ComparePage page;
  const auto size = static_cast<size_t>(page_size);
  TARN_ASSIGN_OR_RETURN(const bool more, plan.stage == Stage::kListing
                                             ? FillFromListings(database_, plan, size, page)
                                             : FillFromChanges(database_, plan, size, page));
  if (more) {
    page.next_page_token = EncodePageToken(
        TokenKind::kCompare,
        {TokenBytes(plan.from.view.end), TokenBytes(plan.from.view.start),
         TokenBytes(plan.to.view.end), TokenBytes(plan.to.view.start),
         std::string(1, static_cast<char>(plan.stage)), std::to_string(plan.position.interval),
         std::to_string(plan.position.ordinal), plan.position.path});
  }
  return page;
}

}  // namespace tarn::dataset
