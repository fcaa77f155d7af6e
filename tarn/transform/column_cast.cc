#include "tarn/transform/column_cast.h"

#include <arrow/api.h>

#include "tarn/engine/sql_type.h"

namespace tarn::transform {
namespace {

bool IsInteger(const arrow::DataType& type) { return arrow::is_integer(type.id()); }
bool IsReal(const arrow::DataType& type) {
  return type.id() == arrow::Type::FLOAT || type.id() == arrow::Type::DOUBLE;
}
bool IsText(const arrow::DataType& type) { return arrow::is_base_binary_like(type.id()); }
bool IsDecimal(const arrow::DataType& type) { return type.id() == arrow::Type::DECIMAL128; }

const arrow::Decimal128Type& AsDecimal(const arrow::DataType& type) {
  return static_cast<const arrow::Decimal128Type&>(type);
}

bool IsNanos(const arrow::DataType& type) {
  return (type.id() == arrow::Type::TIMESTAMP &&
          static_cast<const arrow::TimestampType&>(type).unit() == arrow::TimeUnit::NANO) ||
         (type.id() == arrow::Type::TIME64 &&
          static_cast<const arrow::Time64Type&>(type).unit() == arrow::TimeUnit::NANO);
}

std::string DecimalType(int precision, int scale) {
  return "DECIMAL(" + std::to_string(precision) + "," + std::to_string(scale) + ")";
}

/// True when every value of `from` is one of `to` without rounding, so that no check is needed.
bool AlwaysFits(const arrow::DataType& from, const arrow::DataType& to) {
  if (IsInteger(from) && IsInteger(to)) {
    const bool from_signed = arrow::is_signed_integer(from.id());
    const bool to_signed = arrow::is_signed_integer(to.id());
    return from_signed == to_signed ? from.bit_width() <= to.bit_width()
                                    : !from_signed && from.bit_width() < to.bit_width();
  }
  if (IsInteger(from) && IsDecimal(to)) {
    const int digits = AsDecimal(to).precision() - AsDecimal(to).scale();
    const int needed = from.bit_width() == 8    ? 3
                       : from.bit_width() == 16 ? 5
                       : from.bit_width() == 32 ? 10
                                                : 20;
    return digits >= needed;
  }
  if (IsDecimal(from) && IsDecimal(to)) {
    return AsDecimal(from).scale() <= AsDecimal(to).scale() &&
           AsDecimal(from).precision() - AsDecimal(from).scale() <=
               AsDecimal(to).precision() - AsDecimal(to).scale();
  }
  if (from.id() == arrow::Type::TIMESTAMP && to.id() == arrow::Type::TIMESTAMP) {
    return static_cast<const arrow::TimestampType&>(from).unit() == arrow::TimeUnit::MICRO;
  }
  if (IsInteger(from) && IsReal(to)) {
    return from.bit_width() <= (to.id() == arrow::Type::DOUBLE ? 32 : 16);
  }
  return to.id() == arrow::Type::STRING || from.id() == arrow::Type::NA ||
         (from.id() == arrow::Type::FLOAT && to.id() == arrow::Type::DOUBLE) ||
         (IsText(from) && arrow::is_base_binary_like(to.id()));
}

/// Condition that the cast did not round, empty when it cannot.
std::string ExactCondition(const std::string& raw, const std::string& done,
                           const arrow::DataType& from, const arrow::DataType& to) {
  if (IsInteger(to) && (IsText(from) || IsReal(from))) {
    return "TRY_CAST(" + raw + " AS DOUBLE) = CAST(" + done + " AS DOUBLE)";
  }
  if (IsDecimal(from) && (IsInteger(to) || IsDecimal(to))) {
    const std::string type = DecimalType(AsDecimal(from).precision(), AsDecimal(from).scale());
    // Of both, since a HUGEINT is shown as DECIMAL(38, 0) and may not be one.
    return "TRY_CAST(" + done + " AS " + type + ") = TRY_CAST(" + raw + " AS " + type + ")";
  }
  if (IsDecimal(to) && IsText(from)) {
    // All digits that fit beside the whole part.
    const int whole = AsDecimal(to).precision() - AsDecimal(to).scale();
    const std::string wide = DecimalType(38, 38 - whole);
    return "TRY_CAST(" + raw + " AS " + wide + ") = TRY_CAST(" + done + " AS " + wide + ")";
  }
  if ((IsInteger(from) || IsDecimal(from)) && IsReal(to)) {
    // Whether the nearest real number still says the same.
    const std::string type = IsDecimal(from)
                                 ? DecimalType(AsDecimal(from).precision(), AsDecimal(from).scale())
                             : arrow::is_signed_integer(from.id()) ? "BIGINT"
                                                                   : "UBIGINT";
    return "TRY_CAST(" + done + " AS " + type + ") = " + raw;
  }
  if (IsReal(from) && IsDecimal(to)) {
    return "CAST(" + done + " AS DOUBLE) = CAST(" + raw + " AS DOUBLE)";
  }
  if (IsNanos(from) && !IsNanos(to)) {
    const bool time = from.id() == arrow::Type::TIME64;
    return "CAST(" + done + " AS " + (time ? "TIME_NS" : "TIMESTAMP_NS") + ") = " + raw;
  }
  if (IsText(from) && (to.id() == arrow::Type::TIMESTAMP || to.id() == arrow::Type::TIME64)) {
    // Digits behind the sixth of a second would be cut off.
    return "NOT regexp_matches(" + raw + ", '\\.\\d{6}\\d*[1-9]')";
  }
  if (IsReal(to) && IsText(from)) {
    return "(NOT isinf(" + done + ") OR lower(" + raw + ") LIKE '%inf%')";
  }
  return {};
}

}  // namespace

Result<ColumnCast> PlanCast(const std::string& raw, const std::string& done,
                            const arrow::DataType& from, const arrow::DataType& to) {
  TARN_ASSIGN_OR_RETURN(const std::string to_sql, engine::SqlTypeOf(to));
  if (from.id() == arrow::Type::STRING && to.id() == arrow::Type::BINARY) {
    return ColumnCast{.cast = "encode(" + raw + ")", .fails = {}};
  }
  if (from.id() == arrow::Type::BINARY && to.id() == arrow::Type::STRING) {
    // Bytes are taken as UTF-8; the escapes of a plain cast would be a silent change.
    return ColumnCast{.cast = "TRY(decode(" + raw + "))",
                      .fails = raw + " IS NOT NULL AND " + done + " IS NULL"};
  }
  if (arrow::is_nested(from.id()) && to.id() == arrow::Type::STRING) {
    return ColumnCast{.cast = "CAST(to_json(" + raw + ") AS VARCHAR)", .fails = {}};
  }
  if (from.id() != arrow::Type::NA) {
    TARN_ASSIGN_OR_RETURN(const std::string from_sql, engine::SqlTypeOf(from));
    // HUGEINT comes as decimal128(38, 0) and needs the cast.
    if (from_sql == to_sql && to_sql != "DECIMAL(38,0)") {
      return ColumnCast{.cast = raw, .fails = {}};
    }
    if (from_sql != to_sql && AlwaysFits(from, to)) {
      return ColumnCast{.cast = "CAST(" + raw + " AS " + to_sql + ")", .fails = {}};
    }
  } else {
    return ColumnCast{.cast = "CAST(" + raw + " AS " + to_sql + ")", .fails = {}};
  }
  ColumnCast plan;
  // TRY_CAST of a nested value makes single members NULL; this fails as a whole.
  plan.cast = arrow::is_nested(to.id()) ? "TRY(CAST(" + raw + " AS " + to_sql + "))"
                                        : "TRY_CAST(" + raw + " AS " + to_sql + ")";
  plan.fails = raw + " IS NOT NULL AND (" + done + " IS NULL";
  const std::string exact = ExactCondition(raw, done, from, to);
  if (!exact.empty()) {
    plan.fails += " OR NOT coalesce(" + exact + ", false)";
  }
  plan.fails += ")";
  return plan;
}

Result<ColumnCast> PlanImpliedCast(const std::string& raw, const std::string& done,
                                   const arrow::DataType& from, const arrow::DataType& to) {
  TARN_ASSIGN_OR_RETURN(ColumnCast plan, PlanCast(raw, done, from, to));
  if (from.id() == arrow::Type::STRING && IsInteger(to)) {
    plan.fails += " OR coalesce(regexp_matches(" + raw + ", '^[+\\s]|^-?0\\d|\\s$'), false)";
  }
  return plan;
}

}  // namespace tarn::transform
