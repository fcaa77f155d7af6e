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
#include "tarn/landing/source_keys.h"
#include "tarn/metastore/database.h"
#include "tarn/source/files/file_ledger.h"

namespace tarn::landing {

std::vector<metastore::Migration> Migrations();

/// How far a commit has got: written into the record of its transaction.
struct LandingPositions {
  int64_t commit_number = 0;  // Of transactions of this task, from 1.
  std::optional<Timestamp> complete_until;
  std::optional<source::files::FileResume> resume;
  friend bool operator==(const LandingPositions&, const LandingPositions&) = default;
};

/// JSON for the member "positions" of a transaction's record.
std::string EncodePositions(const LandingPositions& positions);
/// The positions in a record; nothing when it has none. Errors: kCorruption.
Result<std::optional<LandingPositions>> DecodePositions(std::string_view record_json);

struct LandingState {
  Timestamp first_start{};
  std::string source;  // URI that the files of the ledger lie below.
  format::ColumnSet columns;
  SourceKeys keys;
  source::files::FileLedger ledger;
  int64_t commit_number = 0;  // Of the newest transaction.
  std::string cluster;        // Id of the Kafka cluster; empty: no offset was ever stored.
};

/// What one commit adds to the state.
struct LandingStateChange {
  std::vector<source::files::LedgerEntry> entries;  // Added or replaced.
  std::vector<source::files::LedgerEntry> touched;  // Replaced, without rows of this commit.
  std::optional<Timestamp> complete_until;
  std::optional<source::files::FileResume> resume;  // Empty: none any more.
  format::ColumnSet columns;
  SourceKeys keys;
  int64_t commit_number = 0;  // Of the newest transaction, this one or an earlier one.
};

/// The state of the task that writes `dataset` (a RID). Nothing before its first start.
/// Cost: O(files ever seen).
Result<std::optional<LandingState>> ReadState(metastore::SqlTransaction& sql,
                                              std::string_view dataset);
/// The columns alone. Cost: one row.
Result<format::ColumnSet> ReadColumns(metastore::SqlTransaction& sql, std::string_view dataset);
/// The keys alone. Cost: one row.
Result<SourceKeys> ReadKeys(metastore::SqlTransaction& sql, std::string_view dataset);
/// Records the first start and the source. Errors: kAlreadyExists when it was recorded before.
Status StartState(metastore::SqlTransaction& sql, std::string_view dataset,
                  const LandingState& state);
Status WriteState(metastore::SqlTransaction& sql, std::string_view dataset,
                  const LandingStateChange& change);
/// Notes the cluster that offsets of the task come from.
Status WriteCluster(metastore::SqlTransaction& sql, std::string_view dataset,
                    std::string_view cluster);
/// Goes back to `positions`: forgets the files of later commits, so that they are landed again.
/// Returns how many.
Result<int64_t> GoBack(metastore::SqlTransaction& sql, std::string_view dataset,
                       const LandingPositions& positions);

/// Files whose rows are committed and that are still to be deleted or moved: the next 1000 by key
/// behind `after`.
Result<std::vector<source::files::LedgerEntry>> ReadRemovals(metastore::SqlTransaction& sql,
                                                             std::string_view dataset,
                                                             std::string_view after);
Status AddRemoval(metastore::SqlTransaction& sql, std::string_view dataset, std::string_view key);
Status FinishRemoval(metastore::SqlTransaction& sql, std::string_view dataset,
                     std::string_view key);

}  // namespace tarn::landing
