#include "tarn/lakehouse/key_range.h"

#include <arrow/api.h>
#include <arrow/compute/api.h>

#include "tarn/base/arrow_status.h"
#include "tarn/iceberg/transform.h"

namespace tarn::lakehouse {

using iceberg::Expression;
using iceberg::ExpressionKind;
using iceberg::Literal;

KeyRange::KeyRange(const iceberg::Schema& schema, std::vector<std::string> key) : schema_(schema) {
  for (const std::string& name : key) {
    const iceberg::SchemaField* field = schema.FindField(name, iceberg::CaseRule::kInsensitive);
    columns_.push_back({.field = field, .min = {}, .max = {}, .open = field == nullptr});
  }
}

Status KeyRange::Add(const std::vector<std::shared_ptr<arrow::Array>>& columns) {
  if (columns.size() != columns_.size()) {
    return Status::Internal("key columns of another number");
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    Column& column = columns_[i];
    column.has_null = column.has_null || columns[i]->null_count() > 0;
    if (column.open || columns[i]->null_count() == columns[i]->length()) {
      continue;
    }
    const arrow::Result<arrow::Datum> bounds = arrow::compute::MinMax(columns[i]);
    if (!bounds.ok()) {
      column.open = true;
      continue;
    }
    const auto& both = static_cast<const arrow::StructScalar&>(*bounds->scalar());
    TARN_ASSIGN_OR_RETURN(Literal min,
                          iceberg::LiteralFromScalar(column.field->type, *both.value[0]));
    TARN_ASSIGN_OR_RETURN(Literal max,
                          iceberg::LiteralFromScalar(column.field->type, *both.value[1]));
    if (column.min.is_null() || iceberg::CompareLiterals(min, column.min) < 0) {
      column.min = std::move(min);
    }
    if (column.max.is_null() || iceberg::CompareLiterals(max, column.max) > 0) {
      column.max = std::move(max);
    }
  }
  return Status::Ok();
}

Result<Expression> KeyRange::Filter() const {
  Expression filter = Expression::True();
  for (const Column& column : columns_) {
    if (column.open || column.min.is_null()) {
      continue;
    }
    const std::string& name = column.field->name;
    Expression within =
        Expression::And(Expression::Compare(ExpressionKind::kGreaterOrEqual, name, column.min),
                        Expression::Compare(ExpressionKind::kLessOrEqual, name, column.max));
    if (column.has_null) {
      within = Expression::Or(std::move(within), Expression::IsNull(name));
    }
    filter = Expression::And(std::move(filter), std::move(within));
  }
  return iceberg::Bind(filter, schema_);
}

}  // namespace tarn::lakehouse
