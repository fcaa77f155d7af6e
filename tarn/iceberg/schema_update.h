// SchemaUpdate: the next schema from the current one. Field ids are never used again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/schema.h"

namespace tarn::iceberg {

/// Where a new or moved column goes within its struct.
struct ColumnPosition {
  enum class Kind : uint8_t { kLast, kFirst, kAfter };
  Kind kind = Kind::kLast;
  std::string after;  // Name of the sibling, for kAfter.
};

struct ColumnAddition {
  std::string parent;  // Dotted name of a struct, list (its element) or map (its value); "" = top.
  std::string name;
  Type type;  // Ids inside are given afresh.
  std::string doc;
  ColumnPosition position;
};

/// Collects changes; each call sees the effect of the ones before. Names are those of the schema as
/// changed so far. Errors of all calls: kNotFound for an unknown column, kAlreadyExists for a name
/// in use, kInvalidArgument for what the format forbids. One owner thread.
class SchemaUpdate {
 public:
  SchemaUpdate(Schema base, int32_t last_column_id, int32_t format_version,
               CaseRule rule = CaseRule::kSensitive);

  /// Adds an optional column.
  Status AddColumn(const ColumnAddition& column);
  Status RenameColumn(std::string_view name, std::string_view new_name);
  /// int→long, float→double, decimal precision up (version 3: more).
  Status WidenColumn(std::string_view name, const Type& type);
  /// Identifier fields and the last column cannot be dropped.
  Status DropColumn(std::string_view name);
  Status MakeOptional(std::string_view name);
  Status SetDoc(std::string_view name, std::string_view doc);
  Status MoveColumn(std::string_view name, const ColumnPosition& position);
  Status SetIdentifierFields(const std::vector<std::string>& names);

  /// The schema so far, with the id of the base; the metadata builder gives the new id.
  [[nodiscard]] const Schema& schema() const { return schema_; }
  [[nodiscard]] int32_t last_column_id() const { return last_column_id_; }

 private:
  Schema schema_;
  int32_t last_column_id_;
  int32_t format_version_;
  CaseRule rule_;
};

}  // namespace tarn::iceberg
