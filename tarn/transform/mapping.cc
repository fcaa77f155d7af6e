#include "tarn/transform/mapping.h"

#include <algorithm>
#include <optional>

#include <arrow/api.h>

#include "tarn/base/arrow_status.h"
#include "tarn/base/json_text.h"
#include "tarn/engine/quoting.h"
#include "tarn/engine/sql_type.h"
#include "tarn/format/field_type.h"
#include "tarn/transform/array_path.h"
#include "tarn/transform/canonical_text.h"
#include "tarn/transform/column_cast.h"
#include "tarn/transform/column_plan.h"
#include "tarn/transform/outcome.h"

namespace tarn::transform {
namespace {

using engine::LowerCase;
using engine::QuoteName;
using engine::QuoteText;

constexpr size_t kExpectationsMax = 62;  // One bit each of an int64.
constexpr std::string_view kOperation = "hdr__cdc_operation";
constexpr std::string_view kBeforeImage = "hdr__cdc_before";
constexpr std::string_view kTombstone = "hdr__kafka_tombstone";

// Spares deletes, truncates and before images: their columns outside of the key may be missing.
const std::string kStrictRows = "NOT tarn_before AND NOT \"tarn:bare\" AND ";

/// One way a row leaves the good path, in the order of precedence.
struct FailureRule {
  std::string condition;
  std::string_view code;
  std::string text;  // SQL.
};

/// Names inside the statement: a colon keeps them apart from people's names.
std::string Internal(std::string_view kind, size_t index) {
  return QuoteName("tarn:" + std::string(kind) + std::to_string(index));
}

std::string TryStruct(const std::string& expression) {
  // NULL when the expression fails, else {v}: tells a failure from a NULL value.
  return "TRY(struct_pack(v := " + expression + "))";
}

/// Builds the statement of one mapping, stage by stage. Used once.
class MappingCompiler {
 public:
  MappingCompiler(engine::Session& session, const MappingSpec& spec, const arrow::Schema& landed,
                  const std::vector<ColumnFit>& fits)
      : session_(session),
        spec_(spec),
        landed_(landed),
        fits_(fits),
        arrays_(landed.field_names()),
        scope_(landed) {}

  Result<CompiledMapping> Compile();

 private:
  Status CheckSpec() const;
  Status PlanExpressions();
  Status PlanTypes();
  Status PlanKey();
  Status PlanLateExpressions();
  Status AddLate(const std::string& origin, const std::string& text, const std::string& cast);
  void PlanImages();
  Status PlanValues();
  Status PlanOverflows();
  const ColumnFit* FindFit(const std::string& column) const;
  void PlanFailures();

  std::string InputStage() const;
  std::string WhereStage(const std::string& input) const;
  std::string ImageStage(const std::string& input) const;
  std::string ArrayStage(const std::string& input) const;
  std::string ItemStage(const std::string& input) const;
  std::string CastStage(const std::string& input) const;
  std::string NameStage(const std::string& input) const;
  std::string LateStage(const std::string& input) const;
  std::string OutcomeStage(const std::string& input) const;
  Result<std::string> FinalStage(const std::string& input) const;

  /// An expression over mapped and landed columns.
  struct LateExpression {
    std::string origin;
    std::string sql;
    std::string column;  // Quoted name of {v}.
  };
  /// How the value of a leaf is made.
  struct LeafValue {
    std::string raw;
    ColumnCast cast;
    std::shared_ptr<arrow::DataType> type;
    bool overflows = false;               // What does not fit goes to another leaf.
    std::optional<size_t> overflow_of{};  // The leaf whose values come here.
    [[nodiscard]] bool CanFail() const { return !cast.fails.empty() && !overflows; }
  };

  [[nodiscard]] bool IsKey(size_t leaf) const;
  std::string MaskSum(std::string_view condition_format) const;
  const LateExpression* FindLate(const std::string& origin) const;

