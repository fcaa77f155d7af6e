// What counts, bounds and partition values say about a filter (expression.h).
#include <algorithm>

#include "tarn/iceberg/expression.h"

namespace tarn::iceberg {
namespace {

// What is known of the values of one column in a group of rows.
struct ValueRange {
  bool may_null = true;
  bool may_nan = true;
  bool may_value = true;  // A value that is neither null nor NaN.
  std::optional<Literal> lower;
  std::optional<Literal> upper;
};

Literal PlainZero(const Literal& literal, double zero) {
  const auto* number = std::get_if<double>(&literal.value);
  return number != nullptr && *number == 0 ? Literal::Double(zero) : literal;
}

bool Below(const Literal& a, const Literal& b) {
  return CompareLiterals(PlainZero(a, 0.0), PlainZero(b, 0.0)) < 0;
}

bool Contains(const ValueRange& range, const Literal& value) {
  return !(range.lower && Below(value, *range.lower)) &&
         !(range.upper && Below(*range.upper, value));
}

// The first string after every string with the prefix cannot be needed: compares cut bounds.
bool MayStartWith(const ValueRange& range, const std::string& prefix) {
  const auto cut = [&](const Literal& bound) { return bound.AsString().substr(0, prefix.size()); };
  return !(range.lower && cut(*range.lower) > prefix) &&
         !(range.upper && cut(*range.upper) < prefix);
}

// NaN is greater than every number for the engines that order it at all.
bool MayMatchNan(ExpressionKind kind) {
  return kind == ExpressionKind::kGreater || kind == ExpressionKind::kGreaterOrEqual ||
         kind == ExpressionKind::kNotEqual || kind == ExpressionKind::kNotIn;
}

bool MayMatch(const Expression& e, const ValueRange& range) {
  switch (e.kind) {
    case ExpressionKind::kTrue:
      return true;
    case ExpressionKind::kFalse:
      return false;
    case ExpressionKind::kIsNull:
      return range.may_null;
    case ExpressionKind::kNotNull:
      return range.may_value || range.may_nan;
    case ExpressionKind::kIsNan:
      return range.may_nan;
    case ExpressionKind::kNotNan:
      return range.may_value || range.may_null;
    default:
      break;
  }
  if (range.may_nan &&
      (MayMatchNan(e.kind) || std::any_of(e.values.begin(), e.values.end(),
                                          [](const Literal& value) { return value.is_nan(); }))) {
    return true;
  }
  if (!range.may_value) {
    return false;
  }
  const Literal& value = e.values[0];
  switch (e.kind) {
    case ExpressionKind::kEqual:
    case ExpressionKind::kIn:
      return std::any_of(e.values.begin(), e.values.end(),
                         [&](const Literal& one) { return Contains(range, one); });
    case ExpressionKind::kNotEqual:
    case ExpressionKind::kNotIn: {
      // Only a group of one known value can be all equal.
      const bool single = range.lower && range.upper && *range.lower == *range.upper;
      return !single || Matches(e, *range.lower);
    }
    case ExpressionKind::kLess:
      return !range.lower || Below(*range.lower, value);
    case ExpressionKind::kLessOrEqual:
      return !range.lower || !Below(value, *range.lower);
    case ExpressionKind::kGreater:
      return !range.upper || Below(value, *range.upper);
    case ExpressionKind::kGreaterOrEqual:
      return !range.upper || !Below(*range.upper, value);
    case ExpressionKind::kStartsWith:
      return MayStartWith(range, value.AsString());
    case ExpressionKind::kNotStartsWith:
      return !(range.lower && range.upper &&
               range.lower->AsString().starts_with(value.AsString()) &&
               range.upper->AsString().starts_with(value.AsString()));
    default:
      return true;
  }
}

bool MustMatch(const Expression& e, const ValueRange& range) {
  switch (e.kind) {
    case ExpressionKind::kTrue:
      return true;
    case ExpressionKind::kFalse:
      return false;
    case ExpressionKind::kIsNull:
      return !range.may_value && !range.may_nan;
    case ExpressionKind::kNotNull:
      return !range.may_null;
    case ExpressionKind::kIsNan:
      return !range.may_value && !range.may_null;
    case ExpressionKind::kNotNan:
      return !range.may_nan;
    default:
      break;
  }
  if (range.may_null || range.may_nan || !range.lower || !range.upper) {
    return false;
  }
  const Literal& value = e.values[0];
  switch (e.kind) {
    case ExpressionKind::kEqual:
    case ExpressionKind::kIn:
      return *range.lower == *range.upper && Matches(e, *range.lower);
    case ExpressionKind::kNotEqual:
    case ExpressionKind::kNotIn:
      return std::none_of(e.values.begin(), e.values.end(),
                          [&](const Literal& one) { return Contains(range, one); });
    case ExpressionKind::kLess:
      return Below(*range.upper, value);
    case ExpressionKind::kLessOrEqual:
      return !Below(value, *range.upper);
    case ExpressionKind::kGreater:
      return Below(value, *range.lower);
    case ExpressionKind::kGreaterOrEqual:
      return !Below(*range.lower, value);
    case ExpressionKind::kStartsWith:
      return range.lower->AsString().starts_with(value.AsString()) &&
             range.upper->AsString().starts_with(value.AsString());
    case ExpressionKind::kNotStartsWith:
      return !MayStartWith(range, value.AsString());
    default:
      return false;
  }
}

// Leaves decide, and/or combine. Bound expressions hold no `not`.
template <typename Leaf>
bool Evaluate(const Expression& e, const Leaf& leaf) {
  if (e.kind == ExpressionKind::kAnd) {
    return std::all_of(e.children.begin(), e.children.end(),
                       [&](const Expression& child) { return Evaluate(child, leaf); });
  }
  if (e.kind == ExpressionKind::kOr) {
    return std::any_of(e.children.begin(), e.children.end(),
                       [&](const Expression& child) { return Evaluate(child, leaf); });
  }
  return leaf(e);
}

std::optional<Literal> DecodeBound(const Type& type, const std::string* bytes) {
  if (bytes == nullptr) {
    return std::nullopt;
  }
  Result<Literal> literal = DecodeLiteral(type, *bytes);
  // A bound that cannot be read, or NaN from old writers, says nothing.
  return literal.ok() && !literal->is_nan() ? std::optional<Literal>(std::move(literal).value())
                                            : std::nullopt;
}

ValueRange RangeOf(const SchemaField& field, const DataFile& file) {
  ValueRange range;
  const bool real = field.type.id == TypeId::kFloat || field.type.id == TypeId::kDouble;
  const int64_t* values = file.value_counts.Find(field.id);
  const int64_t* nulls = file.null_value_counts.Find(field.id);
  const int64_t* nans = file.nan_value_counts.Find(field.id);
  range.may_null = nulls == nullptr || *nulls > 0;
  range.may_nan = real && (nans == nullptr || *nans > 0);
  if (values != nullptr && nulls != nullptr) {
    const int64_t nan_count = nans == nullptr ? 0 : *nans;
    range.may_value = *values > *nulls + nan_count;
    range.may_nan = range.may_nan && *values > *nulls;
  }
  range.lower = DecodeBound(field.type, file.lower_bounds.Find(field.id));
  range.upper = DecodeBound(field.type, file.upper_bounds.Find(field.id));
  return range;
}

// Largest value below `x` where values are whole numbers.
Literal Predecessor(const Literal& x) {
  if (const auto* number = std::get_if<int64_t>(&x.value);
      number != nullptr && *number > INT64_MIN) {
    return Literal::Long(*number - 1);
  }
  if (const auto* unscaled = std::get_if<Int128>(&x.value)) {
    return Literal::Decimal(*unscaled - 1);
  }
  return x;
}

Literal Successor(const Literal& x) {
  if (const auto* number = std::get_if<int64_t>(&x.value);
      number != nullptr && *number < INT64_MAX) {
    return Literal::Long(*number + 1);
  }
  if (const auto* unscaled = std::get_if<Int128>(&x.value)) {
    return Literal::Decimal(*unscaled + 1);
  }
  return x;
}

bool IsTimeTransform(TransformKind kind) {
  return kind == TransformKind::kYear || kind == TransformKind::kMonth ||
         kind == TransformKind::kDay || kind == TransformKind::kHour;
}

// A range of partition values that a predicate on the source allows.
bool MayMatchOrdered(const Expression& e, const Transform& transform, const Type& source,
                     const ValueRange& range) {
  const auto apply = [&](const Literal& value) { return ApplyTransform(transform, source, value); };
  // Old writers stored negative results of time transforms one too large.
  const auto widen = [&](const Literal& value) {
    const auto* number = std::get_if<int64_t>(&value.value);
    return IsTimeTransform(transform.kind) && number != nullptr && *number < 0 ? Successor(value)
                                                                               : value;
  };
  const auto at_most = [&](const Literal& limit) {
    const Result<Literal> value = apply(limit);
    return !value.ok() || !range.lower || !Below(widen(*value), *range.lower);
  };
  const auto at_least = [&](const Literal& limit) {
    const Result<Literal> value = apply(limit);
    return !value.ok() || !range.upper || !Below(*range.upper, *value);
  };
  switch (e.kind) {
    case ExpressionKind::kEqual:
    case ExpressionKind::kIn:
      return std::any_of(e.values.begin(), e.values.end(),
                         [&](const Literal& one) { return at_most(one) && at_least(one); });
    case ExpressionKind::kLess:
      return at_most(Predecessor(e.values[0]));
    case ExpressionKind::kLessOrEqual:
      return at_most(e.values[0]);
    case ExpressionKind::kGreater:
      return at_least(Successor(e.values[0]));
    case ExpressionKind::kGreaterOrEqual:
      return at_least(e.values[0]);
    case ExpressionKind::kStartsWith: {
      const Result<Literal> prefix = apply(e.values[0]);
      return !prefix.ok() || transform.kind != TransformKind::kTruncate ||
             MayStartWith(range, prefix->AsString());
    }
    default:
      return true;
  }
}

bool MayMatchTransformed(const Expression& e, const Transform& transform, const Type& source,
                         const ValueRange& range) {
  switch (transform.kind) {
    case TransformKind::kVoid:
    case TransformKind::kUnknown:
      return true;
    case TransformKind::kIdentity:
      return MayMatch(e, range);
    default:
      break;
  }
  if (e.kind == ExpressionKind::kIsNull) {
    return range.may_null;
  }
  if (e.kind == ExpressionKind::kIsNan || e.kind == ExpressionKind::kNotNan) {
    return true;
  }
  if (!range.may_value) {
    return false;
  }
  if (transform.kind != TransformKind::kBucket) {
    return MayMatchOrdered(e, transform, source, range);
  }
  if (e.kind != ExpressionKind::kEqual && e.kind != ExpressionKind::kIn) {
    return true;
  }
  return std::any_of(e.values.begin(), e.values.end(), [&](const Literal& one) {
    const Result<Literal> bucket = ApplyTransform(transform, source, one);
    return !bucket.ok() || Contains(range, *bucket);
  });
}

// `range_of(i)`: what is known of the values of partition field i.
template <typename RangeOfField>
bool MayMatchSpec(const Expression& expression, const Schema& schema, const PartitionSpec& spec,
                  const RangeOfField& range_of) {
  return Evaluate(expression, [&](const Expression& e) {
    if (e.kind == ExpressionKind::kTrue || e.kind == ExpressionKind::kFalse) {
      return e.kind == ExpressionKind::kTrue;
    }
    for (size_t i = 0; i < spec.fields.size(); ++i) {
      const PartitionField& field = spec.fields[i];
      const SchemaField* source =
          field.source_id == e.field_id ? schema.FindField(e.field_id) : nullptr;
      if (source != nullptr &&
          !MayMatchTransformed(e, field.transform, source->type, range_of(i))) {
        return false;
      }
    }
    return true;
  });
}

}  // namespace

bool MayMatchFile(const Expression& expression, const Schema& schema, const DataFile& file) {
  if (file.record_count == 0) {
    return false;
  }
  return Evaluate(expression, [&](const Expression& e) {
    const SchemaField* field = schema.FindField(e.field_id);
    return field == nullptr || field->type.is_nested() ? e.kind != ExpressionKind::kFalse
                                                       : MayMatch(e, RangeOf(*field, file));
  });
}

bool MustMatchFile(const Expression& expression, const Schema& schema, const DataFile& file) {
  return Evaluate(expression, [&](const Expression& e) {
    const SchemaField* field = schema.FindField(e.field_id);
    return field == nullptr || field->type.is_nested() ? e.kind == ExpressionKind::kTrue
                                                       : MustMatch(e, RangeOf(*field, file));
  });
}

bool MayMatchPartition(const Expression& expression, const Schema& schema,
                       const PartitionSpec& spec, const PartitionValues& values) {
  return MayMatchSpec(expression, schema, spec, [&](size_t i) {
    ValueRange range;
    if (i < values.size()) {
      const Literal& value = values[i];
      range = {.may_null = value.is_null(),
               .may_nan = value.is_nan(),
               .may_value = !value.is_null() && !value.is_nan()};
      if (range.may_value) {
        range.lower = value;
        range.upper = value;
      }
    }
    return range;
  });
}

bool MayMatchManifest(const Expression& expression, const Schema& schema, const PartitionSpec& spec,
                      const ManifestFile& manifest) {
  if (manifest.partitions.size() != spec.fields.size()) {
    return true;
  }
  const std::vector<Type> types = PartitionTypes(spec, schema);
  return MayMatchSpec(expression, schema, spec, [&](size_t i) {
    const PartitionFieldSummary& summary = manifest.partitions[i];
    const bool real = types[i].id == TypeId::kFloat || types[i].id == TypeId::kDouble;
    ValueRange range;
    range.may_null = summary.contains_null;
    range.may_nan = real && summary.contains_nan.value_or(true);
    range.lower = DecodeBound(types[i], summary.lower_bound ? &*summary.lower_bound : nullptr);
    range.upper = DecodeBound(types[i], summary.upper_bound ? &*summary.upper_bound : nullptr);
    // Without bounds every value is null or NaN, unless the writer left them out altogether.
    range.may_value = summary.lower_bound.has_value() || summary.upper_bound.has_value() ||
                      (!summary.contains_null && !summary.contains_nan.value_or(false));
    return range;
  });
}

}  // namespace tarn::iceberg
