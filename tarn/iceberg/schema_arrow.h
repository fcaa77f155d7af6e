// Schemas of the table format as Arrow schemas, field ids in the metadata "PARQUET:field_id".
#pragma once

#include <memory>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/iceberg/schema.h"

namespace tarn::iceberg {

inline constexpr char kArrowFieldIdKey[] = "PARQUET:field_id";

/// timestamptz = timestamp[us, UTC], uuid = fixed_size_binary(16) (or arrow.uuid when given),
/// string = utf8. Errors: kUnimplemented for variant, geometry and geography.
Result<std::shared_ptr<arrow::Schema>> ToArrowSchema(const Schema& schema);
Result<std::shared_ptr<arrow::Field>> ToArrowField(const SchemaField& field);
Result<std::shared_ptr<arrow::DataType>> ToArrowType(const Type& type);

/// Reads ids from the metadata when every field has one; otherwise gives fresh ids from 1.
/// int8, int16, uint8, uint16 become int; uint32 long; uint64 decimal(20, 0); other units of
/// timestamps become microseconds; dictionaries their values.
/// Errors: kInvalidArgument naming a column whose type has no counterpart.
Result<Schema> FromArrowSchema(const arrow::Schema& schema);
Result<Type> FromArrowType(const arrow::DataType& type);

}  // namespace tarn::iceberg
