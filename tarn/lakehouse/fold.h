// Fold: what an ordered stream of changes makes of each key. Pure; the heart of apply.
//
// Rows are changes in identifier order. Each row belongs to a slot (one per distinct key). A slot
// starts from what Current holds of its key, the base. The fold decides for each row whether it
// takes effect, its final operation, its interval [from, to), and whose values it shows.
// docs/formats/internal_table.md, "How changes become versions", restates the rules.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tarn::lakehouse {

/// What a change does. L is a row of a full load.
enum class Operation : char {
  kInsert = 'I',
  kUpdate = 'U',
  kDelete = 'D',
  kLoad = 'L',
};

struct FoldOptions {
  bool history = false;      // Superseded versions are kept in Prior.
  bool soft_delete = false;  // A deleted row stays in Current with operation D.
  friend bool operator==(const FoldOptions&, const FoldOptions&) = default;
};

/// One change as the fold reads it. Times in microseconds since 1970, UTC.
struct ChangeRow {
  uint32_t slot = 0;
  Operation operation = Operation::kInsert;
  int64_t timestamp_micros = 0;  // When the change happened in the source.
  int64_t inserted_micros = 0;   // When the product processed it.
};

/// What Current holds of a key before the changes.
struct BaseVersion {
  bool live = false;  // False: a row kept by soft_delete.
  int64_t from_micros = 0;
  int64_t inserted_micros = 0;
};

/// Where a slot starts.
struct SlotStart {
  std::optional<BaseVersion> base;
  /// With history and without base: the from of the key's newest D row in Prior.
  std::optional<int64_t> deleted_from_micros;
};

/// The row whose user columns a version shows.
inline constexpr uint32_t kValuesOfBase = UINT32_MAX;
inline constexpr int64_t kOpenEnd = INT64_MAX;

/// Outcome of one change row.
struct FoldedChange {
  bool effective = false;  // False: a delete of a key that is not live; nothing is written.
  bool newest = false;     // The last effective change of its key.
  Operation operation = Operation::kInsert;
  uint32_t values_row = 0;  // Its own index, but the previous version's for a delete.
  int64_t from_micros = 0;
  int64_t to_micros = kOpenEnd;  // kOpenEnd for a newest row that is no delete.
  int64_t inserted_micros = 0;
};

/// Outcome for the base of a slot.
struct FoldedSlot {
  bool touched = false;               // Some change of the key took effect.
  int64_t base_to_micros = kOpenEnd;  // End of the base's interval once superseded.
};

struct FoldResult {
  std::vector<FoldedChange> changes;  // One per row.
  std::vector<FoldedSlot> slots;      // One per slot.
  int64_t noop_delete_count = 0;
};

/// Where a version belongs after an apply.
enum class Destination { kNowhere, kCurrent, kPrior };

/// Folds `rows` over the bases in `starts`.
///
/// Every ChangeRow::slot is below starts.size(); at most 2^32 - 2 rows. Cost: O(rows), no
/// allocation per row. Threads: any.
FoldResult FoldChanges(std::span<const ChangeRow> rows, std::span<const SlotStart> starts,
                       const FoldOptions& options);

/// Where the version that a change made is stored.
Destination DestinationOf(const FoldedChange& change, const FoldOptions& options);

}  // namespace tarn::lakehouse
