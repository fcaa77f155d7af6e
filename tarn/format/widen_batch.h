// Casting batches of older files up to a wider schema.
#pragma once

#include <memory>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/format/field_type.h"

namespace tarn::format {

/// Returns `batch` with exactly the columns of `fields`, in that order: columns are matched by name
/// without regard to ASCII case, missing ones are NULL, others are dropped. Values are cast to the
/// wider type: numbers exactly, scalars to STRING as text, structs, arrays and maps to STRING as
/// JSON. Columns that have the right type already are shared, not copied.
/// Errors: kInvalidArgument naming the column when a value does not fit the type.
Result<std::shared_ptr<arrow::RecordBatch>> WidenBatch(
    const std::shared_ptr<arrow::RecordBatch>& batch, const std::vector<Field>& fields);

/// The same for one array. `name` is for messages.
Result<std::shared_ptr<arrow::Array>> WidenArray(const std::shared_ptr<arrow::Array>& array,
                                                 const FieldType& type, const std::string& name);

}  // namespace tarn::format