  engine::Session& session_;
  const MappingSpec& spec_;
  const arrow::Schema& landed_;
  const std::vector<ColumnFit>& fits_;
  ArrayPaths arrays_;
  NameScope scope_;
  std::vector<ArrayLevel> levels_;
  std::string where_;
  std::set<std::string> where_reads_;  // Landed columns, lower-case.
  bool where_on_elements_ = false;
  bool where_of_event_ = false;  // It looks at header columns only, which deletes have, too.
  bool updates_leave_ = false;   // An update that `where` does not want deletes its key.
  std::set<std::string> reads_;  // Landed columns the statement needs, lower-case.
  std::vector<ColumnItem> items_;
  std::vector<ColumnLeaf> leaves_;
  std::vector<LeafValue> values_;
  std::vector<LateExpression> late_;
  std::vector<int> key_;
  std::set<std::string> before_columns_;  // Landed columns replaced in a before image.
  bool has_images_ = false;
  std::vector<FailureRule> failures_;
  CompiledMapping out_;
};

Status MappingCompiler::CheckSpec() const {
  for (const auto& field : landed_.fields()) {
    const std::string name = LowerCase(field->name());
    if (name.starts_with("tarn_") || name.starts_with("tarn:")) {
      return Status::InvalidArgument("the landed column \"" + field->name() +
                                     "\" has a reserved name (tarn_…)");
    }
  }
  if (spec_.expect.size() > kExpectationsMax) {
    return Status::InvalidArgument("expect has " + std::to_string(spec_.expect.size()) +
                                   " entries, at most " + std::to_string(kExpectationsMax) +
                                   " are possible");
  }
  if (spec_.mode == Mode::kMerge && spec_.key.empty()) {
    return Status::InvalidArgument("key: mode merge needs at least one key column");
  }
  if (spec_.mode == Mode::kAppend && (!spec_.delete_when.empty() || !spec_.sequence_by.empty())) {
    return Status::InvalidArgument("mode append has no delete_when and no sequence_by");
  }
  return Status::Ok();
}

/// Parses everything over landed columns, and finds the arrays of all expressions.
Status MappingCompiler::PlanExpressions() {
  ArrayPaths& arrays = arrays_;
  for (const ColumnMapping& column : spec_.columns) {
    arrays.Replace(column.expression);
  }
  where_ = arrays.Replace(spec_.where);
  for (const std::string& text : {spec_.delete_when, spec_.sequence_by, spec_.event_time}) {
    arrays.Replace(text);
  }
  for (const Expectation& expectation : spec_.expect) {
    arrays.Replace(expectation.check);
  }
  TARN_ASSIGN_OR_RETURN(levels_, arrays.Plan(spec_.zip));
  scope_.AddElements(levels_);
  for (const ArrayLevel& level : levels_) {
    if (level.parent.empty()) {
      reads_.insert(LowerCase(level.names.front()));
    }
  }
  if (!spec_.where.empty()) {
    Result<engine::ScalarExpression> where = scope_.Check(session_, where_);
    if (!where.ok()) {
      return where.status().WithContext("where");
    }
    where_ = where->sql;
    where_on_elements_ = std::any_of(levels_.begin(), levels_.end(), [&](const ArrayLevel& level) {
      return where_.find(QuoteName(level.column)) != std::string::npos;
    });
    where_reads_ = scope_.Reads(*where);
    reads_.insert(where_reads_.begin(), where_reads_.end());
    where_of_event_ = std::all_of(where_reads_.begin(), where_reads_.end(),
                                  [](const auto& name) { return name.starts_with("hdr__"); });
    updates_leave_ = spec_.mode == Mode::kMerge && levels_.empty() && !where_of_event_ &&
                     scope_.IsLanded(std::string(kOperation));
  }
  TARN_ASSIGN_OR_RETURN(items_, PlanItems(session_, spec_, landed_, scope_, arrays_, levels_));
  for (const ColumnItem& item : items_) {
    reads_.insert(item.reads.begin(), item.reads.end());
  }
  for (const std::string& name : PassedHeaderColumns()) {
    if (scope_.IsLanded(name)) {
      out_.passed_columns.push_back(name);
      reads_.insert(name);
    }
  }
  return Status::Ok();
}

/// Asks the engine for the types of all items at once; on failure one by one, to name the culprit.
Status MappingCompiler::PlanTypes() {
  if (items_.empty()) {
    return Status::InvalidArgument("the mapping gives no column");
  }
  const std::string source = " FROM (" + ArrayStage(InputStage()) + ")";
  std::string all;
  for (const ColumnItem& item : items_) {
    all += (all.empty() ? "SELECT " : ", ") + item.sql + " AS " + QuoteName(item.name);
  }
  Result<std::shared_ptr<arrow::Schema>> types = session_.Describe(all + source);
  if (!types.ok()) {
    TARN_RETURN_IF_ERROR(StatusOf(session_.Describe("SELECT tarn_row" + source)));
    for (const ColumnItem& item : items_) {
      const Status one = StatusOf(session_.Describe("SELECT " + item.sql + " AS v" + source));
      TARN_RETURN_IF_ERROR(one.WithContext(item.origin));
    }
    return types.status();
  }
  arrow::FieldVector fields = (*types)->fields();
  for (size_t i = 0; i < items_.size(); ++i) {  // What has no value shows as an integer.
    const auto landed = landed_.GetFieldByName(items_[i].name);
    if (items_[i].landed && landed != nullptr && landed->type()->id() == arrow::Type::NA) {
      fields[i] = landed;
    }
  }
  TARN_ASSIGN_OR_RETURN(leaves_, PlanLeaves(spec_, items_, fields, levels_));
  for (const ColumnLeaf& leaf : leaves_) {
    scope_.AddMapped(leaf.name);
  }
  return Status::Ok();
}

Status MappingCompiler::PlanKey() {
  for (const std::string& name : spec_.key) {
    const auto found = std::find_if(leaves_.begin(), leaves_.end(), [&](const ColumnLeaf& leaf) {
      return LowerCase(leaf.name) == LowerCase(name);
    });
    if (found == leaves_.end()) {
      return Status::InvalidArgument("key: there is no column \"" + name + "\" in the table");
    }
    const int index = static_cast<int>(found - leaves_.begin());
    if (std::find(key_.begin(), key_.end(), index) != key_.end()) {
      return Status::InvalidArgument("key: column \"" + name + "\" is there twice");
    }
    const MappedColumn& column = out_.columns[static_cast<size_t>(index)];
    if (!CanBeKey(*column.type)) {
      return Status::InvalidArgument("key: column \"" + name + "\" has the type " +
                                     column.type->ToString() + ", which cannot be a key");
    }
    key_.push_back(index);
  }
  return Status::Ok();
}

Status MappingCompiler::AddLate(const std::string& origin, const std::string& text,
                                const std::string& cast) {
  if (text.empty()) {
    return Status::Ok();
  }
  Result<engine::ScalarExpression> expression = scope_.Check(session_, arrays_.Replace(text));
  if (!expression.ok()) {
    return expression.status().WithContext(origin);
  }
  reads_.merge(scope_.Reads(*expression));
  const std::string sql =
      cast.empty() ? expression->sql : "CAST(" + expression->sql + " AS " + cast + ")";
  late_.push_back({origin, sql, Internal("late", late_.size())});
  return Status::Ok();
}

Status MappingCompiler::PlanLateExpressions() {
  TARN_RETURN_IF_ERROR(AddLate("delete_when", spec_.delete_when, "BOOLEAN"));
  TARN_RETURN_IF_ERROR(AddLate("sequence_by", spec_.sequence_by, ""));
  TARN_RETURN_IF_ERROR(AddLate("event_time", spec_.event_time, "TIMESTAMP WITH TIME ZONE"));
  for (const Expectation& expectation : spec_.expect) {
    if (FindLate("expect." + expectation.name) != nullptr) {
      return Status::InvalidArgument("expect." + expectation.name + " is there twice");
    }
    if (expectation.check.empty()) {
      return Status::InvalidArgument("expect." + expectation.name + " has no check");
    }
    TARN_RETURN_IF_ERROR(AddLate("expect." + expectation.name, expectation.check, "BOOLEAN"));
  }
  return Status::Ok();
}

const MappingCompiler::LateExpression* MappingCompiler::FindLate(const std::string& origin) const {
  for (const LateExpression& late : late_) {
    if (late.origin == origin) {
      return &late;
    }
  }
  return nullptr;
}

/// Before images matter where the key can change.
void MappingCompiler::PlanImages() {
  if (spec_.mode != Mode::kMerge || !levels_.empty() || !scope_.IsLanded(std::string(kOperation)) ||
      !scope_.IsLanded(std::string(kBeforeImage))) {
    return;
  }
  has_images_ = true;
  for (const int index : key_) {
    const ColumnItem& item = items_[leaves_[static_cast<size_t>(index)].item];
    for (const std::string& name : item.reads) {
      if (!name.starts_with("hdr__")) {
        before_columns_.insert(name);
      }
    }
  }
  for (const std::string& name : where_reads_) {
    if (!name.starts_with("hdr__")) {
      before_columns_.insert(name);
    }
  }
}

Status MappingCompiler::PlanValues() {
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const ColumnLeaf& leaf = leaves_[i];
    const ColumnItem& item = items_[leaf.item];
    LeafValue value;
    value.raw = (item.direct ? item.sql : Internal("item", leaf.item) + ".v") + leaf.suffix;
    Result<std::shared_ptr<arrow::DataType>> type = TableType(*leaf.source_type);
    if (item.type) {
      Result<format::FieldType> declared = format::ParseTypeName(*item.type);
      TARN_RETURN_IF_ERROR(declared.status().WithContext(leaf.origin + ".type"));
      type = TableType(*format::ToArrowType(*declared));
    }
    TARN_RETURN_IF_ERROR(type.status().WithContext(leaf.origin));
    const ColumnFit* fit = FindFit(leaf.name);
    value.type = fit != nullptr ? fit->type : *type;
    Result<ColumnCast> cast = (item.type ? PlanCast : PlanImpliedCast)(
        Internal("raw", i), Internal("cast", i), *leaf.source_type, *value.type);
    TARN_RETURN_IF_ERROR(cast.status().WithContext(leaf.origin));
    value.cast = *std::move(cast);
    if (!item.direct && spec_.on_cast_error == OnCastError::kNull) {  // NULL, and counted.
      value.cast.fails = Internal("item", leaf.item) + " IS NULL" +
                         (value.cast.fails.empty() ? "" : " OR " + value.cast.fails);
    }
    if (item.hash && !HasCanonicalText(*value.type)) {
      return Status::InvalidArgument(leaf.origin + ": a value of type " + value.type->ToString() +
                                     " cannot be hashed");
    }
    out_.columns.push_back(
        {.name = leaf.name, .type = item.hash ? arrow::utf8() : value.type, .hashed = item.hash});
    values_.push_back(std::move(value));
  }
  return PlanOverflows();
}

const ColumnFit* MappingCompiler::FindFit(const std::string& column) const {
  const auto found = std::find_if(fits_.begin(), fits_.end(), [&](const ColumnFit& fit) {
    return LowerCase(fit.column) == LowerCase(column);
  });
  return found == fits_.end() ? nullptr : &*found;
}

Status MappingCompiler::PlanOverflows() {
  for (size_t i = 0, count = leaves_.size(); i < count; ++i) {
    const ColumnFit* fit = FindFit(leaves_[i].name);
    if (fit == nullptr || fit->overflow.empty() || values_[i].cast.fails.empty()) {
      continue;
    }
    const size_t at = leaves_.size();
    ColumnLeaf leaf = leaves_[i];
    leaf.name = fit->overflow;
    TARN_ASSIGN_OR_RETURN(ColumnCast cast, PlanCast(Internal("raw", at), Internal("cast", at),
                                                    *leaf.source_type, *fit->overflow_type));
    if (!cast.fails.empty()) {
      cast.fails = "(" + values_[i].cast.fails + ") AND " + cast.fails;
    }
    values_[i].overflows = true;
    values_.push_back({.raw = values_[i].raw,
                       .cast = std::move(cast),
                       .type = fit->overflow_type,
                       .overflow_of = i});
    out_.columns.push_back({.name = leaf.name, .type = fit->overflow_type});
    scope_.AddMapped(leaf.name);
    leaves_.push_back(std::move(leaf));
  }
  return Status::Ok();
}

bool MappingCompiler::IsKey(size_t leaf) const {
  return std::find(key_.begin(), key_.end(), static_cast<int>(leaf)) != key_.end();
}

void MappingCompiler::PlanFailures() {
  if (!spec_.where.empty()) {
    failures_.push_back({kStrictRows + "\"tarn:where\" IS NULL", kExpressionFailed,
                         QuoteText("where: the expression failed")});
  }
  if (spec_.empty_arrays == EmptyArrays::kDrop) {
    for (size_t i = 0; i < levels_.size(); ++i) {
      failures_.push_back({Internal("empty", i), kEmptyArray, "NULL"});
    }
  }
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const ColumnLeaf& leaf = leaves_[i];
    // Outside of the key a delete or before image cannot fail.
    const std::string guard = IsKey(i) ? "NOT \"tarn:truncate\" AND " : kStrictRows;
    const bool nulled =
        spec_.on_cast_error == OnCastError::kNull && !IsKey(i) && !values_[i].overflows;
    if (!items_[leaf.item].direct && !values_[i].overflow_of && !nulled) {
      failures_.push_back({guard + Internal("item", leaf.item) + " IS NULL", kExpressionFailed,
                           QuoteText(leaf.origin + ": the expression failed")});
    }
    if (values_[i].CanFail() && spec_.on_cast_error == OnCastError::kReject) {
      failures_.push_back({guard + Internal("fails", i), kCastFailed,
                           QuoteText(leaf.origin + ": ") + " || left(CAST(" + Internal("raw", i) +
                               " AS VARCHAR), 200) || " +
                               QuoteText(" is no " + values_[i].type->ToString())});
    }
  }
  for (const LateExpression& late : late_) {
    failures_.push_back({kStrictRows + late.column + " IS NULL", kExpressionFailed,
                         QuoteText(late.origin + ": the expression failed")});
  }
  if (spec_.null_keys == NullKeys::kReject) {
    for (const int index : key_) {
      const std::string& name = leaves_[static_cast<size_t>(index)].name;
      failures_.push_back(
          {"NOT tarn_before AND NOT \"tarn:truncate\" AND " + QuoteName(name) + " IS NULL",
           kNullKey, QuoteText("key: column " + name + " is NULL")});
    }
  }
  for (const Expectation& expectation : spec_.expect) {
    if (expectation.action == ExpectAction::kWarn) {
      continue;
    }
    const std::string_view code = expectation.action == ExpectAction::kDrop ? kExpectationDropped
                                  : expectation.action == ExpectAction::kReject
                                      ? kExpectationFailed
                                      : kExpectationStopped;
    failures_.push_back(
        {kStrictRows + "NOT " + FindLate("expect." + expectation.name)->column + ".v", code,
         QuoteText("expect." + expectation.name + ": the check is false")});
  }
}

