// KeyRange: between which values the keys of a set of changes lie, to leave out files of Current
// whose bounds say that they hold none of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/iceberg/expression.h"
#include "tarn/iceberg/schema.h"

namespace tarn::lakehouse {

/// One owner thread.
class KeyRange {
 public:
  /// `schema` outlives the range and has the `key` columns.
  KeyRange(const iceberg::Schema& schema, std::vector<std::string> key);

  /// Widens the range by the rows of a batch; `columns` in key order. Cost: one pass over them.
  Status Add(const std::vector<std::shared_ptr<arrow::Array>>& columns);
  /// Bound; true for every row whose key was added. True for all rows before the first Add.
  [[nodiscard]] Result<iceberg::Expression> Filter() const;

 private:
  struct Column {
    const iceberg::SchemaField* field = nullptr;
    iceberg::Literal min;  // Null: no value yet.
    iceberg::Literal max;
    bool has_null = false;
    bool open = false;  // The type has no order here.
  };

  const iceberg::Schema& schema_;
  std::vector<Column> columns_;
};

}  // namespace tarn::lakehouse
