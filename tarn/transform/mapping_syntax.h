// What can be said about a mapping before any row has landed: whether its texts can be read.
#pragma once

#include "tarn/base/status.h"
#include "tarn/engine/engine.h"
#include "tarn/transform/mapping_spec.h"

namespace tarn::transform {

/// Parses every expression and declared type of `spec`; columns are not looked up. Expressions with
/// array paths (`items[].sku`) are left to CompileMapping, which knows the columns they begin with.
/// Errors: kInvalidArgument, kPermissionDenied, as CompileMapping, naming target and key.
Status CheckMappingSyntax(engine::Session& session, const MappingSpec& spec);

}  // namespace tarn::transform