std::string MappingCompiler::InputStage() const {
  std::string sql = "SELECT tarn_row";
  for (const auto& field : landed_.fields()) {
    if (reads_.contains(LowerCase(field->name()))) {
      sql += ", " + QuoteName(field->name());
    }
  }
  std::string bare = "false";
  std::string truncate = "false";
  if (scope_.IsLanded(std::string(kOperation))) {
    bare += spec_.mode == Mode::kMerge ? " OR coalesce(hdr__cdc_operation IN ('D', 'T'), false)"
                                       : " OR coalesce(hdr__cdc_operation = 'T', false)";
    truncate = "coalesce(hdr__cdc_operation = 'T', false)";
  }
  if (spec_.mode == Mode::kMerge && scope_.IsLanded(std::string(kTombstone))) {
    bare += " OR coalesce(hdr__kafka_tombstone, false)";
  }
  return sql + ", (" + bare + ") AS \"tarn:bare\", (" + truncate + ") AS \"tarn:truncate\" FROM " +
         QuoteName(kInputRelation);
}

/// Keeps the rows that `where` wants or fails for, deletes (but see where_of_event_), and images
/// before an update. An update that it does not want is a delete from here on ("tarn:left").
std::string MappingCompiler::WhereStage(const std::string& input) const {
  const std::string judged = "SELECT *, " + TryStruct("CAST(" + where_ + " AS BOOLEAN)") +
                             " AS \"tarn:where\" FROM (" + input + ")";
  const std::string kept = std::string(where_of_event_ ? "" : "\"tarn:bare\" OR ") +
                           "\"tarn:where\" IS NULL OR coalesce(\"tarn:where\".v, false)";
  if (!updates_leave_) {
    return "SELECT * FROM (" + judged + ") WHERE " + kept;
  }
  const std::string left =
      "SELECT *, coalesce(hdr__cdc_operation = 'U', false) AND \"tarn:where\" IS NOT NULL AND NOT "
      "coalesce(\"tarn:where\".v, false) AS \"tarn:left\" FROM (" +
      judged + ")";
  return "SELECT * REPLACE (\"tarn:bare\" OR \"tarn:left\" AS \"tarn:bare\") FROM (" + left +
         ") WHERE tarn_before OR \"tarn:left\" OR " + kept;
}

