// TableInputs: how far a target table has read its input datasets. Rows of the metastore, written
// in the SQL transaction that moves the table's pointer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/metastore/database.h"

namespace tarn::lakehouse {

std::vector<metastore::Migration> Migrations();

/// An input dataset and the newest of its transactions that a table holds.
struct ConsumedInput {
  std::string dataset;      // RID.
  std::string transaction;  // RID.
  friend bool operator==(const ConsumedInput&, const ConsumedInput&) = default;
};

/// Rows of older snapshots that are kept, for looking back.
inline constexpr int64_t kInputRowsKept = 1000;

Status WriteInputs(metastore::SqlTransaction& sql, std::string_view table_uuid, int64_t snapshot_id,
                   const std::vector<ConsumedInput>& inputs);
/// Nothing when the table has read nothing of the dataset.
Result<std::optional<std::string>> FindInput(metastore::SqlTransaction& sql,
                                             std::string_view table_uuid, std::string_view dataset);

}  // namespace tarn::lakehouse
