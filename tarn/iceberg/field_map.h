// FieldMap: a small map from field id to a value, sorted, in one allocation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tarn::iceberg {

template <typename T>
class FieldMap {
 public:
  using Entry = std::pair<int32_t, T>;

  FieldMap() = default;
  FieldMap(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) {
      Set(entry.first, entry.second);
    }
  }

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] size_t size() const { return entries_.size(); }
  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }
  void reserve(size_t count) { entries_.reserve(count); }
  void clear() { entries_.clear(); }

  /// Null when there is none.
  [[nodiscard]] const T* Find(int32_t id) const {
    const auto at = LowerBound(id);
    return at != entries_.end() && at->first == id ? &at->second : nullptr;
  }
  /// Adds or replaces.
  void Set(int32_t id, T value) {
    if (entries_.empty() || entries_.back().first < id) {
      entries_.emplace_back(id, std::move(value));
      return;
    }
    const auto at = entries_.begin() + (LowerBound(id) - entries_.begin());
    if (at->first == id) {
      at->second = std::move(value);
    } else {
      entries_.insert(at, Entry(id, std::move(value)));
    }
  }
  void Remove(int32_t id) {
    std::erase_if(entries_, [id](const Entry& entry) { return entry.first == id; });
  }
  friend bool operator==(const FieldMap&, const FieldMap&) = default;

 private:
  [[nodiscard]] auto LowerBound(int32_t id) const {
    return std::lower_bound(entries_.begin(), entries_.end(), id,
                            [](const Entry& entry, int32_t value) { return entry.first < value; });
  }
  std::vector<Entry> entries_;
};

}  // namespace tarn::iceberg
