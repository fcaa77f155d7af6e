// Which columns a mapping gives, before types are known: landed columns that go through and mapped
// ones, in table order. Then, with types, the leaves of structs.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/engine/engine.h"
#include "tarn/engine/select_check.h"
#include "tarn/transform/array_path.h"
#include "tarn/transform/mapping_spec.h"

namespace tarn::transform {

/// One column before its struct is expanded.
struct ColumnItem {
  std::string name;
  std::string origin;   // For messages: "columns.price", "landed column price".
  std::string sql;      // Over the landed columns, in brackets or a quoted name.
  bool direct = false;  // A reference to a column: cannot fail.
  bool landed = false;  // Goes through; drop and rename apply to its leaves.
  std::optional<std::string> type{};
  bool hash = false;
  std::set<std::string> reads{};  // Landed columns, lower-case.
};

/// One column of the table.
struct ColumnLeaf {
  std::string name;
  std::string origin;
  size_t item = 0;
  std::string suffix{};  // ."b"."c": the way from the item's value to this leaf.
  std::shared_ptr<arrow::DataType> source_type{};
};

/// Names that a mapping sees, and what expressions may use.
class NameScope {
 public:
  explicit NameScope(const arrow::Schema& landed);
  void AddElements(const std::vector<ArrayLevel>& levels);
  void AddMapped(const std::string& name);

  /// Checks `text` (array paths replaced) and that its columns exist.
  /// Errors: as engine::CheckExpression; kInvalidArgument naming an unknown column.
  Result<engine::ScalarExpression> Check(engine::Session& session, std::string_view text) const;
  /// The landed columns an expression reads, mapped ones aside; lower-case. An element counts as
  /// its landed array.
  [[nodiscard]] std::set<std::string> Reads(const engine::ScalarExpression& expression) const;
  [[nodiscard]] bool IsLanded(const std::string& name) const;

 private:
  std::set<std::string> landed_;  // Lower-case, as all names here.
  std::set<std::string> mapped_;
  std::vector<ArrayLevel> levels_;
};

/// Items in table order. `arrays` has met all expressions of the mapping.
Result<std::vector<ColumnItem>> PlanItems(engine::Session& session, const MappingSpec& spec,
                                          const arrow::Schema& landed, const NameScope& scope,
                                          ArrayPaths& arrays,
                                          const std::vector<ArrayLevel>& levels);

/// Leaves in table order; `types[i]` is the type of item i.
/// Errors: kInvalidArgument on two leaves of one name (both are named), on a reserved name, on
/// drop or rename of a column that is not there, on no column at all.
Result<std::vector<ColumnLeaf>> PlanLeaves(const MappingSpec& spec,
                                           const std::vector<ColumnItem>& items,
                                           const arrow::FieldVector& types,
                                           const std::vector<ArrayLevel>& levels);

/// True when `name` matches `pattern`, where % stands for any characters; without case.
bool MatchesPattern(std::string_view pattern, std::string_view name);

}  // namespace tarn::transform
