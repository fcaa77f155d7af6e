// ColumnNode: the values of one column (or nested field) of the batch under construction, in plain
// growing buffers that become Arrow arrays without a copy. Used by JsonColumns and its readers.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/format/column_set.h"
#include "tarn/format/exact_number.h"

namespace tarn::format {

enum class ColumnKind : uint8_t {
  kUntyped,
  kBoolean,
  kInteger,
  kLong,
  kFloat,
  kDouble,
  kDecimal,
  kString,
  kBinary,
  kDate,
  kTime,
  kWallClock,
  kInstant,
  kUuid,
  kStruct,
  kList,
  kMap
};

/// Copies `size` bytes; short ones without a call.
inline void CopyBytes(uint8_t* to, const char* from, size_t size) {
  if (size > 32) {
    memcpy(to, from, size);
  } else if (size >= 16) {
    // Two halves that may overlap.
    memcpy(to, from, 16);
    memcpy(to + size - 16, from + size - 16, 16);
  } else if (size >= 8) {
    memcpy(to, from, 8);
    memcpy(to + size - 8, from + size - 8, 8);
  } else if (size >= 4) {
    memcpy(to, from, 4);
    memcpy(to + size - 4, from + size - 4, 4);
  } else {
    for (size_t i = 0; i < size; ++i) {
      to[i] = static_cast<uint8_t>(from[i]);
    }
  }
}

/// Compares `size` bytes; short ones without a call.
inline bool EqualBytes(const char* a, const char* b, size_t size) {
  const auto differ = [&](auto word, size_t at) {
    decltype(word) left;
    decltype(word) right;
    memcpy(&left, a + at, sizeof word);
    memcpy(&right, b + at, sizeof word);
    return left ^ right;
  };
  if (size > 16) {
    return memcmp(a, b, size) == 0;
  }
  if (size >= 8) {
    return (differ(uint64_t{}, 0) | differ(uint64_t{}, size - 8)) == 0;
  }
  if (size >= 4) {
    return (differ(uint32_t{}, 0) | differ(uint32_t{}, size - 4)) == 0;
  }
  for (size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) {
      return false;
    }
  }
  return true;
}

/// Bytes that grow; the memory is an Arrow buffer.
class GrowBuffer {
 public:
  [[nodiscard]] size_t size() const { return size_; }
  void Resize(size_t size) {
    Reserve(size > size_ ? size - size_ : 0);
    size_ = size;
  }
  void Reserve(size_t more) {
    if (size_ + more > capacity_) [[unlikely]] {
      Grow(size_ + more);
    }
  }
  template <typename T>
  void Push(T value) {
    Reserve(sizeof(T));
    memcpy(data_ + size_, &value, sizeof(T));
    size_ += sizeof(T);
  }
  void PushBytes(const char* data, size_t size) {
    Reserve(size);
    CopyBytes(data_ + size_, data, size);
    size_ += size;
  }
  template <typename T>
  T* As() {
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  [[nodiscard]] const T* As() const {
    return reinterpret_cast<const T*>(data_);
  }
  /// Gives the bytes away; the buffer is empty then and remembers how much it held.
  std::shared_ptr<arrow::Buffer> Take();

 private:
  void Grow(size_t needed);

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  size_t last_size_ = 0;
  std::shared_ptr<arrow::ResizableBuffer> buffer_;
};

/// One value on its way into a column whose kind may differ.
struct Cell {
  ColumnKind kind = ColumnKind::kUntyped;  // kUntyped: NULL.
  int scale = 0;                           // kDecimal.
  int precision = 0;                       // kDecimal: 0 = 38.
  int64_t integer = 0;                     // Integers, dates, times, booleans.
  double real = 0;
  Int128 decimal = 0;
  std::string_view bytes;  // kString, kBinary, kUuid.
};

struct ColumnNode {
  std::string name;
  ColumnKind kind = ColumnKind::kUntyped;
  bool declared = false;
  int precision = 0;
  int scale = 0;

  // What decides how numbers widen, from earlier batches and from this one.
  bool exact_in_double = true;
  bool overflow = false;  // More than 2 GiB of bytes or elements.
  int integer_digits = 0;
  int fraction_digits = 0;
  uint64_t integer_max = 0;  // Largest |value| of this batch in a kLong column.
  double real_max = 0;       // The same in a kDouble column.

  int64_t length = 0;
  bool has_nulls = false;
  GrowBuffer valid;    // A byte per value, only while has_nulls.
  GrowBuffer values;   // Fixed-width values; booleans take a byte.
  GrowBuffer offsets;  // kString, kBinary, kList, kMap: int32, one more than values.
  GrowBuffer bytes;    // kString, kBinary.

