// Types and default values of table columns as the engine's SQL writes them.
#pragma once

#include <optional>
#include <string>

#include "tarn/base/status.h"
#include "tarn/iceberg/literal.h"
#include "tarn/iceberg/type.h"

namespace tarn::lakehouse {

/// The engine's type of a column, e.g. DECIMAL(10,2), STRUCT("a" BIGINT)[]. A column of type
/// unknown is INTEGER (and always NULL); timestamptz_ns is read in microseconds.
/// Errors: kUnimplemented for variant, geometry and geography.
Result<std::string> SqlTypeOf(const iceberg::Type& type);

/// A value as text that the engine casts to the type of its column; nothing for NULL.
Result<std::optional<std::string>> SqlTextOf(const iceberg::Type& type,
                                             const iceberg::Literal& value);

/// What files without the column hold in it (initial-default), as text; nothing for NULL.
/// Errors: kUnimplemented for defaults of nested types.
Result<std::optional<std::string>> DefaultTextOf(const iceberg::SchemaField& field);

}  // namespace tarn::lakehouse
