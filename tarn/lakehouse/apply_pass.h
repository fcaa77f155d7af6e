// ApplyPass: one pass of an apply, over the keys of one share. Only for apply.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tarn/lakehouse/apply.h"
#include "tarn/lakehouse/fold.h"
#include "tarn/lakehouse/key_index.h"
#include "tarn/lakehouse/key_range.h"
#include "tarn/lakehouse/table_writer.h"
#include "tarn/lakehouse/version_rows.h"

namespace tarn::lakehouse {

/// Which keys a pass takes: those whose hash leaves `number` modulo `count`.
struct PassShare {
  uint64_t number = 0;
  uint64_t count = 1;
};

/// Where rows go.
struct ApplyWriters {
  TableWriter& current;
  TableWriter& current_deleted;
  TableWriter& prior;
  TableWriter& prior_deleted;
};

/// Rows that earlier applies deleted, by file of Current, ascending.
using DeletedByFile = std::vector<std::vector<int64_t>>;

class ApplyPass {
 public:
  ApplyPass(const ApplyRequest& request, const ApplyDeps& deps, PassShare share);

  /// Reads keys, finds them in Current and folds.
  Status Fold(const DeletedByFile& deleted);
  /// Writes the rows that result, counts them, and adds the rows that leave Current to `dead`.
  Status Emit(const ApplyWriters& writers, DeletedByFile& dead, ApplyCounts& counts);

 private:
  struct LocatedBase {
    uint32_t file = 0;
    int64_t position = 0;
    int64_t modified_micros = 0;
    bool found = false;
  };
  struct Batch;  // Output of one batch of values, by destination.

  [[nodiscard]] bool CanHoldValues() const;
  Status ReadChanges();
  Status AddChanges(const arrow::RecordBatch& batch);
  Status LocateInCurrent(size_t file, const std::vector<int64_t>& deleted);
  Status LocateInPrior(const FileScanTask& task);
  Status FindBases(const DeletedByFile& deleted);
  void ChooseSuccessors();
  Status EmitChanges(const ApplyWriters& writers, ApplyCounts& counts);
  Status EmitValues(const arrow::RecordBatch& rows, int64_t first_row, uint32_t& change,
                    const ApplyWriters& writers, ApplyCounts& counts);
  Status EmitBases(const ApplyWriters& writers, ApplyCounts& counts);
  Status EmitBasesOf(size_t file, const std::vector<uint32_t>& slots, const ApplyWriters& writers,
                     ApplyCounts& counts);
  [[nodiscard]] char CodeOf(Operation operation) const;
  void AddVersion(uint32_t change, int64_t source_row, Batch& batch) const;
  Status WriteBatch(const arrow::RecordBatch& values, const Batch& batch,
                    const ApplyWriters& writers, ApplyCounts& counts);
  [[nodiscard]] Result<std::shared_ptr<const KeyBatch>> KeysOf(
      const arrow::RecordBatch& batch) const;
  [[nodiscard]] std::vector<std::shared_ptr<arrow::Array>> KeyColumns(
      const arrow::RecordBatch& batch) const;
  [[nodiscard]] bool InShare(const KeyBatch& keys, int64_t row) const;
  [[nodiscard]] std::vector<std::string> Columns(
      const std::vector<std::string_view>& headers) const;

  const ApplyRequest& request_;
  ApplyDeps deps_;
  PassShare share_;
  KeyIndex index_;
  KeyRange range_;
  std::vector<ChangeRow> changes_;
  std::vector<int64_t> ordinals_;  // Of each change among all rows of the change files.
  int64_t rows_read_ = 0;
  bool holds_values_ = false;
  std::vector<std::shared_ptr<arrow::RecordBatch>> held_;  // All batches of the change files.
  std::vector<SlotStart> starts_;
  std::vector<LocatedBase> bases_;        // By slot.
  std::vector<uint32_t> delete_after_;    // By change: the delete that shows its values.
  std::vector<uint32_t> delete_of_base_;  // By slot: likewise for the base.
  FoldResult folded_;
};

}  // namespace tarn::lakehouse
