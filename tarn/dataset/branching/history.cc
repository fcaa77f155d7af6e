#include "tarn/dataset/branching/history.h"

#include <utility>

#include "tarn/dataset/rows.h"

namespace tarn::dataset::branching {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

namespace {

// Branches and tags by the transaction they stand on.
struct Refs {
  std::vector<std::pair<int64_t, std::string>> branches;
  std::vector<std::pair<int64_t, std::string>> tags;
};

Result<Refs> LoadRefs(SqlTransaction& sql, int64_t dataset_id) {
  Refs refs;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT COALESCE(open_id, head_id), name FROM dataset_branches WHERE dataset_id = "
                "?1 ORDER BY name",
                {dataset_id}, [&](const SqlRow& row) -> Result<RowAction> {
                  refs.branches.emplace_back(row.Int(0), std::string(row.Text(1)));
                  return RowAction::kContinue;
                }));
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT transaction_id, name FROM dataset_tags WHERE dataset_id = ?1 ORDER BY name",
                {dataset_id}, [&](const SqlRow& row) -> Result<RowAction> {
                  refs.tags.emplace_back(row.Int(0), std::string(row.Text(1)));
                  return RowAction::kContinue;
                }));
  return refs;
}

void TakeNames(const std::vector<std::pair<int64_t, std::string>>& refs, int64_t id,
               std::vector<std::string>& names) {
  for (const auto& [at, name] : refs) {
    if (at == id) {
      names.push_back(name);
    }
  }
}

}  // namespace

Result<HistoryPage> ListHistory(metastore::Database& database, DatasetStore& datasets,
                                const DatasetRid& dataset, int page_size,
                                std::string_view page_token) {
  TARN_ASSIGN_OR_RETURN(TransactionPage listed,
                        datasets.ListTransactions(dataset, page_size, page_token));
  HistoryPage page;
  page.next_page_token = std::move(listed.next_page_token);
  for (Transaction& transaction : listed.transactions) {
    page.entries.push_back({.transaction = std::move(transaction)});
  }
  TARN_RETURN_IF_ERROR(database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const DatasetRow dataset_row, LoadDataset(sql, dataset));
    TARN_ASSIGN_OR_RETURN(const Refs refs, LoadRefs(sql, dataset_row.id));
    for (HistoryEntry& entry : page.entries) {
      TARN_ASSIGN_OR_RETURN(const TransactionRow row,
                            LoadTransaction(sql, dataset_row, entry.transaction.rid));
      entry.swept = row.swept;
      if (row.merged_id) {
        TARN_ASSIGN_OR_RETURN(const Uuid uuid, TransactionUuid(sql, *row.merged_id));
        entry.merged = TransactionRid{.uuid = uuid};
      }
      TakeNames(refs.branches, row.id, entry.branches);
      TakeNames(refs.tags, row.id, entry.tags);
      TARN_ASSIGN_OR_RETURN(
          const std::optional<int64_t> sweep_at,
          FindInt(sql, "SELECT sweep_at FROM dataset_retention_marks WHERE transaction_id = ?1",
                  {row.id}));
      if (sweep_at) {
        entry.sweep_at = FromMicros(*sweep_at);
      }
    }
    return Status::Ok();
  }));
  return page;
}

}  // namespace tarn::dataset::branching