  // kStruct: members; kList: [element]; kMap: [key, value]. Members may be shorter than the struct:
  // what is missing is NULL.
  std::vector<std::unique_ptr<ColumnNode>> children;
  // kStruct: every spelling of a member name met so far, in order, and the member it means.
  struct Spelling {
    std::string_view text;  // Of `owner`.
    ColumnNode* node = nullptr;
    std::unique_ptr<std::string> owner;
  };
  std::vector<Spelling> spellings;
  std::unordered_map<std::string_view, uint32_t> spelling_index;
  std::unordered_map<std::string, ColumnNode*> folded;  // By lower-case name.

  // Top-level columns of nested values and of times that were inferred keep the text of each value
  // in `raw`, to start over with. A stale column is a string column of such texts; `raw` is then
  // the empty typed column that they are read into at the end of the batch.
  std::unique_ptr<ColumnNode> raw;
  bool stale = false;
  bool keeps_raw = false;        // Times inferred from text.
  bool stated_types = false;     // Holds values read by a record's own schema.
  std::vector<uint8_t> present;  // Top level, when absent columns are tracked: a byte per row.

  // ---- appending; the kind must be right ----
  void MarkValid() {
    if (has_nulls) [[unlikely]] {
      valid.Push<uint8_t>(1);
    }
    ++length;
  }
  template <typename T>
  void PushValue(T value) {
    values.Push(value);
    MarkValid();
  }
  void PushBytes(std::string_view text) {
    if (bytes.size() + text.size() > INT32_MAX) [[unlikely]] {
      overflow = true;
      text = {};
    }
    bytes.PushBytes(text.data(), text.size());
    offsets.Push(static_cast<int32_t>(bytes.size()));
    MarkValid();
  }
  void PushNull();
  /// Ends a list or map value: its elements are in the child already.
  void PushList();
  /// Appends NULLs up to `rows` values.
  void FillNulls(int64_t rows) {
    while (length < rows) {
      PushNull();
    }
  }
  /// Drops values from `rows` on.
  void Truncate(int64_t rows);

  // ---- kinds ----
  /// Gives an untyped column its kind; earlier values stay NULL.
  void Adopt(ColumnKind to);
  /// Turns values of a fixed-width scalar kind into text. Numbers as they print, booleans true and
  /// false, times as ISO-8601, bytes as Base64.
  void ConvertToString();
  void ConvertToDouble();  // From kLong, kInteger, kFloat.
  void ConvertToLong();    // From kInteger.
  /// From kLong, kInteger, kDouble, kFloat or kDecimal of a smaller scale; the digits must fit.
  void ConvertToDecimal(int to_precision, int to_scale);
  /// Takes all values away, keeps the kinds.
  void ClearValues();
  /// Forgets kind, values and children; name and raw text stay.
  void Reset();

  /// Digits before and behind the point that the values so far need.
  [[nodiscard]] int IntegerDigits() const;
  [[nodiscard]] bool ExactInDouble() const;

  // ---- struct members ----
  /// The member of that name, by any spelling; makes none.
  ColumnNode* FindMember(std::string_view member_name);
  /// Finds or makes the member; spellings that differ in ASCII case only are one member. Null when
  /// `limit` members are there already.
  ColumnNode* AddMember(std::string_view spelled, std::string_view member_name, size_t limit);
  /// Removes members from index `count` on.
  void RemoveMembers(size_t count);
};

ColumnKind KindOf(const FieldType& type);
/// State of a column for the next batch, and back.
ColumnState StateOf(const ColumnNode& node);
std::unique_ptr<ColumnNode> NodeOf(const ColumnState& state);
/// The field as the batch shows it; untyped columns are STRING.
Field FieldOf(const ColumnNode& node);

/// Moves the values into an Arrow array of `rows` values and leaves the column empty.
std::shared_ptr<arrow::Array> TakeArray(ColumnNode& node, int64_t rows);
/// Bytes of all buffers.
int64_t SizeBytes(const ColumnNode& node);

/// Value `row` of a string or binary column.
inline std::string_view TextView(const ColumnNode& node, int64_t row) {
  const int32_t* offsets = node.offsets.As<int32_t>();
  return {node.bytes.As<char>() + offsets[row],
          static_cast<size_t>(offsets[row + 1] - offsets[row])};
}
/// Text of value `row` as ConvertToString writes it.
std::string TextOf(const ColumnNode& node, int64_t row);
std::string TextOf(const Cell& cell);

/// Lower-case ASCII.
std::string FoldCase(std::string_view name);

}  // namespace tarn::format
