// What counts, bounds and partition values say about a filter (expression.h, file_filter.h).
#include <algorithm>
#include <bit>
#include <cstring>

#include "tarn/iceberg/expression.h"
#include "tarn/iceberg/file_filter.h"

namespace tarn::iceberg {
namespace {

// What is known of the values of one column in a group of rows.
struct ValueRange {
  bool may_null = true;
  bool may_nan = true;
  bool may_value = true;           // A value that is neither null nor NaN.
  const Literal* lower = nullptr;  // Null = not known.
  const Literal* upper = nullptr;
};

// Both zeros are one value here.
bool Below(const Literal& a, const Literal& b) {
  const auto* x = std::get_if<double>(&a.value);
  const auto* y = std::get_if<double>(&b.value);
  return !(x != nullptr && y != nullptr && *x == 0 && *y == 0) && CompareLiterals(a, b) < 0;
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

ExpressionKind KindOf(const Expression& e) { return e.kind; }
ExpressionKind KindOf(const FileFilter::Node& node) { return node.expression->kind; }

// Leaves decide, and/or combine. Bound expressions hold no `not`.
template <typename Tree, typename Leaf>
bool Evaluate(const Tree& e, const Leaf& leaf) {
  const auto evaluate = [&](const Tree& child) { return Evaluate(child, leaf); };
  switch (KindOf(e)) {
    case ExpressionKind::kAnd:
      return std::all_of(e.children.begin(), e.children.end(), evaluate);
    case ExpressionKind::kOr:
      return std::any_of(e.children.begin(), e.children.end(), evaluate);
    default:
      return leaf(e);
  }
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

// What a file says of the values of a column.
struct FileRange {
  FileRange(const SchemaField& field, const DataFile& file);
  FileRange(const FileRange&) = delete;
  FileRange& operator=(const FileRange&) = delete;

  ValueRange range;

 private:
  std::optional<Literal> lower_;
  std::optional<Literal> upper_;
};

FileRange::FileRange(const SchemaField& field, const DataFile& file)
    : lower_(DecodeBound(field.type, file.lower_bounds.Find(field.id))),
      upper_(DecodeBound(field.type, file.upper_bounds.Find(field.id))) {
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
  range.lower = lower_ ? &*lower_ : nullptr;
  range.upper = upper_ ? &*upper_ : nullptr;
}

// <0, 0, >0: a bound as it is stored against a value; nothing where it has to be decoded for that.
std::optional<int> CompareStored(const Type& type, const std::string& bytes, const Literal& value) {
  static_assert(std::endian::native == std::endian::little, "bounds are little endian");
  const auto compare = [](const auto& a, const auto& b) { return a < b ? -1 : (b < a ? 1 : 0); };
  if (type.id == TypeId::kString || type.id == TypeId::kBinary) {
    const auto* text = std::get_if<std::string>(&value.value);
    return text == nullptr ? std::nullopt : std::optional<int>(bytes.compare(*text));
  }
  const auto* number = std::get_if<int64_t>(&value.value);
  if (number == nullptr) {
    return std::nullopt;
  }
  if ((type.id == TypeId::kInt || type.id == TypeId::kDate) && bytes.size() == sizeof(int32_t)) {
    int32_t bound = 0;
    std::memcpy(&bound, bytes.data(), sizeof(bound));
    return compare(int64_t{bound}, *number);
  }
  if (type.id != TypeId::kInt && type.id != TypeId::kDate && bytes.size() == sizeof(int64_t)) {
    int64_t bound = 0;
    std::memcpy(&bound, bytes.data(), sizeof(bound));
    return compare(bound, *number);
  }
  return std::nullopt;
}

// True when one look at a stored bound shows that no row of the file matches: what most files of a
// selective scan fail by, without decoding anything.
bool IsOutside(const Expression& e, const SchemaField& column, const DataFile& file) {
  const auto lower_is = [&](const Literal& value, int order_min) {
    const std::string* bound = file.lower_bounds.Find(column.id);
    const std::optional<int> order =
        bound == nullptr ? std::nullopt : CompareStored(column.type, *bound, value);
    return order && *order >= order_min;
  };
  const auto upper_is = [&](const Literal& value, int order_max) {
    const std::string* bound = file.upper_bounds.Find(column.id);
    const std::optional<int> order =
        bound == nullptr ? std::nullopt : CompareStored(column.type, *bound, value);
    return order && *order <= order_max;
  };
  switch (e.kind) {
    case ExpressionKind::kEqual:
    case ExpressionKind::kIn:
      return std::all_of(e.values.begin(), e.values.end(), [&](const Literal& value) {
        return lower_is(value, 1) || upper_is(value, -1);
      });
    case ExpressionKind::kLess:
      return lower_is(e.values[0], 0);
    case ExpressionKind::kLessOrEqual:
      return lower_is(e.values[0], 1);
    case ExpressionKind::kGreater:
      return upper_is(e.values[0], 0);
    case ExpressionKind::kGreaterOrEqual:
      return upper_is(e.values[0], -1);
    default:
      return false;
  }
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

// `may_match(i)`: what partition field i, which is of the column, says of the predicate.
template <typename MayMatchField>
bool MayMatchSpec(const FileFilter::Node& root, const PartitionSpec& spec,
                  const MayMatchField& may_match) {
  return Evaluate(root, [&](const FileFilter::Node& node) {
    const Expression& e = *node.expression;
    if (e.kind == ExpressionKind::kTrue || e.kind == ExpressionKind::kFalse) {
      return e.kind == ExpressionKind::kTrue;
    }
    for (size_t i = 0; node.column != nullptr && i < spec.fields.size(); ++i) {
      if (spec.fields[i].source_id == e.field_id && !may_match(node, i)) {
        return false;
      }
    }
    return true;
  });
}

FileFilter::Node MakeNode(const Expression& expression, const Schema& schema) {
  FileFilter::Node node{
      .expression = &expression, .column = schema.FindField(expression.field_id), .children = {}};
  for (const Expression& child : expression.children) {
    node.children.push_back(MakeNode(child, schema));
  }
  return node;
}

}  // namespace

FileFilter::FileFilter(const Expression& expression, const Schema& schema)
    : root_(MakeNode(expression, schema)) {}

bool FileFilter::MayMatchFile(const DataFile& file) const {
  return file.record_count != 0 && Evaluate(root_, [&](const Node& node) {
           const Expression& e = *node.expression;
           if (node.column == nullptr || node.column->type.is_nested()) {
             return e.kind != ExpressionKind::kFalse;
           }
           return !IsOutside(e, *node.column, file) &&
                  MayMatch(e, FileRange(*node.column, file).range);
         });
}

bool FileFilter::MayMatchPartition(const PartitionSpec& spec, const PartitionValues& values) const {
  return MayMatchSpec(root_, spec, [&](const Node& node, size_t i) {
    ValueRange range;
    if (i < values.size()) {
      const Literal& value = values[i];
      range = {.may_null = value.is_null(),
               .may_nan = value.is_nan(),
               .may_value = !value.is_null() && !value.is_nan()};
      if (range.may_value) {
        range.lower = &value;
        range.upper = &value;
      }
    }
    return MayMatchTransformed(*node.expression, spec.fields[i].transform, node.column->type,
                               range);
  });
}

bool MayMatchFile(const Expression& expression, const Schema& schema, const DataFile& file) {
  return FileFilter(expression, schema).MayMatchFile(file);
}

bool MustMatchFile(const Expression& expression, const Schema& schema, const DataFile& file) {
  return Evaluate(expression, [&](const Expression& e) {
    const SchemaField* field = schema.FindField(e.field_id);
    return field == nullptr || field->type.is_nested()
               ? e.kind == ExpressionKind::kTrue
               : MustMatch(e, FileRange(*field, file).range);
  });
}

bool MayMatchPartition(const Expression& expression, const Schema& schema,
                       const PartitionSpec& spec, const PartitionValues& values) {
  return FileFilter(expression, schema).MayMatchPartition(spec, values);
}

bool MayMatchManifest(const Expression& expression, const Schema& schema, const PartitionSpec& spec,
                      const ManifestFile& manifest) {
  if (manifest.partitions.size() != spec.fields.size()) {
    return true;
  }
  const std::vector<Type> types = PartitionTypes(spec, schema);
  const FileFilter::Node root = MakeNode(expression, schema);
  return MayMatchSpec(root, spec, [&](const FileFilter::Node& node, size_t i) {
    const PartitionFieldSummary& summary = manifest.partitions[i];
    const bool real = types[i].id == TypeId::kFloat || types[i].id == TypeId::kDouble;
    ValueRange range;
    range.may_null = summary.contains_null;
    range.may_nan = real && summary.contains_nan.value_or(true);
    const std::optional<Literal> lower =
        DecodeBound(types[i], summary.lower_bound ? &*summary.lower_bound : nullptr);
    const std::optional<Literal> upper =
        DecodeBound(types[i], summary.upper_bound ? &*summary.upper_bound : nullptr);
    range.lower = lower ? &*lower : nullptr;
    range.upper = upper ? &*upper : nullptr;
    // Without bounds every value is null or NaN, unless the writer left them out altogether.
    range.may_value = summary.lower_bound.has_value() || summary.upper_bound.has_value() ||
                      (!summary.contains_null && !summary.contains_nan.value_or(false));
    return MayMatchTransformed(*node.expression, spec.fields[i].transform, node.column->type,
                               range);
  });
}

}  // namespace tarn::iceberg
