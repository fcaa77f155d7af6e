// The key of a target whose pipeline file gives none: that of the source's records.
#pragma once

#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/landing/source_keys.h"
#include "tarn/transform/mapping_spec.h"

namespace tarn::task {

/// True when the key is the source's.
bool TakesSourceKey(const transform::MappingSpec& mapping);

/// The source's key under the names that the mapping gives its columns (`rename`). Errors: those of
/// SourceKeys::Common.
Result<std::vector<std::string>> SourceKeyOf(const landing::SourceKeys& keys,
                                             const transform::MappingSpec& mapping);

}  // namespace tarn::task
