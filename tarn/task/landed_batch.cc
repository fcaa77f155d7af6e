#include "tarn/task/landed_batch.h"

#include <algorithm>

#include <fmt/format.h>

#include "tarn/dataset/changes/start_order.h"

namespace tarn::task {

namespace {

using dataset::Transaction;
using metastore::RowAction;
using metastore::SqlTransaction;

// Transactions of one input that are not consumed yet, oldest first.
Result<std::vector<WaitingTransaction>> ReadWaiting(SqlTransaction& sql,
                                                    dataset::DatasetStore& datasets,
                                                    const LandedInput& input) {
  std::vector<WaitingTransaction> waiting;
  bool met = !input.consumed.has_value();
  bool ends = !input.until.has_value();  // Else it was read before, and the rest is not wanted.
  TARN_RETURN_IF_ERROR(datasets.VisitCommitted(
      sql, input.dataset, "master", [&](const Transaction& transaction) -> Result<RowAction> {
        if (input.consumed && transaction.rid == *input.consumed) {
          met = true;
          return RowAction::kStop;
        }
        if (input.until && transaction.rid == *input.until) {
          waiting.clear();  // Those behind it.
          ends = true;
        }
        waiting.push_back({.transaction = transaction});
        return RowAction::kContinue;
      }));
  if (!met) {
    return Status::FailedPrecondition(fmt::format(
        "{}: transaction {} that was read before is no longer on branch master: recreate the table",
        input.dataset.ToString(), input.consumed->ToString()));
  }
  if (!ends) {
    waiting.clear();
  }
  std::reverse(waiting.begin(), waiting.end());
  return waiting;
}

// Those of all inputs as they are at one moment, in the order of commits.
Result<std::vector<WaitingTransaction>> ReadAllWaiting(dataset::DatasetStore& datasets,
                                                       metastore::Database& database,
                                                       const std::vector<LandedInput>& inputs) {
  std::vector<std::vector<WaitingTransaction>> all;
  TARN_RETURN_IF_ERROR(database.Read([&](SqlTransaction& sql) -> Status {
    all.clear();
    for (const LandedInput& input : inputs) {
      TARN_ASSIGN_OR_RETURN(std::vector<WaitingTransaction> waiting,
                            ReadWaiting(sql, datasets, input));
      for (WaitingTransaction& one : waiting) {
        one.input = all.size();
        if (inputs.size() > 1) {
          TARN_ASSIGN_OR_RETURN(one.order, dataset::changes::StartOrder(sql, one.transaction.rid));
        }
      }
      all.push_back(std::move(waiting));
    }
    return Status::Ok();
  }));
  return MergeWaiting(std::move(all));
}

Status AddFiles(dataset::DatasetStore& datasets, const WaitingTransaction& waiting,
                const dataset::DatasetRid& landing, LandedBatch& batch) {
  const Transaction& transaction = waiting.transaction;
  dataset::ListOptions page;
  while (true) {
    TARN_ASSIGN_OR_RETURN(
        const dataset::FilePage files,
        datasets.ListFiles(landing, {.end = transaction.rid, .start = transaction.rid}, page));
    for (const dataset::File& file : files.files) {
      batch.files.push_back({.location = file.location,
                             .committed = transaction.closed_at.value_or(transaction.created_at),
                             .row_count = file.row_count.value_or(0),
                             .input = waiting.input});
      batch.rows += file.row_count.value_or(0);
    }
    if (!files.next_page_token) {
      return Status::Ok();
    }
    page.page_token = *files.next_page_token;
  }
}

}  // namespace

std::vector<WaitingTransaction> MergeWaiting(std::vector<std::vector<WaitingTransaction>> inputs) {
  std::vector<WaitingTransaction> merged;
  for (std::vector<WaitingTransaction>& input : inputs) {
    int64_t newest = 0;
    for (WaitingTransaction& waiting : input) {
      newest = std::max(newest, waiting.order);
      waiting.order = newest;
      merged.push_back(std::move(waiting));
    }
  }
  std::stable_sort(
      merged.begin(), merged.end(),
      [](const WaitingTransaction& a, const WaitingTransaction& b) { return a.order < b.order; });
  return merged;
}

Result<LandedBatch> ReadLandedBatch(dataset::DatasetStore& datasets, metastore::Database& database,
                                    const std::vector<LandedInput>& inputs,
                                    const pipeline::BatchLimits& limits) {
  TARN_ASSIGN_OR_RETURN(const std::vector<WaitingTransaction> all,
                        ReadAllWaiting(datasets, database, inputs));
  LandedBatch batch;
  int64_t bytes = 0;
  for (const WaitingTransaction& waiting : all) {
    if (!batch.newest.empty() && (batch.rows >= limits.rows || bytes >= limits.bytes)) {
      break;
    }
    const Transaction& transaction = waiting.transaction;
    const dataset::DatasetRid& landing = inputs[waiting.input].dataset;
    batch.newest[waiting.input] = transaction.rid;
    if (transaction.type == dataset::TransactionType::kDelete && transaction.by_retention) {
      continue;
    }
    if (transaction.type != dataset::TransactionType::kAppend) {
      return Status::FailedPrecondition(fmt::format(
          "{}: transaction {} is {}, not APPEND: recreate the table", landing.ToString(),
          transaction.rid.ToString(), dataset::TransactionTypeName(transaction.type)));
    }
    TARN_RETURN_IF_ERROR(AddFiles(datasets, waiting, landing, batch));
    bytes += transaction.size_bytes;
  }
  return batch;
}

std::vector<LandedBatch> SplitByGroup(const LandedBatch& batch,
                                      const std::vector<size_t>& group_of) {
  std::vector<LandedBatch> parts;
  for (const LandedFile& file : batch.files) {
    if (parts.empty() || group_of[parts.back().files.back().input] != group_of[file.input]) {
      parts.emplace_back();
    }
    parts.back().files.push_back(file);
    parts.back().rows += file.row_count;
  }
  return parts;
}

Result<bool> HasLandedSince(dataset::DatasetStore& datasets, metastore::Database& database,
                            const LandedInput& input) {
  bool landed = false;
  TARN_RETURN_IF_ERROR(database.Read([&](SqlTransaction& sql) {
    landed = false;
    return datasets.VisitCommitted(sql, input.dataset, "master",
                                   [&](const Transaction& transaction) -> Result<RowAction> {
                                     landed = !input.consumed || transaction.rid != *input.consumed;
                                     return RowAction::kStop;
                                   });
  }));
  return landed;
}

}  // namespace tarn::task