/// Structure text of json_transform for one landed column.
std::string JsonStructure(const arrow::DataType& type) {
  if (type.id() == arrow::Type::STRUCT) {
    std::string out;
    for (const auto& field : type.fields()) {
      out += (out.empty() ? "" : ",") + JsonString(field->name()) + ":" +
             JsonStructure(*field->type());
    }
    return "{" + out + "}";
  }
  if (type.id() == arrow::Type::BINARY) {
    return "\"VARCHAR\"";
  }
  const Result<std::string> sql = engine::SqlTypeOf(type);
  return JsonString(sql.ok() ? *sql : "VARCHAR");
}

/// Makes a second row of each update with a before image, with the columns of the key from there.
std::string MappingCompiler::ImageStage(const std::string& input) const {
  if (!has_images_) {
    return "SELECT *, false AS tarn_before, false AS \"tarn:known\" FROM (" + input + ")";
  }
  std::string structure;
  std::string replaced;
  for (const auto& field : landed_.fields()) {
    if (!before_columns_.contains(LowerCase(field->name()))) {
      continue;
    }
    const std::string name = QuoteName(field->name());
    structure += (structure.empty() ? "" : ",") + JsonString(field->name()) + ":" +
                 JsonStructure(*field->type());
    std::string value = "\"tarn:image\"." + name;
    if (field->type()->id() == arrow::Type::BINARY) {
      value = "TRY(unhex(" + value + "))";
    }
    replaced += (replaced.empty() ? "" : ", ") + std::string("CASE WHEN tarn_before AND ") +
                "list_contains(\"tarn:names\", " + QuoteText(field->name()) + ") THEN " + value +
                " ELSE " + name + " END AS " + name;
  }
  const std::string images =
      "SELECT *, unnest(CASE WHEN hdr__cdc_operation = 'U' AND hdr__cdc_before IS NOT NULL AND "
      "json_valid(hdr__cdc_before) THEN [false, true] ELSE [false] END) AS tarn_before FROM (" +
      input + ")";
  if (replaced.empty()) {
    return "SELECT *, false AS \"tarn:known\" FROM (" + images + ")";
  }
  std::string known = "tarn_before";  // Whether the image has all that `where` looks at.
  for (const auto& field : landed_.fields()) {
    if (where_reads_.contains(LowerCase(field->name()))) {
      known += " AND list_contains(\"tarn:names\", " + QuoteText(field->name()) + ")";
    }
  }
  const std::string parsed =
      "SELECT *, CASE WHEN tarn_before THEN json_transform(hdr__cdc_before, " +
      QuoteText("{" + structure + "}") +
      ") END AS \"tarn:image\", CASE WHEN tarn_before THEN json_keys(hdr__cdc_before) END AS "
      "\"tarn:names\" FROM (" +
      images + ")";
  return "SELECT * EXCLUDE (\"tarn:image\", \"tarn:names\") REPLACE (" + replaced + "), coalesce(" +
         known + ", false) AS \"tarn:known\" FROM (" + parsed + ")";
}

