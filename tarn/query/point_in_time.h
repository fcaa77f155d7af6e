// PointInTime: which state of a table, view or dataset a reader asks for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/dataset/ids.h"

namespace tarn::query {

/// What stands now.
struct Newest {
  friend bool operator==(const Newest&, const Newest&) = default;
};
/// A snapshot of an Iceberg table.
struct SnapshotId {
  int64_t value = 0;
  friend bool operator==(const SnapshotId&, const SnapshotId&) = default;
};

/// Tables: the newest state, a snapshot, the snapshot that was current at a time, or the one that
/// took in a landing transaction. Datasets: all but snapshots.
using PointInTime = std::variant<Newest, Timestamp, SnapshotId, dataset::TransactionRid>;

/// "" is the newest; digits are a snapshot id; "ri.foundry.main.transaction.…" a transaction; all
/// else an ISO-8601 time with a zone. Errors: kInvalidArgument naming the three.
Result<PointInTime> ParsePointInTime(std::string_view text);
/// As a person would write it; "now" for the newest.
std::string FormatPointInTime(const PointInTime& point);

}  // namespace tarn::query
