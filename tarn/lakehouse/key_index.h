// KeyIndex: the distinct keys of a set of changes, found by hash and confirmed on the key itself.
//
// hdr__key_hash narrows the search; two keys are the same only when their key columns are equal, so
// a collision of the hash cannot merge two rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"

namespace tarn::lakehouse {

inline constexpr uint32_t kNoSlot = UINT32_MAX;

/// The key columns and hashes of one batch, ready for comparing row by row. Keeps the arrays alive.
class KeyBatch {
 public:
  /// `hash`: fixed_size_binary(20) without NULL; `columns`: in key order.
  /// Errors: kInternal for a column type that cannot be a key.
  static Result<std::shared_ptr<const KeyBatch>> Make(
      std::shared_ptr<arrow::Array> hash, std::vector<std::shared_ptr<arrow::Array>> columns);
  KeyBatch() = default;

  /// First eight bytes of the row's hash.
  [[nodiscard]] uint64_t HashPrefix(int64_t row) const;
  [[nodiscard]] const uint8_t* Hash(int64_t row) const { return hashes_ + row * 20; }
  /// True when both keys are equal, NULL equal to NULL. Both batches have the same column types.
  [[nodiscard]] bool EqualKeys(int64_t row, const KeyBatch& other, int64_t other_row) const;

 private:
  enum class Kind : uint8_t { kFixed, kBits, kText };
  struct Column {
    Kind kind = Kind::kFixed;
    int32_t width_bytes = 0;           // kFixed.
    const uint8_t* values = nullptr;   // kText: the characters.
    const int32_t* offsets = nullptr;  // kText; from the array's first row.
    const uint8_t* validity = nullptr;
    int64_t offset = 0;  // Of the array in validity and kBits.
  };
  static Result<Column> ColumnOf(const arrow::Array& array);
  static bool EqualValues(const Column& a, int64_t row, const Column& b, int64_t other_row);

  std::shared_ptr<arrow::Array> hash_array_;
  std::vector<std::shared_ptr<arrow::Array>> arrays_;
  const uint8_t* hashes_ = nullptr;
  std::vector<Column> columns_;
};

/// One owner thread while it grows; any thread may Find afterwards. Memory: about 24 bytes a key
/// and the batches in which keys were first seen.
class KeyIndex {
 public:
  KeyIndex();

  /// The slot of a row's key, a new one when it was not seen before.
  uint32_t FindOrAdd(const std::shared_ptr<const KeyBatch>& batch, int64_t row);
  /// The slot of a row's key, or kNoSlot.
  [[nodiscard]] uint32_t Find(const KeyBatch& batch, int64_t row) const;
  [[nodiscard]] size_t size() const { return keys_.size(); }

 private:
  struct Key {
    uint64_t hash_prefix;
    uint32_t batch;
    uint32_t row;
  };
  void Grow();

  std::vector<std::shared_ptr<const KeyBatch>> batches_;
  std::vector<Key> keys_;        // By slot.
  std::vector<uint32_t> table_;  // Open addressing: slot + 1, 0 = empty; a power of two.
};

}  // namespace tarn::lakehouse
