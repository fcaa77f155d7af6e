#include "tarn/format/column_node.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include <arrow/api.h>

#include "tarn/base/check.h"
#include "tarn/format/base64.h"
#include "tarn/format/time_text.h"

namespace tarn::format {

namespace {

constexpr uint64_t kDoubleIntegerMax = 1ULL << 53U;

size_t Width(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kBoolean:
      return 1;
    case ColumnKind::kInteger:
    case ColumnKind::kFloat:
    case ColumnKind::kDate:
      return 4;
    case ColumnKind::kLong:
    case ColumnKind::kDouble:
    case ColumnKind::kTime:
    case ColumnKind::kWallClock:
    case ColumnKind::kInstant:
      return 8;
    case ColumnKind::kDecimal:
    case ColumnKind::kUuid:
      return 16;
    default:
      return 0;
  }
}

bool HasOffsets(ColumnKind kind) {
  return kind == ColumnKind::kString || kind == ColumnKind::kBinary || kind == ColumnKind::kList ||
         kind == ColumnKind::kMap;
}

std::string FormatUuid(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      text.push_back('-');
    }
    const auto byte = static_cast<unsigned char>(bytes[i]);
    text.push_back(kHex[byte >> 4U]);
    text.push_back(kHex[byte & 15U]);
  }
  return text;
}

// Reads value `row` of a scalar column.
Cell CellAt(const ColumnNode& node, int64_t row) {
  const auto i = static_cast<size_t>(row);
  Cell cell{.kind = node.kind, .scale = node.scale};
  switch (node.kind) {
    case ColumnKind::kBoolean:
      cell.integer = node.values.As<uint8_t>()[i];
      break;
    case ColumnKind::kInteger:
    case ColumnKind::kDate:
      cell.integer = node.values.As<int32_t>()[i];
      break;
    case ColumnKind::kFloat:
      cell.real = static_cast<double>(node.values.As<float>()[i]);
      break;
    case ColumnKind::kDouble:
      cell.real = node.values.As<double>()[i];
      break;
    case ColumnKind::kDecimal:
      memcpy(&cell.decimal, node.values.As<char>() + 16 * i, 16);
      break;
    case ColumnKind::kUuid:
      cell.bytes = {node.values.As<char>() + 16 * i, 16};
      break;
    case ColumnKind::kString:
    case ColumnKind::kBinary: {
      const int32_t* offsets = node.offsets.As<int32_t>();
      cell.bytes = {node.bytes.As<char>() + offsets[i],
                    static_cast<size_t>(offsets[i + 1] - offsets[i])};
      break;
    }
    default:
      cell.integer = node.values.As<int64_t>()[i];
      break;
  }
  return cell;
}

bool IsValid(const ColumnNode& node, int64_t row) {
  return !node.has_nulls || node.valid.As<uint8_t>()[row] != 0;
}

// Replaces the fixed-width values by what `make` gives for each valid row.
template <typename To, typename Make>
void Rebuild(ColumnNode& node, ColumnKind kind, Make make) {
  GrowBuffer values;
  values.Reserve(static_cast<size_t>(node.length) * sizeof(To));
  for (int64_t row = 0; row < node.length; ++row) {
    values.Push<To>(IsValid(node, row) ? make(CellAt(node, row)) : To{});
  }
  node.values = std::move(values);
  node.kind = kind;
}

}  // namespace

void GrowBuffer::Grow(size_t needed) {
  const size_t wanted = std::max({needed, capacity_ * 2, last_size_ + last_size_ / 8, size_t{64}});
  if (buffer_ == nullptr) {
    auto made = arrow::AllocateResizableBuffer(static_cast<int64_t>(wanted));
    TARN_CHECK(made.ok());
    buffer_ = std::shared_ptr<arrow::ResizableBuffer>(std::move(made).ValueUnsafe());
  } else {
    TARN_CHECK(buffer_->Resize(static_cast<int64_t>(wanted), false).ok());
  }
  data_ = buffer_->mutable_data();
  capacity_ = wanted;
}

std::shared_ptr<arrow::Buffer> GrowBuffer::Take() {
  if (buffer_ == nullptr) {
    Grow(64);
  }
  TARN_CHECK(buffer_->Resize(static_cast<int64_t>(size_), false).ok());
  last_size_ = size_;
  size_ = 0;
  capacity_ = 0;
  data_ = nullptr;
  return std::exchange(buffer_, nullptr);
}

std::string FoldCase(std::string_view name) {
  std::string folded(name);
  for (char& c : folded) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return folded;
}

