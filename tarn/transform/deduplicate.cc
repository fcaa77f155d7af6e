#include "tarn/transform/deduplicate.h"

#include <algorithm>

#include <arrow/api.h>

#include "tarn/base/arrow_status.h"
#include "tarn/engine/quoting.h"
#include "tarn/transform/canonical_text.h"
#include "tarn/transform/sha1_block.h"

namespace tarn::transform {
namespace {

Result<std::shared_ptr<arrow::Array>> FindColumn(const arrow::RecordBatch& batch,
                                                 const std::string& name) {
  for (int i = 0; i < batch.num_columns(); ++i) {
    if (engine::LowerCase(batch.schema()->field(i)->name()) == engine::LowerCase(name)) {
      return batch.column(i);
    }
  }
  return Status::InvalidArgument("deduplicate: there is no column \"" + name + "\"");
}

/// SHA-1 of the values of each row. Texts carry their length, so that no two rows look alike.
Result<std::vector<std::string>> HashRows(const arrow::RecordBatch& batch,
                                          const std::vector<std::string>& by) {
  std::vector<CanonicalTexts> texts;
  for (const std::string& name : by) {
    TARN_ASSIGN_OR_RETURN(const auto column, FindColumn(batch, name));
    Result<CanonicalTexts> text = MakeCanonicalTexts(*column);
    if (!text.ok()) {
      return text.status().WithContext("deduplicate: column \"" + name + "\"");
    }
    texts.push_back(*std::move(text));
  }
  if (texts.empty()) {
    return Status::InvalidArgument("deduplicate: by names no column");
  }
  std::vector<std::string> hashes;
  std::string key;
  for (size_t row = 0; row < static_cast<size_t>(batch.num_rows()); ++row) {
    key.clear();
    for (const CanonicalTexts& text : texts) {
      const auto size = static_cast<size_t>(text.offsets[row + 1] - text.offsets[row]);
      key += std::to_string(size) + ":";
      key.append(text.bytes, static_cast<size_t>(text.offsets[row]), size);
    }
    std::string digest(20, '\0');
    Sha1Short(key, reinterpret_cast<uint8_t*>(digest.data()));
    hashes.push_back(std::move(digest));
  }
  return hashes;
}

}  // namespace

Result<std::shared_ptr<arrow::Array>> Deduplicator::Keep(const arrow::RecordBatch& batch) {
  TARN_ASSIGN_OR_RETURN(const auto times, FindColumn(batch, time_column_));
  const auto micros = arrow::TimeUnit::MICRO;
  if (times->type_id() != arrow::Type::TIMESTAMP ||
      static_cast<const arrow::TimestampType&>(*times->type()).unit() != micros) {
    return Status::InvalidArgument("deduplicate: column \"" + time_column_ + "\" has the type " +
                                   times->type()->ToString() + ", needed is a timestamp");
  }
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> hashes, HashRows(batch, spec_.by));
  const auto& values = static_cast<const arrow::TimestampArray&>(*times);
  arrow::BooleanBuilder keep;
  TARN_RETURN_IF_ERROR(keep.Reserve(batch.num_rows()));
  for (int64_t row = 0; row < batch.num_rows(); ++row) {
    if (values.IsNull(row)) {
      keep.UnsafeAppend(true);
      continue;
    }
    const int64_t time = values.Value(row);
    const std::string& hash = hashes[static_cast<size_t>(row)];
    const auto known = seen_.find(hash);
    if (known != seen_.end() && time - known->second <= spec_.window.count()) {
      keep.UnsafeAppend(false);
      continue;
    }
    keep.UnsafeAppend(true);
    newest_ = std::max(newest_, time);
    seen_[hash] = time;
    by_time_.emplace(time, hash);
    Forget();
  }
  TARN_ASSIGN_OR_RETURN(auto mask, keep.Finish());
  return std::shared_ptr<arrow::Array>(std::move(mask));
}

Status Deduplicator::Learn(const arrow::RecordBatch& batch) { return StatusOf(Keep(batch)); }

void Deduplicator::Forget() {
  while (!by_time_.empty() && newest_ - by_time_.begin()->first > spec_.window.count()) {
    const auto oldest = by_time_.begin();
    const auto entry = seen_.find(oldest->second);
    // The row may have been replaced by a later one of the same values.
    if (entry != seen_.end() && entry->second == oldest->first) {
      seen_.erase(entry);
    }
    by_time_.erase(oldest);
  }
}

}  // namespace tarn::transform
