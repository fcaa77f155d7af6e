// The files of a dataset that some readable view shows. Private to the room.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/dataset/lineage.h"
#include "tarn/dataset/retention/reachability.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset::retention {

/// Called with the location of a managed file that is needed; one may come several times.
using LocationCallback = std::function<Status(const std::string& location)>;

/// What is kept of a view root. Members of transactions that retention took, or whose mark is due
/// at `due_at` (a dry run), are not kept.
struct RootContent {
  std::vector<Member> members;
  std::vector<int64_t> ids;  // Of the members' transactions.
};
Result<RootContent> LoadRoot(metastore::Database& database, LineId root,
                             std::optional<Timestamp> due_at);

/// Walks all roots of a dataset in short read transactions. Errors: those of the metastore and of
/// `visit`. Memory: the transactions of one root and the rows of one path.
Status VisitLiveFiles(metastore::Database& database, int64_t dataset_id,
                      std::optional<Timestamp> due_at, const LocationCallback& visit);

}  // namespace tarn::dataset::retention