/// Makes one row per element; an empty array gives one row with a NULL element.
std::string MappingCompiler::ArrayStage(const std::string& input) const {
  if (levels_.empty()) {
    return input;
  }
  const auto array_of = [this](const ArrayLevel& level) {
    std::vector<std::string> parts = level.names;
    for (const ArrayLevel& parent : levels_) {
      if (parent.path == level.parent) {
        parts.insert(parts.begin(), parent.column);
      }
    }
    return engine::QuoteNames(parts);
  };
  std::string sql = input;
  std::string together;  // Of zip: all levels at once.
  std::string lengths;
  for (size_t i = 0; i < levels_.size(); ++i) {
    const std::string array = array_of(levels_[i]);
    const std::string element = QuoteName(levels_[i].column);
    const std::string empty = "coalesce(len(" + array + "), 0) = 0 AS " + Internal("empty", i);
    if (spec_.zip) {
      together += ", unnest(" + array + ") AS " + element + ", " + empty;
      lengths += "len(" + array + "), ";
      continue;
    }
    sql = "SELECT *, unnest(CASE WHEN len(" + array + ") > 0 THEN " + array +
          " ELSE [NULL] END) AS " + element + ", unnest(range(greatest(len(" + array +
          "), 1))) AS " + Internal("index", i) + ", " + empty + " FROM (" + sql + ")";
  }
  if (spec_.zip) {
    sql = "SELECT *" + together + ", unnest(range(greatest(" + lengths + "1))) AS " +
          Internal("index", 0) + " FROM (" + sql + ")";
  }
  return sql;
}