void ColumnNode::PushNull() {
  if (!has_nulls) {
    has_nulls = true;
    valid.Resize(static_cast<size_t>(length));
    if (length > 0) {
      memset(valid.As<uint8_t>(), 1, static_cast<size_t>(length));
    }
  }
  valid.Push<uint8_t>(0);
  const size_t width = Width(kind);
  if (width > 0) {
    values.Resize(values.size() + width);
    memset(values.As<uint8_t>() + values.size() - width, 0, width);
  } else if (HasOffsets(kind)) {
    offsets.Push(offsets.As<int32_t>()[length]);
  }
  ++length;
}

void ColumnNode::PushList() {
  const int64_t end = children[0]->length;
  if (end > INT32_MAX) {
    overflow = true;
    offsets.Push(offsets.As<int32_t>()[length]);
  } else {
    offsets.Push(static_cast<int32_t>(end));
  }
  MarkValid();
}

void ColumnNode::Truncate(int64_t rows) {
  if (raw != nullptr) {
    raw->Truncate(rows);
  }
  if (present.size() > static_cast<size_t>(rows)) {
    present.resize(static_cast<size_t>(rows));
  }
  if (length <= rows) {
    return;
  }
  length = rows;
  if (has_nulls) {
    valid.Resize(static_cast<size_t>(rows));
  }
  const auto count = static_cast<size_t>(rows);
  if (HasOffsets(kind)) {
    offsets.Resize((count + 1) * sizeof(int32_t));
    const int32_t end = offsets.As<int32_t>()[count];
    if (kind == ColumnKind::kString || kind == ColumnKind::kBinary) {
      bytes.Resize(static_cast<size_t>(end));
    } else {
      for (auto& child : children) {
        child->Truncate(end);
      }
    }
  } else if (kind == ColumnKind::kStruct) {
    for (auto& child : children) {
      child->Truncate(rows);
    }
  } else {
    values.Resize(count * Width(kind));
  }
}

void ColumnNode::Adopt(ColumnKind to) {
  TARN_CHECK(kind == ColumnKind::kUntyped);
  kind = to;
  if (HasOffsets(to)) {
    offsets.Resize((static_cast<size_t>(length) + 1) * sizeof(int32_t));
    memset(offsets.As<uint8_t>(), 0, offsets.size());
    const size_t child_count = to == ColumnKind::kList ? 1 : to == ColumnKind::kMap ? 2 : 0;
    while (children.size() < child_count) {
      children.push_back(std::make_unique<ColumnNode>());
      children.back()->name = to == ColumnKind::kList ? "element"
                              : children.size() == 1  ? "key"
                                                      : "value";
    }
  } else {
    values.Resize(static_cast<size_t>(length) * Width(to));
    if (values.size() > 0) {
      memset(values.As<uint8_t>(), 0, values.size());
    }
  }
}

void ColumnNode::ConvertToString() {
  GrowBuffer text_bytes;
  GrowBuffer text_offsets;
  text_offsets.Push<int32_t>(0);
  for (int64_t row = 0; row < length; ++row) {
    if (IsValid(*this, row)) {
      const std::string text = TextOf(*this, row);
      overflow = overflow || text_bytes.size() + text.size() > INT32_MAX;
      if (!overflow) {
        text_bytes.PushBytes(text.data(), text.size());
      }
    }
    text_offsets.Push(static_cast<int32_t>(text_bytes.size()));
  }
  values = {};
  bytes = std::move(text_bytes);
  offsets = std::move(text_offsets);
  kind = ColumnKind::kString;
  precision = 0;
  scale = 0;
}

void ColumnNode::ConvertToDouble() {
  const int digits = IntegerDigits();
  Rebuild<double>(*this, ColumnKind::kDouble, [](const Cell& cell) {
    return cell.kind == ColumnKind::kFloat ? cell.real : static_cast<double>(cell.integer);
  });
  integer_digits = digits;
}

void ColumnNode::ConvertToLong() {
  Rebuild<int64_t>(*this, ColumnKind::kLong, [](const Cell& cell) { return cell.integer; });
}

void ColumnNode::ConvertToDecimal(int to_precision, int to_scale) {
  const int digits = IntegerDigits();
  Rebuild<Int128>(*this, ColumnKind::kDecimal, [&](const Cell& cell) -> Int128 {
    switch (cell.kind) {
      case ColumnKind::kDecimal:
        return cell.decimal * PowerOfTen(to_scale - cell.scale);
      case ColumnKind::kFloat:
      case ColumnKind::kDouble: {
        const ExactDecimal exact =
            ReadDecimal(cell.kind == ColumnKind::kFloat ? FormatFloat(static_cast<float>(cell.real))
                                                        : FormatDouble(cell.real));
        // ".0" is how integers print.
        return exact.scale > to_scale ? exact.unscaled / PowerOfTen(exact.scale - to_scale)
                                      : exact.unscaled * PowerOfTen(to_scale - exact.scale);
      }
      default:
        return static_cast<Int128>(cell.integer) * PowerOfTen(to_scale);
    }
  });
  integer_digits = digits;
  precision = to_precision;
  scale = to_scale;
}

