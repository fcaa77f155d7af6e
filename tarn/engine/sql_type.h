// Text of SQL types.
#pragma once

#include <string>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"

namespace tarn::engine {

/// The engine's SQL type whose values come out as `type` (result_types.h), e.g. DECIMAL(10,2),
/// STRUCT("a" BIGINT, "b" VARCHAR[]), MAP(VARCHAR, BIGINT).
/// Errors: kInvalidArgument on a type without counterpart.
Result<std::string> SqlTypeOf(const arrow::DataType& type);

}  // namespace tarn::engine
