#include "tarn/format/json_columns.h"

#include <algorithm>
#include <unordered_set>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/base/check.h"
#include "tarn/format/json_escape.h"
#include "tarn/format/value_reader.h"

namespace tarn::format {

namespace {

// Names that begin so, in any case, are those of header columns and of the transform's own.
constexpr std::string_view kReservedPrefixes[] = {"hdr__", "tarn_", "tarn:"};

bool IsReserved(std::string_view name) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::any_of(std::begin(kReservedPrefixes), std::end(kReservedPrefixes),
                     [&](std::string_view prefix) {
                       return name.size() >= prefix.size() &&
                              std::equal(prefix.begin(), prefix.end(), name.begin(),
                                         [&](char a, char b) { return a == lower(b); });
                     });
}

bool IsNested(ColumnKind kind) {
  return kind == ColumnKind::kStruct || kind == ColumnKind::kList || kind == ColumnKind::kMap;
}

bool Overflowed(const ColumnNode& node) {
  return node.overflow || std::any_of(node.children.begin(), node.children.end(),
                                      [](const auto& child) { return Overflowed(*child); });
}

// Objects that never had a member have no Parquet form: such fields become strings. True when one
// was found.
bool ReplaceEmptyStructs(ColumnNode& node) {
  if (node.kind == ColumnKind::kStruct && node.children.empty()) {
    const auto* valid = node.valid.As<uint8_t>();
    if (node.length > 0 &&
        (!node.has_nulls || std::any_of(valid, valid + node.length, [](uint8_t v) { return v; }))) {
      node.Reset();
      node.Adopt(ColumnKind::kString);
      return true;
    }
    return false;
  }
  bool found = false;
  for (auto& child : node.children) {
    found = ReplaceEmptyStructs(*child) || found;
  }
  return found;
}

// False where a declared DOUBLE would round integers that were taken so far.
bool KeepsIntegers(const ColumnState& stored, const ColumnState& declared) {
  if (declared.type.kind == FieldKind::kDouble && stored.type.kind == FieldKind::kLong) {
    return stored.exact_in_double;
  }
  const bool by_name = declared.type.kind == FieldKind::kStruct;
  for (size_t i = 0; i < declared.children.size(); ++i) {
    const ColumnState& child = declared.children[i];
    for (size_t k = 0; k < stored.children.size(); ++k) {
      const ColumnState& known = stored.children[k];
      const bool same = by_name ? FoldCase(known.name) == FoldCase(child.name) : i == k;
      if (same && !KeepsIntegers(known, child)) {
        return false;
      }
    }
  }
  return true;
}

// A type may be declared for a column that has rows when it holds all of their values.
Status CheckWidens(const ColumnNode& column, const ColumnState& declared) {
  const FieldType stored = FieldOf(column).type;
  const FieldType wanted = FieldOf(*NodeOf(declared)).type;
  if (stored == wanted ||
      (WidenType(wanted, stored) == wanted && KeepsIntegers(StateOf(column), declared))) {
    return {};
  }
  return Status::InvalidArgument(fmt::format(
      "column {} is declared {}, but the rows landed so far have it as {}, which {} does not hold "
      "without loss; declare {} or string, or land into another name",
      column.name, FormatTypeName(wanted), FormatTypeName(stored), FormatTypeName(wanted),
      FormatTypeName(stored)));
}

}  // namespace

class JsonColumns::Rows {
 public:
  explicit Rows(JsonColumnsOptions given) : options(std::move(given)) {
    context.numbers = options.numbers;
    context.infer_times = options.infer_times;
    context.struct_fields_max = options.struct_fields_max;
    context.nesting_max = options.nesting_max;
    root.Adopt(ColumnKind::kStruct);
  }

  Status Start(const ColumnSet& start);
  RecordFailure Append(JsonValue object, const JsonRowOptions& row);
  void RollBack();
  Result<JsonBatch> Finish();
  [[nodiscard]] ColumnSet column_set() const;
  [[nodiscard]] int64_t row_count() const { return row_; }
  [[nodiscard]] int64_t size_bytes() const { return SizeBytes(root); }
  [[nodiscard]] const JsonCounters& counters() const { return context.counters; }

 private:
  struct Unavailable {
    int64_t row;
    ColumnNode* column;
  };

