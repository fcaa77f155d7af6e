#include "tarn/task/landed_batch.h"

#include <algorithm>

#include <fmt/format.h>

namespace tarn::task {

namespace {

using dataset::Transaction;

// Transactions not consumed yet, oldest first.
Result<std::vector<Transaction>> ReadTransactions(
    dataset::DatasetStore& datasets, metastore::Database& database,
    const dataset::DatasetRid& landing, const std::optional<dataset::TransactionRid>& consumed) {
  std::vector<Transaction> transactions;
  bool met = !consumed.has_value();
  TARN_RETURN_IF_ERROR(database.Read([&](metastore::SqlTransaction& sql) {
    transactions.clear();
    return datasets.VisitCommitted(
        sql, landing, "master",
        [&](const Transaction& transaction) -> Result<metastore::RowAction> {
          if (consumed && transaction.rid == *consumed) {
            met = true;
            return metastore::RowAction::kStop;
          }
          transactions.push_back(transaction);
          return metastore::RowAction::kContinue;
        });
  }));
  if (!met) {
    return Status::FailedPrecondition(fmt::format(
        "{}: transaction {} that was read before is no longer on branch master: recreate the table",
        landing.ToString(), consumed->ToString()));
  }
  std::reverse(transactions.begin(), transactions.end());
  return transactions;
}

Status AddFiles(dataset::DatasetStore& datasets, const dataset::DatasetRid& landing,
                const Transaction& transaction, LandedBatch& batch) {
  dataset::ListOptions page;
  while (true) {
    TARN_ASSIGN_OR_RETURN(
        const dataset::FilePage files,
        datasets.ListFiles(landing, {.end = transaction.rid, .start = transaction.rid}, page));
    for (const dataset::File& file : files.files) {
      batch.files.push_back({.location = file.location,
                             .committed = transaction.closed_at.value_or(transaction.created_at),
                             .row_count = file.row_count.value_or(0)});
      batch.rows += file.row_count.value_or(0);
    }
    if (!files.next_page_token) {
      return Status::Ok();
    }
    page.page_token = *files.next_page_token;
  }
}

}  // namespace

Result<LandedBatch> ReadLandedBatch(dataset::DatasetStore& datasets, metastore::Database& database,
                                    const dataset::DatasetRid& landing,
                                    const std::optional<dataset::TransactionRid>& consumed,
                                    const pipeline::BatchLimits& limits) {
  TARN_ASSIGN_OR_RETURN(const std::vector<Transaction> transactions,
                        ReadTransactions(datasets, database, landing, consumed));
  LandedBatch batch;
  int64_t bytes = 0;
  for (const Transaction& transaction : transactions) {
    const bool full = batch.rows >= limits.rows || bytes >= limits.bytes;
    if (batch.newest && full) {
      ++batch.transactions_left;
      continue;
    }
    if (transaction.type == dataset::TransactionType::kDelete && transaction.by_retention) {
      batch.newest = transaction.rid;
      continue;
    }
    if (transaction.type != dataset::TransactionType::kAppend) {
      return Status::FailedPrecondition(fmt::format(
          "{}: transaction {} is {}, not APPEND: recreate the table", landing.ToString(),
          transaction.rid.ToString(), dataset::TransactionTypeName(transaction.type)));
    }
    TARN_RETURN_IF_ERROR(AddFiles(datasets, landing, transaction, batch));
    bytes += transaction.size_bytes;
    batch.newest = transaction.rid;
  }
  return batch;
}

Result<bool> HasLandedSince(dataset::DatasetStore& datasets, metastore::Database& database,
                            const dataset::DatasetRid& landing,
                            const std::optional<dataset::TransactionRid>& consumed) {
  bool landed = false;
  TARN_RETURN_IF_ERROR(database.Read([&](metastore::SqlTransaction& sql) {
    landed = false;
    return datasets.VisitCommitted(
        sql, landing, "master",
        [&](const Transaction& transaction) -> Result<metastore::RowAction> {
          landed = !consumed || transaction.rid != *consumed;
          return metastore::RowAction::kStop;
        });
  }));
  return landed;
}

}  // namespace tarn::task
