// Rows of this room's tables, as the SQL of this room reads and writes them. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tarn/base/clock.h"
#include "tarn/dataset/branch.h"
#include "tarn/dataset/dataset.h"
#include "tarn/dataset/ids.h"
#include "tarn/dataset/lineage.h"
#include "tarn/dataset/transaction.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset {

struct DatasetRow {
  int64_t id = 0;
  Dataset dataset;
};

struct BranchRow {
  int64_t id = 0;
  int64_t dataset_id = 0;
  std::string name;
  std::optional<int64_t> parent_id;
  /// Whose schemas a reader of this branch sees: "branch id:newest schema id" joined by ','.
  std::string ancestry;
  std::optional<int64_t> head_id;  // Newest committed.
  std::optional<int64_t> open_id;
  LineId line = 0;  // The line whose tip the head is and that this branch owns; 0 = none.
  int64_t next_ordinal = 0;
  Timestamp moved_at{};  // Not before the head's closing.
  Timestamp created_at{};
  std::string created_by;
  bool is_protected = false;  // May not be deleted or rolled back.
};

struct TransactionRow {
  int64_t id = 0;
  TransactionRid rid;
  int64_t dataset_id = 0;
  int64_t branch_id = 0;
  TransactionType type = TransactionType::kUpdate;
  TransactionState state = TransactionState::kOpen;
  bool shared = false;  // Other branches stand on it while it is OPEN.
  std::optional<int64_t> parent_id;
  int64_t depth = 0;               // Number of ancestors.
  std::optional<int64_t> jump_id;  // An ancestor further up; see ancestry.h.
  int64_t jump_depth = 0;
  std::optional<int64_t> view_start_id;  // Empty = itself.
  int64_t view_start_depth = 0;
  LineId root = 0;  // Of its own rows; a checkpoint of its view is in the lineage alone.
  LineId line = 0;
  int64_t ordinal = 0;
  Lineage lineage;               // Under one root, which is that of what is started on it.
  int64_t base_overwritten = 0;  // Sums over its ancestors.
  int64_t base_removed = 0;
  int64_t file_count = 0;
  int64_t overwritten_count = 0;
  int64_t removed_count = 0;
  int64_t size_bytes = 0;
  bool by_retention = false;
  Timestamp created_at{};
  std::optional<Timestamp> closed_at;
  std::string created_by;
  std::optional<int64_t> merged_id;  // What a merge took in: its second parent.
  bool swept = false;                // Retention took its data: its view can no longer be read.

  [[nodiscard]] int64_t view_start() const { return view_start_id.value_or(id); }
  /// The lineage without the transaction itself: what is under it.
  [[nodiscard]] Lineage Base() const {
    return Subtract(lineage,
                    {{.root = root, .line = line, .after = ordinal - 1, .through = ordinal}});
  }
};

metastore::Blob ToBlob(const Uuid& uuid);
metastore::SqlValue OrNull(const std::optional<int64_t>& value);
metastore::SqlValue OrNull(const std::optional<std::string>& value);
Uuid ReadUuid(const metastore::SqlRow& row, int column);
std::optional<int64_t> ReadOptionalInt(const metastore::SqlRow& row, int column);

/// First column of the first row as a number. Errors: kInternal when there is no row.
Result<int64_t> QueryInt(metastore::SqlTransaction& sql, std::string_view text,
                         const metastore::SqlArguments& arguments);
/// Likewise; nothing when there is no row or it is NULL.
Result<std::optional<int64_t>> FindInt(metastore::SqlTransaction& sql, std::string_view text,
                                       const metastore::SqlArguments& arguments);

/// Errors of the loads: kNotFound with the wire's reason.
Result<DatasetRow> LoadDataset(metastore::SqlTransaction& sql, const DatasetRid& rid);
Result<BranchRow> LoadBranch(metastore::SqlTransaction& sql, const DatasetRow& dataset,
                             std::string_view name);
Result<std::optional<BranchRow>> FindBranchById(metastore::SqlTransaction& sql, int64_t id);
Result<TransactionRow> LoadTransaction(metastore::SqlTransaction& sql, const DatasetRow& dataset,
                                       const TransactionRid& rid);
/// Errors: kCorruption when it is missing: something points at it.
Result<TransactionRow> LoadTransactionById(metastore::SqlTransaction& sql, int64_t id);

Result<Uuid> TransactionUuid(metastore::SqlTransaction& sql, int64_t id);
/// Fills in names and identifiers. Cost: a few key look-ups.
Result<Branch> ToBranch(metastore::SqlTransaction& sql, const BranchRow& row);
Result<Transaction> ToTransaction(metastore::SqlTransaction& sql, const DatasetRow& dataset,
                                  const TransactionRow& row);

/// A new line of the dataset, never given before.
Result<LineId> InsertLine(metastore::SqlTransaction& sql, int64_t dataset_id);
/// Inserts an OPEN transaction; returns its id.
Result<int64_t> InsertTransaction(metastore::SqlTransaction& sql, const TransactionRow& row);

struct BranchMove {
  int64_t branch_id = 0;
  Timestamp at{};
  std::optional<int64_t> from;
  std::optional<int64_t> to;
  std::string by;
};
Status InsertReflog(metastore::SqlTransaction& sql, const BranchMove& move);

}  // namespace tarn::dataset
