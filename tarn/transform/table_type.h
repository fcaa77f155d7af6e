// The types of table columns.
#pragma once

#include <memory>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"

namespace tarn::transform {

/// The type that a table column of this type gets: int8, int16, uint8, uint16 -> int32; uint32 ->
/// int64; uint64 -> decimal(20, 0); timestamps -> microseconds; large and fixed types -> plain
/// ones; null -> utf8; at every level. Errors: kInvalidArgument on a type without counterpart.
Result<std::shared_ptr<arrow::DataType>> TableType(const arrow::DataType& type);

}  // namespace tarn::transform
