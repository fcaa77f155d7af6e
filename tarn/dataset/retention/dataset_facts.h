// Facts: what retention looks at of a dataset's branches and transactions. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tarn/dataset/retention/policy.h"
#include "tarn/dataset/rows.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset::retention {

struct BranchFacts {
  int64_t id = 0;
  std::string name;
  std::optional<int64_t> head_id;
};

/// The branches of a dataset and the transactions that nothing may take the view of: heads and
/// tagged ones. Memory: O(branches + tags).
struct Guarded {
  std::vector<BranchFacts> branches;
  std::unordered_set<int64_t> transactions;

  [[nodiscard]] std::optional<std::string> NameOf(int64_t branch_id) const;
};
Result<Guarded> LoadGuarded(metastore::SqlTransaction& sql, int64_t dataset_id);

/// The sets behind a policy's keep_newest and keep_views. Memory: O(N · branches).
struct KeptByPolicy {
  std::unordered_set<int64_t> newest;  // Transaction ids.
  std::unordered_set<int64_t> views;   // Ids of the transactions that start them.
};
Result<KeptByPolicy> LoadKept(metastore::SqlTransaction& sql, const TransactionSelector& selector,
                              const Guarded& guarded);

/// When the newest commit of each view was. Memory: O(views).
using ViewAges = std::unordered_map<int64_t, Timestamp>;
/// Adds transactions with ids above `after`, up to 1000; returns the last id, 0 = done.
Result<int64_t> AddViewAges(metastore::SqlTransaction& sql, int64_t dataset_id, int64_t after,
                            ViewAges& ages);

/// Whether the latest view of some branch shows a file that the transaction wrote. Reads in
/// transactions of its own. Cost: O(its files · branches) seeks at worst.
Result<bool> HasFileInActiveView(metastore::Database& database, const TransactionRow& row,
                                 const Guarded& guarded);

}  // namespace tarn::dataset::retention
