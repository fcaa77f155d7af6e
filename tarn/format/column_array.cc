// Columns as Arrow arrays, and their state between batches: the second half of column_node.h.
#include <algorithm>

#include <arrow/api.h>

#include "tarn/base/check.h"
#include "tarn/format/column_node.h"

namespace tarn::format {

namespace {

struct KindPair {
  ColumnKind column;
  FieldKind field;
  FieldDetail detail = FieldDetail::kNone;
};
constexpr KindPair kKinds[] = {
    {ColumnKind::kUntyped, FieldKind::kString, FieldDetail::kUntyped},
    {ColumnKind::kBoolean, FieldKind::kBoolean},
    {ColumnKind::kInteger, FieldKind::kInteger},
    {ColumnKind::kLong, FieldKind::kLong},
    {ColumnKind::kFloat, FieldKind::kFloat},
    {ColumnKind::kDouble, FieldKind::kDouble},
    {ColumnKind::kDecimal, FieldKind::kDecimal},
    {ColumnKind::kString, FieldKind::kString},
    {ColumnKind::kBinary, FieldKind::kBinary},
    {ColumnKind::kDate, FieldKind::kDate},
    {ColumnKind::kTime, FieldKind::kLong, FieldDetail::kTime},
    {ColumnKind::kWallClock, FieldKind::kTimestamp, FieldDetail::kWallClock},
    {ColumnKind::kInstant, FieldKind::kTimestamp},
    {ColumnKind::kUuid, FieldKind::kString, FieldDetail::kUuid},
    {ColumnKind::kStruct, FieldKind::kStruct},
    {ColumnKind::kList, FieldKind::kArray},
    {ColumnKind::kMap, FieldKind::kMap}};

// Packs bytes of 0 and 1 into bits.
std::shared_ptr<arrow::Buffer> PackBits(const uint8_t* bytes, int64_t count) {
  auto allocated = arrow::AllocateBuffer((count + 7) / 8);
  TARN_CHECK(allocated.ok());
  std::shared_ptr<arrow::Buffer> bits = std::move(allocated).ValueUnsafe();
  uint8_t* out = bits->mutable_data();
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t eight = 0;
    memcpy(&eight, bytes + i, 8);
    *out++ = static_cast<uint8_t>((eight * 0x0102040810204080ULL) >> 56U);
  }
  if (i < count) {
    *out = 0;
    for (int bit = 0; i < count; ++i, ++bit) {
      *out = static_cast<uint8_t>(*out | (bytes[i] << bit));
    }
  }
  return bits;
}

}  // namespace

ColumnKind KindOf(const FieldType& type) {
  if (type.kind == FieldKind::kByte || type.kind == FieldKind::kShort) {
    return ColumnKind::kInteger;
  }
  for (const KindPair& pair : kKinds) {
    if (pair.field == type.kind && pair.detail == type.detail) {
      return pair.column;
    }
  }
  return ColumnKind::kString;
}

Field FieldOf(const ColumnNode& node) {
  if (node.stale) {
    Field field = FieldOf(*node.raw);
    field.name = node.name;
    return field;
  }
  Field field{.name = node.name};
  const bool empty = node.kind == ColumnKind::kStruct && node.children.empty();
  const KindPair& pair = kKinds[empty ? 0 : static_cast<size_t>(node.kind)];
  field.type.kind = pair.field;
  field.type.detail = pair.detail;
  if (node.kind == ColumnKind::kDecimal) {
    field.type.precision = node.precision;
    field.type.scale = node.scale;
  }
  if (node.kind == ColumnKind::kStruct || node.kind == ColumnKind::kList ||
      node.kind == ColumnKind::kMap) {
    for (const auto& child : node.children) {
      field.type.children.push_back(FieldOf(*child));
    }
  }
  if (node.kind == ColumnKind::kMap) {
    field.type.children[0].nullable = false;
  }
  return field;
}

