#include "tarn/dataset/branching/tag.h"

#include <utility>

#include "tarn/base/json_text.h"
#include "tarn/dataset/branch.h"
#include "tarn/dataset/errors.h"
#include "tarn/dataset/page_token.h"
#include "tarn/dataset/rows.h"

namespace tarn::dataset::branching {

using metastore::Blob;
using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

namespace {

constexpr int kPageSizeMax = 1000;

std::string Details(const DatasetRid& dataset, std::string_view name) {
  return JsonObject({{"datasetRid", dataset.ToString()}, {"tagName", name}});
}

Status TagNotFound(const DatasetRid& dataset, std::string_view name) {
  return Status::NotFound("dataset " + dataset.ToString() + " has no tag " + JsonString(name))
      .WithReason("TagNotFound", Details(dataset, name));
}

Tag ReadTag(const SqlRow& row) {
  return {.name = std::string(row.Text(0)),
          .transaction = {.uuid = ReadUuid(row, 1)},
          .created_at = FromMicros(row.Int(2)),
          .created_by = std::string(row.Text(3))};
}

}  // namespace

Result<Tag> CreateTag(SqlTransaction& sql, const CreateTagRequest& request) {
  TARN_RETURN_IF_ERROR(CheckBranchName(request.name));
  TARN_ASSIGN_OR_RETURN(const DatasetRow dataset, LoadDataset(sql, request.dataset));
  TARN_ASSIGN_OR_RETURN(const TransactionRow row,
                        LoadTransaction(sql, dataset, request.transaction));
  if (row.state != TransactionState::kCommitted) {
    return TransactionNotCommitted(request.dataset, request.transaction, row.state);
  }
  if (row.swept) {
    return TransactionSwept(request.dataset, request.transaction);
  }
  const Status inserted = StatusOf(sql.Execute(
      "INSERT INTO dataset_tags (dataset_id, name, transaction_id, created_at, created_by) VALUES "
      "(?1, ?2, ?3, ?4, ?5)",
      {dataset.id, Blob{request.name}, row.id, ToMicros(request.now), request.by}));
  if (inserted.code() == ErrorCode::kAlreadyExists) {
    return Status::AlreadyExists("dataset " + request.dataset.ToString() + " already has a tag " +
                                 JsonString(request.name) + "; delete it first to move it")
        .WithReason("TagAlreadyExists", Details(request.dataset, request.name));
  }
  TARN_RETURN_IF_ERROR(inserted);
  return GetTag(sql, request.dataset, request.name);
}

Result<Tag> GetTag(SqlTransaction& sql, const DatasetRid& dataset, std::string_view name) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
  std::optional<Tag> tag;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT g.name, t.uuid, g.created_at, g.created_by FROM dataset_tags g "
                "JOIN dataset_transactions t ON t.id = g.transaction_id "
                "WHERE g.dataset_id = ?1 AND g.name = ?2",
                {row.id, Blob{std::string(name)}}, [&](const SqlRow& found) -> Result<RowAction> {
                  tag = ReadTag(found);
                  return RowAction::kStop;
                }));
  if (!tag) {
    return TagNotFound(dataset, name);
  }
  return *std::move(tag);
}

Result<ViewSelector> SelectorOfName(SqlTransaction& sql, const DatasetRid& dataset,
                                    std::string_view name) {
  ViewSelector selector;
  if (name.starts_with("ri.")) {
    TARN_ASSIGN_OR_RETURN(selector.end, TransactionRid::Parse(name));
    return selector;
  }
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
  const Result<BranchRow> branch = LoadBranch(sql, row, name);
  if (branch.ok()) {
    selector.branch = name;
    return selector;
  }
  if (branch.status().code() != ErrorCode::kNotFound) {
    return branch.status();
  }
  const Result<Tag> tag = GetTag(sql, dataset, name);
  if (tag.status().code() == ErrorCode::kNotFound) {
    return branch.status();
  }
  TARN_RETURN_IF_ERROR(tag);
  selector.end = tag->transaction;
  return selector;
}

Status DeleteTag(SqlTransaction& sql, const DatasetRid& dataset, std::string_view name) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(const int64_t deleted,
                        sql.Execute("DELETE FROM dataset_tags WHERE dataset_id = ?1 AND name = ?2",
                                    {row.id, Blob{std::string(name)}}));
  return deleted == 0 ? TagNotFound(dataset, name) : Status::Ok();
}

Result<TagPage> ListTags(SqlTransaction& sql, const DatasetRid& dataset, int page_size,
                         std::string_view page_token) {
  TARN_RETURN_IF_ERROR(CheckPageSize(page_size, kPageSizeMax));
  std::string after;
  if (!page_token.empty()) {
    TARN_ASSIGN_OR_RETURN(const std::vector<std::string> fields,
                          DecodePageToken(TokenKind::kTags, 1, page_token));
    after = fields[0];
  }
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
  TagPage page;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT g.name, t.uuid, g.created_at, g.created_by FROM dataset_tags g "
      "JOIN dataset_transactions t ON t.id = g.transaction_id "
      "WHERE g.dataset_id = ?1 AND g.name > ?2 ORDER BY g.name LIMIT ?3",
      {row.id, Blob{after}, int64_t{page_size} + 1}, [&](const SqlRow& found) -> Result<RowAction> {
        page.tags.push_back(ReadTag(found));
        return RowAction::kContinue;
      }));
  if (page.tags.size() > static_cast<size_t>(page_size)) {
    page.tags.pop_back();
    page.next_page_token = EncodePageToken(TokenKind::kTags, {page.tags.back().name});
  }
  return page;
}

}  // namespace tarn::dataset::branching
