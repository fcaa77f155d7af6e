#include "tarn/lakehouse/key_index.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <arrow/api.h>
#include <arrow/util/bit_util.h>

#include "tarn/base/check.h"

namespace tarn::lakehouse {

namespace {
constexpr size_t kFirstTableSize = 1024;
// Rows whose reads of memory are under way at once.
constexpr size_t kBlockRows = 32;

uint32_t TagOf(uint64_t hash_prefix) { return static_cast<uint32_t>(hash_prefix >> 32); }
}  // namespace

Result<KeyBatch::Column> KeyBatch::ColumnOf(const arrow::Array& array) {
  Column column;
  const arrow::ArrayData& data = *array.data();
  column.validity = array.null_count() == 0 ? nullptr : array.null_bitmap_data();
  column.offset = data.offset;
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      column.kind = Kind::kBits;
      column.values = data.buffers[1]->data();
      return column;
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      column.kind = Kind::kText;
      column.offsets = data.GetValues<int32_t>(1);
      column.values = data.buffers[2] == nullptr ? nullptr : data.buffers[2]->data();
      return column;
    default:
      break;
  }
  const auto* fixed = dynamic_cast<const arrow::FixedWidthType*>(array.type().get());
  if (fixed == nullptr || fixed->bit_width() % 8 != 0) {
    return Status::Internal("a column of type " + array.type()->ToString() + " cannot be a key");
  }
  column.width_bytes = fixed->bit_width() / 8;
  column.values = data.buffers[1]->data() + data.offset * column.width_bytes;
  return column;
}

Result<std::shared_ptr<const KeyBatch>> KeyBatch::Make(
    std::shared_ptr<arrow::Array> hash, std::vector<std::shared_ptr<arrow::Array>> columns) {
  auto batch = std::make_shared<KeyBatch>();
  const bool right = hash->type_id() == arrow::Type::FIXED_SIZE_BINARY && hash->null_count() == 0 &&
                     static_cast<const arrow::FixedSizeBinaryArray&>(*hash).byte_width() == 20;
  if (!right) {
    return Status::Corruption("hdr__key_hash is not twenty bytes in every row");
  }
  batch->hashes_ = static_cast<const arrow::FixedSizeBinaryArray&>(*hash).raw_values();
  for (const std::shared_ptr<arrow::Array>& array : columns) {
    TARN_ASSIGN_OR_RETURN(const Column column, ColumnOf(*array));
    batch->columns_.push_back(column);
  }
  batch->hash_array_ = std::move(hash);
  batch->arrays_ = std::move(columns);
  return std::shared_ptr<const KeyBatch>(std::move(batch));
}

uint64_t KeyBatch::HashPrefix(int64_t row) const {
  uint64_t prefix = 0;
  std::memcpy(&prefix, Hash(row), sizeof(prefix));
  return prefix;
}

bool KeyBatch::EqualValues(const Column& a, int64_t row, const Column& b, int64_t other_row) {
  const bool null_a = a.validity != nullptr && !arrow::bit_util::GetBit(a.validity, a.offset + row);
  const bool null_b =
      b.validity != nullptr && !arrow::bit_util::GetBit(b.validity, b.offset + other_row);
  if (null_a || null_b) {
    return null_a && null_b;
  }
  switch (a.kind) {
    case Kind::kFixed: {
      const auto width = static_cast<size_t>(a.width_bytes);
      return std::memcmp(a.values + static_cast<size_t>(row) * width,
                         b.values + static_cast<size_t>(other_row) * width, width) == 0;
    }
    case Kind::kBits:
      return arrow::bit_util::GetBit(a.values, a.offset + row) ==
             arrow::bit_util::GetBit(b.values, b.offset + other_row);
    case Kind::kText:
      break;
  }
  const int32_t size = a.offsets[row + 1] - a.offsets[row];
  const int32_t other_size = b.offsets[other_row + 1] - b.offsets[other_row];
  return size == other_size &&
         (size == 0 || std::memcmp(a.values + a.offsets[row], b.values + b.offsets[other_row],
                                   static_cast<size_t>(size)) == 0);
}

void KeyBatch::Prefetch(int64_t row) const {
  for (const Column& column : columns_) {
    switch (column.kind) {
      case Kind::kFixed:
        __builtin_prefetch(column.values + row * column.width_bytes);
        break;
      case Kind::kBits:
        __builtin_prefetch(column.values + (column.offset + row) / 8);
        break;
      case Kind::kText:
        __builtin_prefetch(column.offsets + row);
        break;
    }
  }
}