std::string MappingCompiler::ItemStage(const std::string& input) const {
  std::string added;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (!items_[i].direct) {
      added += ", " + TryStruct(items_[i].sql) + " AS " + Internal("item", i);
    }
  }
  return added.empty() ? input : "SELECT *" + added + " FROM (" + input + ")";
}

std::string MappingCompiler::CastStage(const std::string& input) const {
  std::string raw;
  std::string cast;
  for (size_t i = 0; i < values_.size(); ++i) {
    raw += ", " + values_[i].raw + " AS " + Internal("raw", i);
    cast += ", " + values_[i].cast.cast + " AS " + Internal("cast", i);
  }
  return "SELECT *" + cast + " FROM (SELECT *" + raw + " FROM (" + input + "))";
}

/// Gives the values their names, beside the landed columns that later stages read.
std::string MappingCompiler::NameStage(const std::string& input) const {
  std::string sql = "SELECT tarn_row, tarn_before, \"tarn:bare\", \"tarn:truncate\"";
  sql += spec_.where.empty() ? "" : ", \"tarn:where\"";
  sql += updates_leave_ ? ", \"tarn:left\", \"tarn:known\"" : "";
  for (size_t i = 0; i < levels_.size(); ++i) {
    sql += ", " + QuoteName(levels_[i].column) + ", " + Internal("empty", i);
    sql += !spec_.zip || i == 0 ? ", " + Internal("index", i) : "";
  }
  std::set<std::string> mapped;
  for (size_t i = 0; i < values_.size(); ++i) {
    const ColumnCast& cast = values_[i].cast;
    mapped.insert(LowerCase(leaves_[i].name));
    std::string value = Internal("cast", i);
    if (const std::optional<size_t> of = values_[i].overflow_of) {
      value = "CASE WHEN " + values_[*of].cast.fails + " THEN " + value + " END";
    }
    sql += ", " +
           (cast.fails.empty() ? value
                               : "CASE WHEN " + cast.fails + " THEN NULL ELSE " + value + " END") +
           " AS " + QuoteName(leaves_[i].name);
    if (!cast.fails.empty()) {
      sql += ", " + Internal("raw", i) + ", (" + cast.fails + ") AS " + Internal("fails", i);
    }
  }
  for (size_t i = 0; i < items_.size(); ++i) {
    sql += items_[i].direct ? "" : ", " + Internal("item", i);
  }
  for (const auto& field : landed_.fields()) {
    const std::string name = LowerCase(field->name());
    if (reads_.contains(name) && !mapped.contains(name)) {
      sql += ", " + QuoteName(field->name());
    }
  }
  return sql + " FROM (" + input + ")";
}