  Status Declare();
  ColumnNode* Column(size_t& hint, std::string_view name);
  bool ReadMember(ColumnNode& column, JsonValue value, const LogicalField* field);
  void ReadKeepingText(ColumnNode& column, JsonValue value, const LogicalField* field);
  void StartOver(ColumnNode& column);
  void BecomeText(ColumnNode& column);
  void ReadAgain(ColumnNode& column);
  RecordFailure Fail(RecordError code, std::string text);
  std::shared_ptr<arrow::Array> TakeAbsent();

  JsonColumnsOptions options;
  ReadContext context;
  ColumnNode root;
  int64_t row_ = 0;
  size_t columns_before_ = 0;  // Of the last row, for RollBack.
  JsonCounters counters_before_;
  std::vector<Unavailable> unavailable_;
  std::unique_ptr<JsonTape> tape_;  // For ReadAgain.
};

Status JsonColumns::Rows::Start(const ColumnSet& start) {
  for (const ColumnState& state : start.columns) {
    if (root.FindMember(state.name) != nullptr) {
      return Status::InvalidArgument("column " + state.name +
                                     " is there twice, spelled alike but for case");
    }
    ColumnNode* column = root.AddMember(state.name, state.name, SIZE_MAX / 8);
    *column = std::move(*NodeOf(state));
  }
  return Declare();
}

// A column of an earlier batch keeps its spelling.
Status JsonColumns::Rows::Declare() {
  std::unordered_set<const ColumnNode*> seen;
  for (const Field& field : options.declared) {
    if (WithoutNuls(field.name) != field.name) {
      return Status::InvalidArgument("column " + WithoutNuls(field.name) +
                                     " is declared with a NUL character in its name; give the name "
                                     "that it is landed with, which has _ there");
    }
    const ColumnSet typed = ColumnSetOf({field});
    ColumnNode* column = root.FindMember(field.name);
    if (column == nullptr) {
      column = root.AddMember(field.name, field.name, SIZE_MAX / 8);
    } else if (seen.contains(column)) {
      return Status::InvalidArgument("column " + field.name + " is declared twice");
    } else {
      TARN_RETURN_IF_ERROR(CheckWidens(*column, typed.columns[0]));
    }
    std::string name = std::move(column->name);
    *column = std::move(*NodeOf(typed.columns[0]));
    column->name = std::move(name);
    column->declared = true;
    seen.insert(column);
  }
  return {};
}

ColumnNode* JsonColumns::Rows::Column(size_t& hint, std::string_view name) {
  if (hint < root.spellings.size()) {
    const ColumnNode::Spelling& expected = root.spellings[hint];
    if (expected.text.size() == name.size() &&
        EqualBytes(expected.text.data(), name.data(), name.size())) [[likely]] {
      ++hint;
      return expected.node;
    }
  }
  const auto found = root.spelling_index.find(name);
  if (found != root.spelling_index.end()) {
    hint = found->second + 1U;
    return root.spellings[found->second].node;
  }
  std::string column_name = WithoutNuls(name);
  bool renamed = column_name != name;
  if (IsReserved(column_name)) {
    column_name.insert(0, 1, '_');
    renamed = true;
  } else if (name.empty()) {
    column_name = "_";
  }
  context.counters.renamed_columns += renamed ? 1 : 0;
  ColumnNode* column = root.AddMember(name, column_name, options.columns_max);
  hint = root.spellings.size();
  return column;
}

// Replaces a column whose values do not fit their nested type by the texts of those values, to be
// read again into the changed type at the end.
void JsonColumns::Rows::StartOver(ColumnNode& column) {
  auto texts = std::move(column.raw);
  auto typed = std::make_unique<ColumnNode>(std::move(column));
  typed->ClearValues();
  column = std::move(*texts);
  column.name = typed->name;
  column.present = std::move(typed->present);
  column.raw = std::move(typed);
  column.stale = true;
}

// Replaces a column by the texts of its values, for good.
void JsonColumns::Rows::BecomeText(ColumnNode& column) {
  auto texts = std::move(column.raw);
  std::string name = std::move(column.name);
  auto present = std::move(column.present);
  if (texts == nullptr) {
    texts = std::make_unique<ColumnNode>();
    texts->Adopt(ColumnKind::kString);
  }
  column = std::move(*texts);
  column.name = std::move(name);
  column.present = std::move(present);
}

