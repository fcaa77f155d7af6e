// Avro schemas of manifests and manifest lists: stable texts, with names as other writers have
// them.
#pragma once

#include <cstdint>
#include <string>

#include "tarn/base/status.h"
#include "tarn/iceberg/partition_spec.h"
#include "tarn/iceberg/schema.h"

namespace tarn::iceberg {

/// Schema of manifest entries. Errors: kInvalidArgument when a partition field has no type.
Result<std::string> ManifestEntrySchema(const PartitionSpec& spec, const Schema& schema,
                                        int32_t format_version);
/// Schema of manifest list rows.
std::string ManifestFileSchema(int32_t format_version);

}  // namespace tarn::iceberg
