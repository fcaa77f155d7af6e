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
  /// Brings what EqualKeys reads of the row nearer. No effect on results.
  void Prefetch(int64_t row) const;

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

/// One owner thread while it grows; any thread may Find afterwards. Memory: about 32 bytes a key
/// and the batches in which keys were first seen.
///
/// Cost: a key is some three random reads of memory; the calls for many rows overlap them, which
/// makes them several times faster than one call a row once the index outgrows the caches.
class KeyIndex {
 public:
  KeyIndex();

  /// Makes room for this many keys at once.
  void Reserve(size_t keys);
  /// The slot of a row's key, a new one when it was not seen before.
  uint32_t FindOrAdd(const std::shared_ptr<const KeyBatch>& batch, int64_t row);
  /// The slot of a row's key, or kNoSlot.
  [[nodiscard]] uint32_t Find(const KeyBatch& batch, int64_t row) const;

  /// FindOrAdd and Find of each of `rows`, in order; `slots` is overwritten, as long as `rows`.
  void FindOrAddAll(const std::shared_ptr<const KeyBatch>& batch, const std::vector<int64_t>& rows,
                    std::vector<uint32_t>& slots);
  void FindAll(const KeyBatch& batch, const std::vector<int64_t>& rows,
               std::vector<uint32_t>& slots) const;

  [[nodiscard]] size_t size() const { return keys_.size(); }

 private:
  struct Key {
    uint64_t hash_prefix;
    uint32_t batch;
    uint32_t row;
  };
  struct Entry {
    uint32_t tag = 0;   // Upper half of the key's hash prefix.
    uint32_t slot = 0;  // Plus one; 0 = empty.
  };
  void Resize(size_t entries);
  void Insert(uint64_t hash_prefix, uint32_t slot);
  void Prefetch(const KeyBatch& batch, const int64_t* rows, size_t count) const;

  std::vector<std::shared_ptr<const KeyBatch>> batches_;
  std::vector<Key> keys_;     // By slot.
  std::vector<Entry> table_;  // Open addressing; a power of two.
};

}  // namespace tarn::lakehouse