void JsonColumns::Rows::ReadKeepingText(ColumnNode& column, JsonValue value,
                                        const LogicalField* field) {
  const std::string_view text = value.is_string() ? value.string() : value.text();
  const bool nested = value.is_object() || value.is_array();
  if (column.stale && (nested || value.is_null())) {
    // Only the text counts for now.
    if (nested) {
      column.PushBytes(text);
    } else {
      column.PushNull();
    }
    return;
  }
  if (column.stale) {
    column.stale = false;  // A scalar among nested values: text it stays.
    column.raw.reset();
  }
  if (field != nullptr) {
    ReadLogical(context, column, *field, value, 0);
    column.stated_types = column.stated_types || IsNested(column.kind);
  } else {
    ReadInferred(context, column, value, 0);
  }
  if (context.conflict) {
    context.conflict = false;
    const bool whole = column.kind == ColumnKind::kString || column.stated_types;
    if (column.raw == nullptr) {
      column.raw = std::make_unique<ColumnNode>();
      column.raw->Adopt(ColumnKind::kString);
    }
    if (whole) {
      BecomeText(column);
    } else {
      StartOver(column);
    }
    column.FillNulls(row_);
    column.PushBytes(text);
    return;
  }
  if (IsNested(column.kind) || column.keeps_raw) {
    if (column.raw == nullptr) {
      column.raw = std::make_unique<ColumnNode>();
      column.raw->Adopt(ColumnKind::kString);
    }
    if (!value.is_null()) {
      column.raw->FillNulls(row_);
      column.raw->PushBytes(text);
    }
  }
}

// Appends one value to a column that has `row_` values.
bool JsonColumns::Rows::ReadMember(ColumnNode& column, JsonValue value, const LogicalField* field) {
  if (column.declared) {
    if (ReadDeclared(context, column, value)) {
      return true;
    }
    context.mismatch = "column " + column.name + ": " + context.mismatch;
    return false;
  }
  const bool plain = !IsNested(column.kind) && !column.keeps_raw && !column.stale &&
                     !value.is_object() && !value.is_array() && !options.infer_times;
  if (!plain) [[unlikely]] {
    ReadKeepingText(column, value, field);
  } else if (field != nullptr) {
    ReadLogical(context, column, *field, value, 0);
  } else {
    ReadInferred(context, column, value, 0);
  }
  return true;
}

RecordFailure JsonColumns::Rows::Fail(RecordError code, std::string text) {
  ++row_;
  RollBack();
  return {code, 0, std::move(text)};
}

RecordFailure JsonColumns::Rows::Append(JsonValue object, const JsonRowOptions& row) {
  columns_before_ = root.children.size();
  counters_before_ = context.counters;
  if (!object || !object.is_object()) {
    return {RecordError::kNotAnObject, 0, "the value is no object"};
  }
  size_t hint = 0;
  size_t field_hint = 0;
  for (const JsonMember member : object.members()) {
    ColumnNode* column = Column(hint, member.name);
    if (column == nullptr) [[unlikely]] {
      return Fail(RecordError::kTooManyColumns,
                  "member " + std::string(member.name) + " would be column number " +
                      std::to_string(root.children.size() + 1) + ", allowed are " +
                      std::to_string(options.columns_max));
    }
    if (column->length != row_) [[unlikely]] {
      if (column->length > row_) {
        ++context.counters.repeated_members;
        column->Truncate(row_);
      } else {
        column->FillNulls(row_);
      }
    }
    if (!row.unavailable.empty() && std::find(row.unavailable.begin(), row.unavailable.end(),
                                              member.name) != row.unavailable.end()) [[unlikely]] {
      column->PushNull();
      unavailable_.push_back({row_, column});
      continue;
    }
    if (options.track_absent) {
      column->present.resize(static_cast<size_t>(row_) + 1);
      column->present.back() = 1;
    }
    const LogicalField* field = nullptr;
    if (row.schema != nullptr) {
      field = FindField(row.schema->fields, field_hint, member.name);
    }
    if (!ReadMember(*column, member.value, field)) [[unlikely]] {
      return Fail(RecordError::kTypeMismatch, context.mismatch);
    }
  }
  ++row_;
  return {};
}

void JsonColumns::Rows::RollBack() {
  TARN_CHECK(row_ > 0);
  --row_;
  root.RemoveMembers(columns_before_);
  for (auto& column : root.children) {
    column->Truncate(row_);
  }
  while (!unavailable_.empty() && unavailable_.back().row >= row_) {
    unavailable_.pop_back();
  }
  context.counters = counters_before_;
}

