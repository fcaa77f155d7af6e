// DatasetStore: reading views.
#include "tarn/dataset/file_view.h"

#include <algorithm>
#include <utility>

#include "tarn/base/json_text.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/dataset/errors.h"
#include "tarn/dataset/file_scan.h"
#include "tarn/dataset/in_sql.h"
#include "tarn/dataset/net_change.h"
#include "tarn/dataset/page_token.h"
#include "tarn/dataset/rows.h"
#include "tarn/dataset/view_lineage.h"

namespace tarn::dataset {

using metastore::Durability;
using metastore::SqlTransaction;

namespace {

constexpr int kPageSizeMax = 50'000;
// Rows that one read transaction examines, so that it stays short.
constexpr int64_t kPageRowsMax = 50'000;
constexpr size_t kStreamFiles = 4096;
constexpr int64_t kStreamRowsMax = 16'384;

// What a page reads: the selector as given, or as the token pinned it.
struct PagePlan {
  ViewSelector selector;
  std::string from;
};

Result<PagePlan> PlanPage(const ViewSelector& selector, const ListOptions& options) {
  PagePlan plan{.selector = selector, .from = {}};
  if (options.page_token.empty()) {
    return plan;
  }
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> fields,
                        DecodePageToken(TokenKind::kFiles, 4, options.page_token));
  const std::optional<TransactionRid> end = RidOfTokenBytes(fields[0]);
  const std::optional<TransactionRid> start = RidOfTokenBytes(fields[1]);
  if (!end || start != selector.start || fields[2] != options.prefix ||
      (selector.end && selector.end != end)) {
    return InvalidPageToken(options.page_token);
  }
  plan.selector.end = end;
  plan.selector.at.reset();
  plan.from = fields[3];
  return plan;
}

Result<FilePage> ReadPage(SqlTransaction& sql, const FileView& view, const PagePlan& plan,
                          const ListOptions& options) {
  FilePage page;
  if (!options.prefix.empty() && plan.from.empty()) {
    TARN_ASSIGN_OR_RETURN(std::optional<File> exact, FindFile(sql, view.lineage, options.prefix));
    if (exact) {
      page.files.push_back(*std::move(exact));
      return page;
    }
  }
  const auto wanted = static_cast<size_t>(options.page_size);
  FileScan scan(view.lineage, options.prefix, plan.from);
  while (!scan.done() && page.files.size() < wanted && scan.rows_examined() < kPageRowsMax) {
    TARN_ASSIGN_OR_RETURN(const std::span<const File> files,
                          scan.Next(sql, wanted - page.files.size(), kPageRowsMax));
    page.files.insert(page.files.end(), files.begin(), files.end());
  }
  page.rows_examined = scan.rows_examined();
  if (!scan.done()) {
    page.next_page_token = EncodePageToken(
        TokenKind::kFiles,
        {TokenBytes(view.end), TokenBytes(view.start), options.prefix, scan.position()});
  }
  return page;
}

Status FileNotFound(const FileView& view, std::string_view path) {
  const std::string dataset = view.dataset.ToString();
  const Status status =
      Status::NotFound("no file " + JsonString(path) + " in the view of dataset " + dataset);
  if (view.branch && !view.start) {
    return status.WithReason(
        "FileNotFoundOnBranch",
        JsonObject({{"datasetRid", dataset}, {"branchName", *view.branch}, {"path", path}}));
  }
  const std::string end = view.end ? view.end->ToString() : std::string();
  if (!view.start) {
    return status.WithReason(
        "FileNotFoundOnTransactionRange",
        JsonObject({{"datasetRid", dataset}, {"endTransactionRid", end}, {"path", path}}));
  }
  return status.WithReason("FileNotFoundOnTransactionRange",
                           JsonObject({{"datasetRid", dataset},
                                       {"startTransactionRid", view.start->ToString()},
                                       {"endTransactionRid", end},
                                       {"path", path}}));
}

}  // namespace

Result<FileView> DatasetStore::ResolveView(SqlTransaction& sql, const DatasetRid& dataset,
                                           const ViewSelector& selector) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(ResolvedView resolved, Resolve(sql, row, selector));
  return std::move(resolved.view);
}

Result<FileView> DatasetStore::ResolveView(const DatasetRid& dataset,
                                           const ViewSelector& selector) {
  return InRead(database_,
                [&](SqlTransaction& sql) { return ResolveView(sql, dataset, selector); });
}

Result<File> DatasetStore::StatFile(SqlTransaction& sql, const FileView& view,
                                    std::string_view path) {
  TARN_ASSIGN_OR_RETURN(std::optional<File> file, FindFile(sql, view.lineage, path));
  if (!file) {
    return FileNotFound(view, path);
  }
  return *std::move(file);
}

Result<File> DatasetStore::StatFile(const FileView& view, std::string_view path) {
  return InRead(database_, [&](SqlTransaction& sql) { return StatFile(sql, view, path); });
}

Result<FilePage> DatasetStore::ListFiles(const DatasetRid& dataset, const ViewSelector& selector,
                                         const ListOptions& options) {
  TARN_RETURN_IF_ERROR(CheckPageSize(options.page_size, kPageSizeMax));
  TARN_ASSIGN_OR_RETURN(const PagePlan plan, PlanPage(selector, options));
  int64_t tangled_head = 0;
  TARN_ASSIGN_OR_RETURN(
      FilePage page, InRead(database_, [&](SqlTransaction& sql) -> Result<FilePage> {
        TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
        const Result<ResolvedView> resolved = Resolve(sql, row, plan.selector);
        if (!resolved.ok() && resolved.status().code() == ErrorCode::kNotFound &&
            !options.page_token.empty()) {
          return InvalidPageToken(options.page_token);  // Of another dataset.
        }
        TARN_RETURN_IF_ERROR(resolved);
        TARN_ASSIGN_OR_RETURN(FilePage read, ReadPage(sql, resolved->view, plan, options));
        const CheckpointLimits limits;
        const auto returned = static_cast<int64_t>(read.files.size());
        if (resolved->end && !selector.start && read.rows_examined >= limits.examined_min &&
            read.rows_examined > limits.examined_per_returned * returned) {
          tangled_head = resolved->end->id;
        }
        return read;
      }));
  if (tangled_head != 0) {
    // A hint, if the view is still some branch's head. The page is right without it.
    const Status asked = database_.Write(
        [&](SqlTransaction& sql) {
          return StatusOf(sql.Execute(
              "INSERT INTO dataset_checkpoint_requests (branch_id, dataset_id, requested_at) "
              "SELECT id, dataset_id, ?2 FROM dataset_branches WHERE head_id = ?1 AND dataset_id "
              "= (SELECT dataset_id FROM dataset_transactions WHERE id = ?1) "
              "ON CONFLICT (branch_id) DO NOTHING",
              {tangled_head, ToMicros(clock_.Now())}));
        },
        Durability::kLazy);
    if (!asked.ok() && asked.code() == ErrorCode::kCorruption) {
      return asked;
    }
  }
  return page;
}

Status DatasetStore::StreamFiles(const FileView& view, std::string_view prefix,
                                 const FileBatchCallback& callback, FileDetail detail) {
  FileScan scan(view.lineage, std::string(prefix), {}, detail);
  while (!scan.done()) {
    std::span<const File> files;
    TARN_RETURN_IF_ERROR(database_.Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(files, scan.Next(sql, kStreamFiles, kStreamRowsMax));
      return Status::Ok();
    }));
    if (!files.empty()) {
      TARN_RETURN_IF_ERROR(callback(files));
    }
  }
  return Status::Ok();
}

}  // namespace tarn::dataset