void ColumnNode::ClearValues() {
  integer_digits = IntegerDigits();
  exact_in_double = ExactInDouble();
  integer_max = 0;
  real_max = 0;
  length = 0;
  has_nulls = false;
  valid.Resize(0);
  values.Resize(0);
  bytes.Resize(0);
  offsets.Resize(0);
  if (HasOffsets(kind)) {
    offsets.Push<int32_t>(0);
  }
  for (auto& child : children) {
    child->ClearValues();
  }
  if (raw != nullptr) {
    raw->ClearValues();
  }
  present.clear();
}

void ColumnNode::Reset() {
  ColumnNode fresh;
  fresh.name = std::move(name);
  fresh.raw = std::move(raw);
  fresh.present = std::move(present);
  fresh.stated_types = stated_types;
  *this = std::move(fresh);
}

int ColumnNode::IntegerDigits() const {
  int digits = integer_digits;
  if (integer_max > 0) {
    digits = std::max(digits, DigitCount(integer_max));
  }
  if (real_max >= 1) {
    digits = std::max(digits, ReadDecimal(FormatDouble(real_max)).integer_digits);
  }
  return digits;
}

bool ColumnNode::ExactInDouble() const {
  return exact_in_double && integer_max <= kDoubleIntegerMax;
}

ColumnNode* ColumnNode::FindMember(std::string_view member_name) {
  const auto exact = spelling_index.find(member_name);
  if (exact != spelling_index.end()) {
    return spellings[exact->second].node;
  }
  const auto found = folded.find(FoldCase(member_name));
  return found == folded.end() ? nullptr : found->second;
}

ColumnNode* ColumnNode::AddMember(std::string_view spelled, std::string_view member_name,
                                  size_t limit) {
  ColumnNode*& slot = folded[FoldCase(member_name)];
  if (slot == nullptr) {
    if (children.size() >= limit) {
      folded.erase(FoldCase(member_name));
      return nullptr;
    }
    children.push_back(std::make_unique<ColumnNode>());
    slot = children.back().get();
    slot->name = member_name;
  }
  // Spellings beyond this many are found by their folded name.
  if (spellings.size() < 4 * limit && !spelling_index.contains(spelled)) {
    auto owner = std::make_unique<std::string>(spelled);
    spellings.push_back({*owner, slot, std::move(owner)});
    spelling_index.emplace(spellings.back().text, static_cast<uint32_t>(spellings.size() - 1));
  }
  return slot;
}

void ColumnNode::RemoveMembers(size_t count) {
  if (children.size() <= count) {
    return;
  }
  std::unordered_set<const ColumnNode*> removed;
  for (size_t i = count; i < children.size(); ++i) {
    folded.erase(FoldCase(children[i]->name));
    removed.insert(children[i].get());
  }
  spelling_index.clear();
  std::erase_if(spellings,
                [&](const Spelling& spelling) { return removed.contains(spelling.node); });
  children.resize(count);
  for (size_t i = 0; i < spellings.size(); ++i) {
    spelling_index.emplace(spellings[i].text, static_cast<uint32_t>(i));
  }
}

std::string TextOf(const Cell& cell) {
  switch (cell.kind) {
    case ColumnKind::kBoolean:
      return cell.integer != 0 ? "true" : "false";
    case ColumnKind::kFloat:
      return FormatFloat(static_cast<float>(cell.real));
    case ColumnKind::kDouble:
      return FormatDouble(cell.real);
    case ColumnKind::kDecimal:
      return FormatDecimal(cell.decimal, cell.scale);
    case ColumnKind::kDate:
      return FormatDate(cell.integer);
    case ColumnKind::kTime:
      return FormatTime(cell.integer);
    case ColumnKind::kWallClock:
      return FormatTimestamp(cell.integer, false);
    case ColumnKind::kInstant:
      return FormatTimestamp(cell.integer, true);
    case ColumnKind::kString:
      return std::string(cell.bytes);
    case ColumnKind::kBinary:
      return EncodeBase64(cell.bytes);
    case ColumnKind::kUuid:
      return FormatUuid(cell.bytes);
    default:
      return std::to_string(cell.integer);
  }
}

std::string TextOf(const ColumnNode& node, int64_t row) { return TextOf(CellAt(node, row)); }

int64_t SizeBytes(const ColumnNode& node) {
  auto size = static_cast<int64_t>(node.valid.size() + node.values.size() + node.offsets.size() +
                                   node.bytes.size());
  for (const auto& child : node.children) {
    size += SizeBytes(*child);
  }
  return size + (node.raw == nullptr ? 0 : SizeBytes(*node.raw));
}

}  // namespace tarn::format