std::string MappingCompiler::LateStage(const std::string& input) const {
  std::string added;
  for (const LateExpression& late : late_) {
    added += ", " + TryStruct(late.sql) + " AS " + late.column;
  }
  return added.empty() ? input : "SELECT *" + added + " FROM (" + input + ")";
}

std::string MappingCompiler::OutcomeStage(const std::string& input) const {
  std::string cases;
  for (size_t i = 0; i < failures_.size(); ++i) {
    cases += " WHEN " + failures_[i].condition + " THEN " + std::to_string(i + 1);
  }
  return "SELECT *, " + (cases.empty() ? "NULL::INTEGER" : "CASE" + cases + " END") +
         " AS \"tarn:failure\" FROM (" + input + ")";
}

/// Sum of one bit per expectation for which the condition, with its column for $, holds.
std::string MappingCompiler::MaskSum(std::string_view condition_format) const {
  std::string sum;
  for (size_t i = 0; i < spec_.expect.size(); ++i) {
    std::string condition(condition_format);
    const std::string& column = FindLate("expect." + spec_.expect[i].name)->column;
    for (size_t at = condition.find('$'); at != std::string::npos;
         at = condition.find('$', at + column.size())) {
      condition.replace(at, 1, column);
    }
    sum += (sum.empty() ? "" : " + ") + std::string("CASE WHEN ") + condition + " THEN " +
           std::to_string(int64_t{1} << i) + "::BIGINT ELSE 0 END";
  }
  return sum.empty() ? "0::BIGINT" : "(" + sum + ")::BIGINT";
}

Result<std::string> MappingCompiler::FinalStage(const std::string& input) const {
  std::string codes;
  std::string texts;
  for (size_t i = 0; i < failures_.size(); ++i) {
    codes += (codes.empty() ? "" : ", ") + QuoteText(failures_[i].code);
    texts += " WHEN " + std::to_string(i + 1) + " THEN " + failures_[i].text;
  }
  std::string null_casts;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].CanFail() && spec_.on_cast_error == OnCastError::kNull) {
      null_casts += (null_casts.empty() ? "" : " + ") + std::string("CAST(") +
                    Internal("fails", i) + " AS BIGINT)";
    }
  }
  std::string element = levels_.empty() ? "0" : Internal("index", 0);
  if (levels_.size() == 2 && !spec_.zip) {
    element += " * 2147483648 + " + Internal("index", 1);
  }
  std::string sql;
  for (const ColumnLeaf& leaf : leaves_) {
    sql += (sql.empty() ? "SELECT " : ", ") + QuoteName(leaf.name);
  }
  const auto add = [&sql](const std::string& value, std::string_view name) {
    sql += ", " + value + " AS " + std::string(name);
  };
  add("tarn_row", kRowColumn);
  add("CAST(" + element + " AS BIGINT)", kElementColumn);
  add("tarn_before", kBeforeColumn);
  add(codes.empty() ? "NULL::VARCHAR" : "[" + codes + "][\"tarn:failure\"]", kOutcomeColumn);
  add(texts.empty() ? "NULL::VARCHAR" : "CAST(CASE \"tarn:failure\"" + texts + " END AS VARCHAR)",
      kOutcomeTextColumn);
  add(MaskSum("NOT $.v"), kWarningsColumn);
  add(MaskSum("$ IS NOT NULL AND $.v IS NULL"), kNullChecksColumn);
  add(null_casts.empty() ? "0::BIGINT" : "(" + null_casts + ")::BIGINT", kNullCastsColumn);
  const LateExpression* deleted = FindLate("delete_when");
  // Other columns of a before image are those of the change: it deletes nothing by them.
  std::string deletes = deleted == nullptr
                            ? "false"
                            : "(NOT tarn_before AND coalesce(" + deleted->column + ".v, false))";
  if (updates_leave_) {
    deletes =
        "CASE WHEN tarn_before THEN \"tarn:known\" AND NOT coalesce(\"tarn:where\".v, true) "
        "ELSE \"tarn:left\" OR " +
        deletes + " END";
  }
  add(deletes, kDeleteColumn);
  const LateExpression* time = FindLate("event_time");
  add(time == nullptr ? "NULL::TIMESTAMP WITH TIME ZONE" : time->column + ".v", kEventTimeColumn);
  if (const LateExpression* sequence = FindLate("sequence_by"); sequence != nullptr) {
    Result<std::string> type = engine::SqlTypeOf(*out_.sequence_type);
    TARN_RETURN_IF_ERROR(type.status().WithContext("sequence_by"));
    add("CAST(" + sequence->column + ".v AS " + *type + ")", kSequenceColumn);
  }
  for (const std::string& name : out_.passed_columns) {
    add(QuoteName(name), name);
  }
  return sql + " FROM (" + input + ")";
}

