// DirectMapping: a mapping that only chooses columns, done without the engine.
//
// Most tables take landed columns as they are. For those the statement of a CompiledMapping would
// only copy values from one form to another and back; this does the same on the arrays themselves.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/transform/mapping.h"

namespace tarn::transform {

/// Immutable; any thread.
class DirectMapping {
 public:
  /// Nothing unless every table column is a landed column of the same name and type and no rule
  /// (where, expect, delete_when, sequence_by, event_time, array elements, hashes) looks at values;
  /// with renames the same name may mean another column, so those go to the statement, too.
  static std::optional<DirectMapping> Of(const CompiledMapping& mapping,
                                         const arrow::Schema& landed);

  /// Landed columns that Map needs, in its order; those a file lacks are NULL.
  [[nodiscard]] const std::vector<std::string>& landed_columns() const { return columns_; }
  /// Columns in which a value that is not NULL means the rows need the statement after all.
  [[nodiscard]] const std::vector<std::string>& null_columns() const { return null_columns_; }
  /// Columns in which a NULL means the same: the keys, unless NULL keys are allowed.
  [[nodiscard]] const std::vector<std::string>& full_columns() const { return full_columns_; }

  /// The good rows, as SplitOutcome gives them, of rows that have `landed_columns()` in this order
  /// and fulfil the two lists above: mapped columns, tarn_row counting from `first_row`, and the
  /// passed header columns that were asked for. Constant hidden columns are left out. O(rows).
  [[nodiscard]] Result<std::shared_ptr<arrow::RecordBatch>> Map(const arrow::RecordBatch& landed,
                                                                int64_t first_row) const;

 private:
  std::vector<std::string> columns_;
  std::vector<std::string> null_columns_;
  std::vector<std::string> full_columns_;
  size_t mapped_ = 0;  // The first ones of columns_.
};

}  // namespace tarn::transform
