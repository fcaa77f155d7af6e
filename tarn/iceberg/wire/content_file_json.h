// ContentFileJson: data and delete files as the REST catalog's protocol writes them.
#pragma once

#include <set>

#include "tarn/base/status.h"
#include "tarn/iceberg/json.h"
#include "tarn/iceberg/manifest.h"
#include "tarn/iceberg/partition_spec.h"
#include "tarn/iceberg/schema.h"

namespace tarn::iceberg {

struct ContentFileContext {
  const PartitionSpec& spec;         // That of the file.
  const Schema& schema;              // Of the partition's sources.
  const std::set<int32_t>& counted;  // Field ids whose counts are wanted.
};

/// Partition values in the order of the spec's fields. Bounds are left out: readers that want them
/// plan by themselves. Errors: kInvalidArgument for a partition value that is none of its type.
Result<Json> ContentFileToJson(const DataFile& file, const ContentFileContext& context);

}  // namespace tarn::iceberg