Result<CompiledMapping> MappingCompiler::Compile() {
  out_.spec = spec_;
  TARN_RETURN_IF_ERROR(CheckSpec());
  TARN_RETURN_IF_ERROR(PlanExpressions());
  const auto input_schema = [&]() -> std::shared_ptr<arrow::Schema> {
    arrow::FieldVector fields = landed_.fields();
    fields.push_back(arrow::field(std::string(kRowColumn), arrow::int64()));
    return arrow::schema(fields);
  };
  TARN_RETURN_IF_ERROR(session_.RegisterBatches(kInputRelation, input_schema(), {}));
  TARN_RETURN_IF_ERROR(PlanTypes());
  TARN_RETURN_IF_ERROR(PlanValues());
  TARN_RETURN_IF_ERROR(PlanKey());
  TARN_RETURN_IF_ERROR(PlanLateExpressions());
  PlanImages();
  PlanFailures();
  std::string sql = InputStage();
  const bool where_first = !spec_.where.empty() && !where_on_elements_;
  if (where_first && !updates_leave_) {
    sql = WhereStage(sql);
  }
  sql = ImageStage(sql);
  if (where_first && updates_leave_) {
    sql = WhereStage(sql);  // Of the image before an update apart.
  }
  sql = ArrayStage(sql);
  if (where_on_elements_) {
    sql = WhereStage(sql);
  }
  sql = LateStage(NameStage(CastStage(ItemStage(sql))));
  if (const LateExpression* sequence = FindLate("sequence_by"); sequence != nullptr) {
    Result<std::shared_ptr<arrow::Schema>> type =
        session_.Describe("SELECT " + sequence->column + ".v AS v FROM (" + sql + ")");
    TARN_RETURN_IF_ERROR(type.status().WithContext("sequence_by"));
    TARN_ASSIGN_OR_RETURN(out_.sequence_type, TableType(*(*type)->field(0)->type()));
  }
  TARN_ASSIGN_OR_RETURN(out_.sql, FinalStage(OutcomeStage(sql)));
  TARN_ASSIGN_OR_RETURN(out_.result, session_.Describe(out_.sql));
  out_.key_columns = key_;
  out_.has_elements = !levels_.empty();
  for (const auto& field : landed_.fields()) {
    if (reads_.contains(LowerCase(field->name()))) {
      out_.landed_columns.push_back(field->name());
    }
  }
  return std::move(out_);
}

}  // namespace

const std::vector<std::string>& PassedHeaderColumns() {
  static const std::vector<std::string> kColumns = {
      "hdr__cdc_operation",   "hdr__cdc_position",    "hdr__cdc_timestamp", "hdr__cdc_before",
      "hdr__event_timestamp", "hdr__kafka_tombstone", "hdr__absent"};
  return kColumns;
}

Result<CompiledMapping> CompileMapping(engine::Session& session, const MappingSpec& spec,
                                       const arrow::Schema& landed,
                                       const std::vector<ColumnFit>& fits) {
  Result<CompiledMapping> compiled = MappingCompiler(session, spec, landed, fits).Compile();
  const Status forgotten = session.Unregister(kInputRelation);
  TARN_RETURN_IF_ERROR(compiled.status().WithContext("transform " + spec.target));
  TARN_RETURN_IF_ERROR(forgotten);
  return compiled;
}

}  // namespace tarn::transform