ColumnState StateOf(const ColumnNode& node) {
  if (node.stale) {
    ColumnState state = StateOf(*node.raw);
    state.name = node.name;
    return state;
  }
  ColumnState state{.name = node.name,
                    .type = FieldOf(node).type,
                    .declared = node.declared,
                    .exact_in_double = node.ExactInDouble(),
                    .integer_digits = node.IntegerDigits(),
                    .fraction_digits = node.fraction_digits};
  if (node.kind == ColumnKind::kStruct && node.children.empty()) {
    state.type = {.kind = FieldKind::kStruct};
  }
  state.type.children.clear();
  if (node.kind == ColumnKind::kStruct || node.kind == ColumnKind::kList ||
      node.kind == ColumnKind::kMap) {
    for (const auto& child : node.children) {
      state.children.push_back(StateOf(*child));
    }
  }
  return state;
}

std::unique_ptr<ColumnNode> NodeOf(const ColumnState& state) {
  auto node = std::make_unique<ColumnNode>();
  node->name = state.name;
  node->declared = state.declared;
  node->exact_in_double = state.exact_in_double;
  node->integer_digits = state.integer_digits;
  node->fraction_digits = state.fraction_digits;
  const ColumnKind kind = KindOf(state.type);
  if (kind != ColumnKind::kUntyped) {
    node->Adopt(kind);
  }
  node->precision = state.type.precision;
  node->scale = state.type.scale;
  if (kind == ColumnKind::kStruct) {
    for (const ColumnState& member : state.children) {
      ColumnNode* added = node->AddMember(member.name, member.name, SIZE_MAX / 8);
      *added = std::move(*NodeOf(member));
    }
  } else {
    for (size_t i = 0; i < std::min(state.children.size(), node->children.size()); ++i) {
      const std::string name = node->children[i]->name;
      node->children[i] = NodeOf(state.children[i]);
      node->children[i]->name = name;
    }
  }
  return node;
}

namespace {

std::shared_ptr<arrow::ArrayData> TakeData(ColumnNode& node, int64_t rows);

// Buffers and children behind the validity bitmap.
void TakeValues(ColumnNode& node, int64_t rows, arrow::ArrayData& data) {
  switch (node.kind) {
    case ColumnKind::kBoolean:
      data.buffers.push_back(PackBits(node.values.As<uint8_t>(), rows));
      return;
    case ColumnKind::kString:
    case ColumnKind::kBinary:
      data.buffers.push_back(node.offsets.Take());
      data.buffers.push_back(node.bytes.Take());
      return;
    case ColumnKind::kStruct:
      for (auto& child : node.children) {
        data.child_data.push_back(TakeData(*child, rows));
      }
      return;
    case ColumnKind::kList:
      data.buffers.push_back(node.offsets.Take());
      data.child_data.push_back(TakeData(*node.children[0], node.children[0]->length));
      return;
    case ColumnKind::kMap: {
      data.buffers.push_back(node.offsets.Take());
      const int64_t entries = node.children[0]->length;
      auto pairs = arrow::ArrayData::Make(
          static_cast<const arrow::MapType&>(*data.type).value_type(), entries, {nullptr}, 0);
      pairs->child_data = {TakeData(*node.children[0], entries),
                           TakeData(*node.children[1], entries)};
      data.child_data.push_back(std::move(pairs));
      return;
    }
    default:
      data.buffers.push_back(node.values.Take());
  }
}

std::shared_ptr<arrow::ArrayData> TakeData(ColumnNode& node, int64_t rows) {
  node.FillNulls(rows);
  TARN_CHECK(node.length == rows);
  const FieldType type = FieldOf(node).type;
  if (type.detail == FieldDetail::kUntyped) {
    auto nulls = arrow::MakeArrayOfNull(arrow::utf8(), rows);
    TARN_CHECK(nulls.ok());
    return (*nulls)->data();
  }
  std::shared_ptr<arrow::Buffer> validity;
  int64_t null_count = 0;
  if (node.has_nulls) {
    const auto* bytes = node.valid.As<uint8_t>();
    null_count = std::count(bytes, bytes + rows, uint8_t{0});
    validity = null_count == 0 ? nullptr : PackBits(bytes, rows);
  }
  auto data = arrow::ArrayData::Make(ToArrowType(type), rows, {std::move(validity)}, null_count);
  TakeValues(node, rows, *data);
  return data;
}

}  // namespace

std::shared_ptr<arrow::Array> TakeArray(ColumnNode& node, int64_t rows) {
  auto array = arrow::MakeArray(TakeData(node, rows));
  node.ClearValues();
  return array;
}

}  // namespace tarn::format
