// History: all transactions of a dataset as a graph, with what stands on each.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/dataset/dataset_store.h"
#include "tarn/dataset/ids.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset::branching {

struct HistoryEntry {
  Transaction transaction;
  std::optional<TransactionRid> merged;  // A merge's second parent.
  std::vector<std::string> branches;     // Whose newest transaction it is.
  std::vector<std::string> tags;
  bool swept = false;                   // Retention took its data.
  std::optional<Timestamp> sweep_at{};  // Marked: when that may happen.
};

struct HistoryPage {
  std::vector<HistoryEntry> entries;  // Newest first; parents come after their children.
  std::optional<std::string> next_page_token;
};

/// Errors: DatasetNotFound, InvalidPageSize (1–1000), InvalidPageToken.
Result<HistoryPage> ListHistory(metastore::Database& database, DatasetStore& datasets,
                                const DatasetRid& dataset, int page_size,
                                std::string_view page_token);

}  // namespace tarn::dataset::branching
