// SnapshotSummary: what a commit counts, as the key-value pairs of a snapshot's summary.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tarn/iceberg/manifest.h"
#include "tarn/iceberg/snapshot.h"

namespace tarn::iceberg {

/// Adds up files; a value with one owner.
class SnapshotSummary {
 public:
  void Add(const DataFile& file) { Count(file, added_); }
  void Remove(const DataFile& file) { Count(file, removed_); }

  [[nodiscard]] bool has_removals() const {
    return removed_.data_files > 0 || removed_.delete_files > 0;
  }
  /// Counted keys over `own` keys; totals carry on from `parent` (null = the first snapshot) and
  /// are left out where the parent has none. Zeros are left out but in totals.
  [[nodiscard]] std::map<std::string, std::string> Build(
      const std::map<std::string, std::string>& own, const Snapshot* parent) const;

 private:
  struct Counts {
    int64_t data_files = 0;
    int64_t delete_files = 0;
    int64_t position_delete_files = 0;
    int64_t equality_delete_files = 0;
    int64_t vectors = 0;
    int64_t records = 0;
    int64_t size_bytes = 0;
    int64_t position_deletes = 0;
    int64_t equality_deletes = 0;
  };
  void Count(const DataFile& file, Counts& counts);

  Counts added_;
  Counts removed_;
  std::set<std::pair<int32_t, std::string>> partitions_;  // Spec id and encoded values.
};

}  // namespace tarn::iceberg