// Reads the texts of a stale column into its typed column.
void JsonColumns::Rows::ReadAgain(ColumnNode& column) {
  if (tape_ == nullptr) {
    tape_ = std::make_unique<JsonTape>(JsonLimits{.max_record_bytes = UINT64_MAX});
  }
  ColumnNode& typed = *column.raw;
  const JsonCounters counted = context.counters;
  do {
    context.conflict = false;
    typed.ClearValues();
    for (int64_t row = 0; row < column.length; ++row) {
      if (column.has_nulls && column.valid.As<uint8_t>()[row] == 0) {
        typed.PushNull();
        continue;
      }
      TARN_CHECK(tape_->Parse(TextView(column, row)).ok());
      ReadInferred(context, typed, tape_->root(), 0);
    }
  } while (context.conflict || ReplaceEmptyStructs(typed));
  context.counters = counted;
  context.conflict = false;
  auto finished = std::move(column.raw);
  finished->present = std::move(column.present);
  finished->name = column.name;
  column = std::move(*finished);
}

Result<JsonBatch> JsonColumns::Rows::Finish() {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  JsonBatch result;
  result.absent = TakeAbsent();
  for (auto& column : root.children) {
    column->FillNulls(row_);
    if (!column->stale && IsNested(column->kind) && !column->declared) {
      if (column->raw != nullptr) {
        column->raw->FillNulls(row_);
      }
      if (ReplaceEmptyStructs(*column)) {
        if (column->kind == ColumnKind::kString || column->stated_types) {
          BecomeText(*column);
        } else {
          StartOver(*column);
        }
      }
    }
    if (column->stale) {
      ReadAgain(*column);
    }
    if (Overflowed(*column)) {
      return Status(ErrorCode::kResourceExhausted,
                    "column " + column->name + " has more than 2 GiB in one batch");
    }
    fields.push_back(ToArrowField(FieldOf(*column)));
    arrays.push_back(TakeArray(*column, row_));
  }
  result.batch =
      arrow::RecordBatch::Make(arrow::schema(std::move(fields)), row_, std::move(arrays));
  row_ = 0;
  unavailable_.clear();
  return result;
}

std::shared_ptr<arrow::Array> JsonColumns::Rows::TakeAbsent() {
  if (!options.track_absent && unavailable_.empty()) {
    return nullptr;
  }
  arrow::StringBuilder builder;
  std::string names;
  auto next = unavailable_.begin();
  const auto add = [&](const ColumnNode& column) {
    names += names.empty() ? "[" : ",";
    AppendJsonString(column.name, names);
  };
  for (int64_t row = 0; row < row_; ++row) {
    names.clear();
    if (options.track_absent) {
      for (const auto& column : root.children) {
        const auto i = static_cast<size_t>(row);
        if (column->present.size() <= i || column->present[i] == 0) {
          add(*column);
        }
      }
    }
    for (; next != unavailable_.end() && next->row == row; ++next) {
      if (!options.track_absent) {
        add(*next->column);
      }
    }
    TARN_CHECK((names.empty() ? builder.AppendNull() : builder.Append(names.append("]"))).ok());
  }
  return builder.Finish().ValueOrDie();
}

ColumnSet JsonColumns::Rows::column_set() const {
  ColumnSet set;
  for (const auto& column : root.children) {
    set.columns.push_back(StateOf(*column));
  }
  return set;
}

JsonColumns::JsonColumns(std::unique_ptr<Rows> rows) : rows_(std::move(rows)) {}
JsonColumns::~JsonColumns() = default;

Result<std::unique_ptr<JsonColumns>> JsonColumns::Make(JsonColumnsOptions options,
                                                       ColumnSet start) {
  auto rows = std::make_unique<Rows>(std::move(options));
  TARN_RETURN_IF_ERROR(rows->Start(start));
  return std::unique_ptr<JsonColumns>(new JsonColumns(std::move(rows)));
}

RecordFailure JsonColumns::Append(JsonValue object, const JsonRowOptions& row) {
  return rows_->Append(object, row);
}
void JsonColumns::RollBack() { rows_->RollBack(); }
int64_t JsonColumns::row_count() const { return rows_->row_count(); }
int64_t JsonColumns::size_bytes() const { return rows_->size_bytes(); }
const JsonCounters& JsonColumns::counters() const { return rows_->counters(); }
Result<JsonBatch> JsonColumns::Finish() { return rows_->Finish(); }
ColumnSet JsonColumns::column_set() const { return rows_->column_set(); }

}  // namespace tarn::format
