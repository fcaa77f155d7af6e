// StrongId: an integer that is only equal to, and only passes for, its own kind.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace tarn {

/// `using SnapshotId = StrongId<struct SnapshotIdTag>;` Value; no arithmetic on purpose.
template <typename Tag, typename Value = int64_t>
struct StrongId {
  Value value{};
  friend auto operator<=>(const StrongId&, const StrongId&) = default;
};

}  // namespace tarn

template <typename Tag, typename Value>
struct std::hash<tarn::StrongId<Tag, Value>> {
  size_t operator()(const tarn::StrongId<Tag, Value>& id) const noexcept {
    return std::hash<Value>{}(id.value);
  }
};
