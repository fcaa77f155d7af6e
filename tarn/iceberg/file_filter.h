// FileFilter: a bound filter (expression.h) made ready to be asked about the many files of a scan.
#pragma once

#include <vector>

#include "tarn/iceberg/expression.h"
#include "tarn/iceberg/manifest.h"
#include "tarn/iceberg/partition_spec.h"
#include "tarn/iceberg/schema.h"

namespace tarn::iceberg {

/// MayMatchFile and MayMatchPartition with the columns looked up once. Threads: any.
class FileFilter {
 public:
  /// Both must outlive the filter. `expression` is bound to `schema`.
  FileFilter(const Expression& expression, const Schema& schema);

  [[nodiscard]] bool MayMatchFile(const DataFile& file) const;
  [[nodiscard]] bool MayMatchPartition(const PartitionSpec& spec,
                                       const PartitionValues& values) const;

  /// An expression with the column of its predicate.
  struct Node {
    const Expression* expression = nullptr;
    const SchemaField* column = nullptr;  // Null for what is no predicate, or on no known column.
    std::vector<Node> children;
  };

 private:
  Node root_;
};

}  // namespace tarn::iceberg