// Equal keys have equal hashes, so the key columns alone decide.
bool KeyBatch::EqualKeys(int64_t row, const KeyBatch& other, int64_t other_row) const {
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!EqualValues(columns_[i], row, other.columns_[i], other_row)) {
      return false;
    }
  }
  return true;
}

KeyIndex::KeyIndex() : table_(kFirstTableSize) {}

void KeyIndex::Reserve(size_t keys) {
  keys_.reserve(keys);
  size_t entries = table_.size();
  while (entries < keys * 2) {
    entries *= 2;
  }
  if (entries > table_.size()) {
    Resize(entries);
  }
}

uint32_t KeyIndex::Find(const KeyBatch& batch, int64_t row) const {
  const uint64_t prefix = batch.HashPrefix(row);
  const size_t mask = table_.size() - 1;
  for (size_t at = prefix & mask;; at = (at + 1) & mask) {
    const Entry& entry = table_[at];
    if (entry.slot == 0) {
      return kNoSlot;
    }
    if (entry.tag != TagOf(prefix)) {
      continue;
    }
    const Key& key = keys_[entry.slot - 1];
    if (key.hash_prefix == prefix && batch.EqualKeys(row, *batches_[key.batch], key.row)) {
      return entry.slot - 1;
    }
  }
}

uint32_t KeyIndex::FindOrAdd(const std::shared_ptr<const KeyBatch>& batch, int64_t row) {
  const uint32_t found = Find(*batch, row);
  if (found != kNoSlot) {
    return found;
  }
  if (batches_.empty() || batches_.back() != batch) {
    batches_.push_back(batch);
  }
  TARN_CHECK(keys_.size() < kNoSlot - 1);
  const auto slot = static_cast<uint32_t>(keys_.size());
  keys_.push_back({batch->HashPrefix(row), static_cast<uint32_t>(batches_.size() - 1),
                   static_cast<uint32_t>(row)});
  if (keys_.size() * 2 > table_.size()) {
    Resize(table_.size() * 2);
  } else {
    Insert(keys_.back().hash_prefix, slot);
  }
  return slot;
}

// Each loop starts reads that the next one needs.
void KeyIndex::Prefetch(const KeyBatch& batch, const int64_t* rows, size_t count) const {
  const size_t mask = table_.size() - 1;
  std::array<const Key*, kBlockRows> keys{};
  for (size_t i = 0; i < count; ++i) {
    __builtin_prefetch(&table_[batch.HashPrefix(rows[i]) & mask]);
  }
  for (size_t i = 0; i < count; ++i) {
    const uint64_t prefix = batch.HashPrefix(rows[i]);
    const Entry& entry = table_[prefix & mask];
    if (entry.slot != 0 && entry.tag == TagOf(prefix)) {
      keys[i] = &keys_[entry.slot - 1];
      __builtin_prefetch(keys[i]);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (keys[i] != nullptr) {
      batches_[keys[i]->batch]->Prefetch(keys[i]->row);
    }
  }
}

void KeyIndex::FindOrAddAll(const std::shared_ptr<const KeyBatch>& batch,
                            const std::vector<int64_t>& rows, std::vector<uint32_t>& slots) {
  slots.resize(rows.size());
  for (size_t start = 0; start < rows.size(); start += kBlockRows) {
    const size_t count = std::min(kBlockRows, rows.size() - start);
    Prefetch(*batch, rows.data() + start, count);
    for (size_t i = start; i < start + count; ++i) {
      slots[i] = FindOrAdd(batch, rows[i]);
    }
  }
}

void KeyIndex::FindAll(const KeyBatch& batch, const std::vector<int64_t>& rows,
                       std::vector<uint32_t>& slots) const {
  slots.resize(rows.size());
  for (size_t start = 0; start < rows.size(); start += kBlockRows) {
    const size_t count = std::min(kBlockRows, rows.size() - start);
    Prefetch(batch, rows.data() + start, count);
    for (size_t i = start; i < start + count; ++i) {
      slots[i] = Find(batch, rows[i]);
    }
  }
}

void KeyIndex::Insert(uint64_t hash_prefix, uint32_t slot) {
  const size_t mask = table_.size() - 1;
  size_t at = hash_prefix & mask;
  while (table_[at].slot != 0) {
    at = (at + 1) & mask;
  }
  table_[at] = {TagOf(hash_prefix), slot + 1};
}

void KeyIndex::Resize(size_t entries) {
  table_.assign(entries, Entry{});
  for (size_t slot = 0; slot < keys_.size(); ++slot) {
    Insert(keys_[slot].hash_prefix, static_cast<uint32_t>(slot));
  }
}

}  // namespace tarn::lakehouse
