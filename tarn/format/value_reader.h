// Reading JSON values into columns: with types found from the data, with types that the record's
// own schema states, and with types that the user declared.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/format/column_node.h"
#include "tarn/format/json_columns.h"
#include "tarn/format/json_tape.h"
#include "tarn/format/logical_schema.h"

namespace tarn::format {

/// What all readers of one JsonColumns share.
struct ReadContext {
  NumberMode numbers = NumberMode::kExact;
  bool infer_times = false;
  size_t struct_fields_max = 500;
  int nesting_max = 24;
  JsonCounters counters;
  /// Set when a nested value met a field of another kind, so that the top-level column must be read
  /// again from its raw text. The field has become a string.
  bool conflict = false;
  std::string mismatch;                   // ReadDeclared: what did not fit.
  std::string scratch;                    // Reused buffer.
  std::unique_ptr<JsonTape> number_tape;  // Numbers inside strings.
  std::unique_ptr<JsonTape> key_tape;     // Keys of maps.

  JsonTape& Tape() { return Made(number_tape); }
  JsonTape& KeyTape() { return Made(key_tape); }
  static JsonTape& Made(std::unique_ptr<JsonTape>& tape) {
    if (tape == nullptr) {
      tape = std::make_unique<JsonTape>();
    }
    return *tape;
  }
};

/// Appends `value` to `node`, widening it where needed.
void ReadInferred(ReadContext& context, ColumnNode& node, JsonValue value, int depth);

/// Appends a scalar whose type is known, widening `node` where needed.
void AppendCell(ReadContext& context, ColumnNode& node, const Cell& cell);
/// Appends text to a column of any kind, which becomes a string column.
void AppendText(ReadContext& context, ColumnNode& node, std::string_view text);

/// Appends a number to a column of numbers (or an untyped one) as a decimal of the size that holds
/// all; as `text` where 38 digits do not do.
void AppendExactDecimal(ReadContext& context, ColumnNode& node, const ExactDecimal& number,
                        std::string_view text);

/// Appends `value` as `field` says. A value that is not of the stated form is read as inferred.
void ReadLogical(ReadContext& context, ColumnNode& node, const LogicalField& field, JsonValue value,
                 int depth);

/// Appends `value` to a declared column. False: it does not fit, `context.mismatch` says why, and
/// `node` may hold a part of it, which the caller drops.
bool ReadDeclared(ReadContext& context, ColumnNode& node, JsonValue value);

/// Members of an object without those that a later one of the same name replaces (counted).
std::vector<JsonMember> LastMembers(ReadContext& context, JsonValue object);

/// The field of that name, from position `hint` on first; null when there is none.
const LogicalField* FindField(const std::vector<LogicalField>& fields, size_t& hint,
                              std::string_view name);

/// The name with _ for each NUL character: readers of our files take names for C strings.
std::string WithoutNuls(std::string_view name);

/// The member column for one member of an object, by position hint, spelling or folded name; made
/// when it is new, by the name WithoutNuls. Null when the object has `struct_fields_max` members.
ColumnNode* MemberColumn(ReadContext& context, ColumnNode& parent, size_t& hint,
                         std::string_view name);

/// Slow half of MemberColumn.
ColumnNode* LookUpMember(ReadContext& context, ColumnNode& parent, size_t& hint,
                         std::string_view name);

inline ColumnNode* MemberColumn(ReadContext& context, ColumnNode& parent, size_t& hint,
                                std::string_view name) {
  if (hint < parent.spellings.size()) {
    const ColumnNode::Spelling& expected = parent.spellings[hint];
    if (expected.text.size() == name.size() &&
        EqualBytes(expected.text.data(), name.data(), name.size())) {
      ++hint;
      return expected.node;
    }
  }
  return LookUpMember(context, parent, hint, name);
}

}  // namespace tarn::format
