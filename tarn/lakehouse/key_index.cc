#include "tarn/lakehouse/key_index.h"

#include <algorithm>
#include <cstring>

#include <arrow/api.h>
#include <arrow/util/bit_util.h>

#include "tarn/base/check.h"

namespace tarn::lakehouse {

namespace {
constexpr size_t kFirstTableSize = 1024;
}

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

bool KeyBatch::EqualKeys(int64_t row, const KeyBatch& other, int64_t other_row) const {
  if (std::memcmp(Hash(row), other.Hash(other_row), 20) != 0) {
    return false;
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!EqualValues(columns_[i], row, other.columns_[i], other_row)) {
      return false;
    }
  }
  return true;
}

KeyIndex::KeyIndex() : table_(kFirstTableSize, 0) {}

uint32_t KeyIndex::Find(const KeyBatch& batch, int64_t row) const {
  const uint64_t prefix = batch.HashPrefix(row);
  const size_t mask = table_.size() - 1;
  for (size_t at = prefix & mask;; at = (at + 1) & mask) {
    const uint32_t entry = table_[at];
    if (entry == 0) {
      return kNoSlot;
    }
    const Key& key = keys_[entry - 1];
    if (key.hash_prefix == prefix && batch.EqualKeys(row, *batches_[key.batch], key.row)) {
      return entry - 1;
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
  keys_.push_back({batch->HashPrefix(row), static_cast<uint32_t>(batches_.size() - 1),
                   static_cast<uint32_t>(row)});
  if (keys_.size() * 2 > table_.size()) {
    Grow();
    return static_cast<uint32_t>(keys_.size() - 1);
  }
  const size_t mask = table_.size() - 1;
  size_t at = keys_.back().hash_prefix & mask;
  while (table_[at] != 0) {
    at = (at + 1) & mask;
  }
  table_[at] = static_cast<uint32_t>(keys_.size());
  return static_cast<uint32_t>(keys_.size() - 1);
}

void KeyIndex::Grow() {
  table_.assign(table_.size() * 2, 0);
  const size_t mask = table_.size() - 1;
  for (size_t slot = 0; slot < keys_.size(); ++slot) {
    size_t at = keys_[slot].hash_prefix & mask;
    while (table_[at] != 0) {
      at = (at + 1) & mask;
    }
    table_[at] = static_cast<uint32_t>(slot + 1);
  }
}

}  // namespace tarn::lakehouse
