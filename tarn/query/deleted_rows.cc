#include "tarn/query/deleted_rows.h"

#include <algorithm>
#include <bit>

#include "tarn/base/check.h"
#include "tarn/iceberg/deletes/row_deletes.h"

namespace tarn::query {

namespace {

using iceberg::FileScanTask;
using iceberg::Positions;

constexpr int kBlockBits = 16;
constexpr size_t kFewMax = 4096;  // Two bytes each: as much as the bits of the block.
constexpr size_t kWords = (size_t{1} << kBlockBits) / 64;

Result<std::vector<FileScanTask>> PlanAll(const iceberg::OperationContext& context) {
  return iceberg::PlanScan(context.store, context.cache, context.metadata,
                           context.metadata.current_snapshot_id, iceberg::Expression::True(), {});
}

// Deletions that are written together.
class Writer {
 public:
  Writer(const iceberg::OperationContext& context, UuidGenerator& uuids,
         const RemovalOptions& options, iceberg::WrittenRowDeletes& written)
      : context_(context), uuids_(uuids), options_(options), written_(written) {}

  Status Add(FileScanTask task, const RowSet& rows) {
    if (count_ > 0 && count_ + rows.size() > options_.positions_max) {
      TARN_RETURN_IF_ERROR(Write());
    }
    count_ += rows.size();
    deletions_.push_back({.task = std::move(task), .positions = rows.ToPositions()});
    return Status::Ok();
  }

  Status Write() {
    TARN_ASSIGN_OR_RETURN(
        iceberg::WrittenRowDeletes some,
        iceberg::WriteRowDeletes(context_.store, context_.metadata, uuids_, deletions_));
    const auto append = [](auto& to, auto& from) {
      to.insert(to.end(), std::make_move_iterator(from.begin()),
                std::make_move_iterator(from.end()));
    };
    append(written_.added, some.added);
    append(written_.removed, some.removed);
    append(written_.data_files, some.data_files);
    written_.deleted_rows += some.deleted_rows;
    deletions_.clear();
    count_ = 0;
    return Status::Ok();
  }

 private:
  const iceberg::OperationContext& context_;
  UuidGenerator& uuids_;
  const RemovalOptions& options_;
  iceberg::WrittenRowDeletes& written_;
  std::vector<iceberg::RowDeletion> deletions_;
  int64_t count_ = 0;
};

}  // namespace

bool RowSet::Add(int64_t row) {
  TARN_CHECK(row >= 0);
  const auto block = static_cast<size_t>(row >> kBlockBits);
  if (block >= blocks_.size()) {
    blocks_.resize(block + 1);
  }
  const bool added = AddTo(blocks_[block], static_cast<uint16_t>(row));
  size_ += added ? 1 : 0;
  return added;
}

bool RowSet::AddTo(Block& block, uint16_t row) {
  if (block.bits.empty()) {
    const auto at = std::lower_bound(block.few.begin(), block.few.end(), row);
    if (at != block.few.end() && *at == row) {
      return false;
    }
    if (block.few.size() < kFewMax) {
      block.few.insert(at, row);
      return true;
    }
    block.bits.resize(kWords);
    for (const uint16_t known : block.few) {
      block.bits[known / 64] |= uint64_t{1} << (known % 64);
    }
    block.few = std::vector<uint16_t>();
  }
  uint64_t& word = block.bits[row / 64];
  const uint64_t bit = uint64_t{1} << (row % 64);
  const bool added = (word & bit) == 0;
  word |= bit;
  return added;
}

Positions RowSet::ToPositions() const {
  Positions positions;
  positions.reserve(static_cast<size_t>(size_));
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const int64_t first = static_cast<int64_t>(i) << kBlockBits;
    for (const uint16_t row : blocks_[i].few) {
      positions.push_back(first + row);
    }
    for (size_t word = 0; word < blocks_[i].bits.size(); ++word) {
      for (uint64_t bits = blocks_[i].bits[word]; bits != 0; bits &= bits - 1) {
        positions.push_back(first + static_cast<int64_t>(word) * 64 + std::countr_zero(bits));
      }
    }
  }
  return positions;
}

uint64_t RowSet::memory_bytes() const {
  uint64_t bytes = blocks_.capacity() * sizeof(Block);
  for (const Block& block : blocks_) {
    bytes += block.few.capacity() * sizeof(uint16_t) + block.bits.capacity() * sizeof(uint64_t);
  }
  return bytes;
}

bool DeletedRows::Add(std::string_view file, int64_t row) {
  if (last_ == nullptr || last_->first != file) {
    auto found = files_.find(file);
    if (found == files_.end()) {
      found = files_.emplace(std::string(file), RowSet()).first;
    }
    last_ = &*found;
  }
  const bool added = last_->second.Add(row);
  size_ += added ? 1 : 0;
  return added;
}

const RowSet* DeletedRows::Find(const std::string& file) const {
  const auto found = files_.find(file);
  return found == files_.end() ? nullptr : &found->second;
}

Status RemoveRows(const iceberg::OperationContext& context, UuidGenerator& uuids,
                  const DeletedRows& rows, const RemovalOptions& options,
                  iceberg::RowDelta& delta) {
  if (rows.size() == 0) {
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(std::vector<FileScanTask> tasks, PlanAll(context));
  Writer writer(context, uuids, options, delta.deletes);
  for (FileScanTask& task : tasks) {
    const RowSet* found = rows.Find(task.file.file_path);
    if (found == nullptr) {
      continue;
    }
    TARN_ASSIGN_OR_RETURN(const Positions before,
                          iceberg::ReadDeletedPositions(context.store, task));
    if (static_cast<int64_t>(before.size()) + found->size() == task.file.record_count) {
      delta.removed_files.push_back(task.file);
    } else {
      TARN_RETURN_IF_ERROR(writer.Add(std::move(task), *found));
    }
  }
  return writer.Write();
}

Result<std::optional<int64_t>> RemoveAllFiles(const iceberg::OperationContext& context,
                                              iceberg::RowDelta& delta) {
  TARN_ASSIGN_OR_RETURN(const std::vector<FileScanTask> tasks, PlanAll(context));
  int64_t live = 0;
  for (const FileScanTask& task : tasks) {
    for (const iceberg::DeleteFilePtr& deletes : task.deletes) {
      if (deletes->file.content == iceberg::DataFileContent::kEqualityDeletes) {
        return std::optional<int64_t>();
      }
    }
    live += task.file.record_count;
  }
  TARN_RETURN_IF_ERROR(iceberg::VisitDeletedPositions(
      context.store, tasks, [&](size_t /*task*/, const Positions& positions) {
        live -= static_cast<int64_t>(positions.size());
        return Status::Ok();
      }));
  for (const FileScanTask& task : tasks) {
    delta.removed_files.push_back(task.file);
  }
  return std::optional(live);
}

}  // namespace tarn::query
