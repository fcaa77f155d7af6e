#include "tarn/lakehouse/fold.h"

#include <algorithm>

#include "tarn/base/check.h"

namespace tarn::lakehouse {

namespace {

constexpr uint32_t kNoRow = UINT32_MAX;

// What is known of a key while the changes go by.
struct SlotState {
  bool live = false;
  bool has_chain = false;        // chain_micros bounds the from of the next version.
  uint32_t newest_row = kNoRow;  // Last effective change so far.
  int64_t chain_micros = 0;
  int64_t inserted_micros = 0;
};

SlotState StartOf(const SlotStart& start) {
  SlotState state;
  if (start.base) {
    state.live = start.base->live;
    state.has_chain = true;
    state.chain_micros = start.base->from_micros;
    state.inserted_micros = start.base->inserted_micros;
  } else if (start.deleted_from_micros) {
    state.has_chain = true;
    state.chain_micros = *start.deleted_from_micros;
  }
  return state;
}

Operation FinalOperation(Operation operation, bool live) {
  if (operation == Operation::kDelete || operation == Operation::kLoad) {
    return operation;
  }
  return live ? Operation::kUpdate : Operation::kInsert;
}

// The end of a superseded version's interval. A delete has an empty one wherever it is stored.
int64_t EndOf(const FoldedChange& change, int64_t next_from_micros) {
  return change.operation == Operation::kDelete ? change.from_micros : next_from_micros;
}

FoldedChange MakeVersion(const ChangeRow& row, uint32_t index, SlotState& state,
                         const FoldOptions& options) {
  FoldedChange version;
  version.effective = true;
  version.newest = true;
  version.operation = FinalOperation(row.operation, state.live);
  version.values_row = index;
  version.from_micros =
      state.has_chain ? std::max(row.timestamp_micros, state.chain_micros) : row.timestamp_micros;
  if (version.operation == Operation::kDelete) {
    version.values_row = state.newest_row == kNoRow ? kValuesOfBase : state.newest_row;
    version.to_micros = version.from_micros;
    // A hard delete without history leaves no trace that a later version could follow.
    state.has_chain = options.history || options.soft_delete;
    state.live = false;
  } else {
    if (!state.live) {
      state.inserted_micros = row.inserted_micros;
    }
    state.has_chain = true;
    state.live = true;
  }
  state.chain_micros = version.from_micros;
  version.inserted_micros = state.inserted_micros;
  return version;
}

}  // namespace

FoldResult FoldChanges(std::span<const ChangeRow> rows, std::span<const SlotStart> starts,
                       const FoldOptions& options) {
  TARN_CHECK(rows.size() < kNoRow);
  FoldResult result;
  result.changes.resize(rows.size());
  result.slots.resize(starts.size());
  std::vector<SlotState> states(starts.size());
  std::transform(starts.begin(), starts.end(), states.begin(), StartOf);
  for (uint32_t index = 0; index < rows.size(); ++index) {
    const ChangeRow& row = rows[index];
    TARN_CHECK(row.slot < states.size());
    SlotState& state = states[row.slot];
    if (row.operation == Operation::kDelete && !state.live) {
      ++result.noop_delete_count;
      continue;
    }
    const FoldedChange version = MakeVersion(row, index, state, options);
    FoldedSlot& slot = result.slots[row.slot];
    slot.touched = true;
    if (state.newest_row != kNoRow) {
      FoldedChange& previous = result.changes[state.newest_row];
      previous.newest = false;
      previous.to_micros = EndOf(previous, version.from_micros);
    } else if (starts[row.slot].base) {
      const BaseVersion& base = *starts[row.slot].base;
      slot.base_to_micros = base.live ? version.from_micros : base.from_micros;
    }
    state.newest_row = index;
    result.changes[index] = version;
  }
  return result;
}

Destination DestinationOf(const FoldedChange& change, const FoldOptions& options) {
  if (!change.effective) {
    return Destination::kNowhere;
  }
  const bool stays_in_current =
      change.newest && (change.operation != Operation::kDelete || options.soft_delete);
  if (stays_in_current) {
    return Destination::kCurrent;
  }
  return options.history ? Destination::kPrior : Destination::kNowhere;
}

}  // namespace tarn::lakehouse
