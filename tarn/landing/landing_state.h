// LandingState: what a landing task remembers between commits: its ledger of files and the columns
// found so far. Rows of the metastore, written in the SQL transaction of each commit.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/format/column_set.h"
#include "tarn/metastore/database.h"
#include "tarn/source/files/file_ledger.h"

namespace tarn::landing {

std::vector<metastore::Migration> Migrations();

struct LandingState {
  Timestamp first_start{};
  std::string source;  // URI that the files of the ledger lie below.
  format::ColumnSet columns;
  source::files::FileLedger ledger;
};

/// What one commit adds to the state.
struct LandingStateChange {
  std::vector<source::files::LedgerEntry> entries;  // Added or replaced.
  std::optional<Timestamp> complete_until;
  std::optional<source::files::FileResume> resume;  // Empty: none any more.
  format::ColumnSet columns;
};

/// The state of the task that writes `dataset` (a RID). Nothing before its first start.
/// Cost: O(files ever seen).
Result<std::optional<LandingState>> ReadState(metastore::SqlTransaction& sql,
                                              std::string_view dataset);
/// The columns alone. Cost: one row.
Result<format::ColumnSet> ReadColumns(metastore::SqlTransaction& sql, std::string_view dataset);
/// Records the first start and the source. Errors: kAlreadyExists when it was recorded before.
Status StartState(metastore::SqlTransaction& sql, std::string_view dataset,
                  const LandingState& state);
Status WriteState(metastore::SqlTransaction& sql, std::string_view dataset,
                  const LandingStateChange& change);

/// Files whose rows are committed and that are still to be deleted or moved.
Result<std::vector<source::files::LedgerEntry>> ReadRemovals(metastore::SqlTransaction& sql,
                                                             std::string_view dataset);
Status AddRemoval(metastore::SqlTransaction& sql, std::string_view dataset, std::string_view key);
Status FinishRemoval(metastore::SqlTransaction& sql, std::string_view dataset,
                     std::string_view key);

}  // namespace tarn::landing
