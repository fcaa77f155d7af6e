// DatasetSchema: how the files of a view are to be read. Metadata; files are not checked here.
//
// The text that a client put is kept: unknown keys come back as they were.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/uuid.h"
#include "tarn/dataset/ids.h"

namespace tarn::dataset {

enum class FieldType : uint8_t {
  kBoolean,
  kByte,
  kShort,
  kInteger,
  kLong,
  kFloat,
  kDouble,
  kDecimal,
  kString,
  kMap,
  kArray,
  kStruct,
  kBinary,
  kDate,
  kTimestamp,
};

/// "BOOLEAN", "BYTE", ….
std::string_view FieldTypeName(FieldType type);

/// One column or part of one. Value.
struct Field {
  FieldType type = FieldType::kString;
  std::string name;  // Empty where a nested field has none.
  bool nullable = true;
  std::optional<std::string> user_defined_type_class;
  std::string custom_metadata_json;  // Object text; empty = absent.
  int precision = 0;                 // DECIMAL: 1–38.
  int scale = 0;                     // DECIMAL: 0–precision.
  /// ARRAY: the element. MAP: key, value. STRUCT: the members. Else empty.
  std::vector<Field> children;

  friend bool operator==(const Field&, const Field&) = default;
};

/// A checked schema. Value.
struct DatasetSchema {
  std::vector<Field> fields;
  std::string reader_class;          // "dataFrameReaderClass"; empty = absent.
  std::string custom_metadata_json;  // Object text; empty = absent.
  std::string json;                  // The whole object as it was put, compact, keys in order.

  friend bool operator==(const DatasetSchema&, const DatasetSchema&) = default;
};

/// Reads and checks `{"fieldSchemaList":[…],…}`.
///
/// Errors: kInvalidArgument, reason InvalidSchema: not JSON, unknown type, DECIMAL without
/// precision or scale, ARRAY, MAP or STRUCT without subtype, a top-level column without name, two
/// columns of one name in one struct, nesting deeper than 64.
Result<DatasetSchema> ParseDatasetSchema(std::string_view json);

/// A schema as it is stored on a view.
struct StoredSchema {
  std::string branch;  // Whose view was asked for.
  TransactionRid end_transaction;
  Uuid version;
  DatasetSchema schema;
  Timestamp put_at{};
  std::string put_by;
};

struct PutSchemaOptions {
  std::string branch{"master"};
  std::optional<TransactionRid> end;  // Empty = the branch's newest committed.
  std::string by;
};

struct GetSchemaOptions {
  std::string branch{"master"};
  std::optional<TransactionRid> end;  // Empty = the branch's newest committed.
  std::optional<Uuid> version;        // Exactly this one, however old.
};

}  // namespace tarn::dataset
