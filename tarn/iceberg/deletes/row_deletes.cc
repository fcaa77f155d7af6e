#include "tarn/iceberg/deletes/row_deletes.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "tarn/iceberg/delete_index.h"
#include "tarn/iceberg/deletes/deletion_vector.h"
#include "tarn/iceberg/snapshot_update.h"

namespace tarn::iceberg {
namespace {

// The new state of one data file's position deletes.
struct Merged {
  const DataFile* file = nullptr;
  Positions positions;  // All that its own delete file must hold.
};

// Adds `deletion` to what is there. Nothing when it deletes nothing new.
Result<std::optional<Merged>> MergeDeletion(storage::ObjectStore& store,
                                            const RowDeletion& deletion, bool vectors,
                                            WrittenRowDeletes& written) {
  const DataFile& file = deletion.task.file;
  Positions wanted = deletion.positions;
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  if (!wanted.empty() && (wanted.front() < 0 || wanted.back() >= file.record_count)) {
    return Status::InvalidArgument(
        fmt::format("{}: row {} is not one of its {} rows", file.file_path,
                    wanted.front() < 0 ? wanted.front() : wanted.back(), file.record_count));
  }
  TARN_ASSIGN_OR_RETURN(const Positions all_old, ReadDeletedPositions(store, deletion.task));
  Positions fresh;
  std::set_difference(wanted.begin(), wanted.end(), all_old.begin(), all_old.end(),
                      std::back_inserter(fresh));
  if (fresh.empty()) {
    return std::optional<Merged>();
  }
  std::vector<DataFile> own;
  for (const DeleteFilePtr& deletes : deletion.task.deletes) {
    if (ReferencedDataFile(deletes->file)) {
      own.push_back(deletes->file);
    }
  }
  // A vector hides every other position delete of its file, so it must hold them all.
  Positions old = all_old;
  if (!vectors) {
    TARN_ASSIGN_OR_RETURN(old, ReadPositionDeletesOf(store, own, file.file_path));
  }
  written.removed.insert(written.removed.end(), own.begin(), own.end());
  written.data_files.push_back(file.file_path);
  written.deleted_rows += static_cast<int64_t>(fresh.size());
  return std::optional<Merged>({.file = &file, .positions = MergePositions(old, fresh)});
}

// Nothing refers to the files yet. What cannot be deleted is left for orphan clean-up.
void RemoveWritten(storage::ObjectStore& store, const std::vector<DataFile>& files) {
  for (const DataFile& file : files) {
    if (const Result<std::string> key = KeyOf(store, file.file_path); key.ok()) {
      const Status ignored = store.Delete(*key);
      static_cast<void>(ignored);
    }
  }
}

bool IsPositionDelete(const DeleteFilePtr& deletes) {
  return deletes->file.content == DataFileContent::kPositionDeletes;
}

// Delete files that cover several data files, each read when it is first asked for.
class SharedDeletes {
 public:
  SharedDeletes(storage::ObjectStore& store, std::span<const FileScanTask> tasks) : store_(store) {
    for (const FileScanTask& task : tasks) {
      for (const DeleteFilePtr& deletes : task.deletes) {
        if (IsPositionDelete(deletes) && !ReferencedDataFile(deletes->file)) {
          ++uses_[deletes->file.file_path];
        }
      }
    }
  }

  [[nodiscard]] bool Has(const DeleteFilePtr& deletes) const {
    const auto uses = uses_.find(deletes->file.file_path);
    return uses != uses_.end() && uses->second > 1;
  }

  // Rows of one data file. The delete file is forgotten after its last use.
  Result<Positions> Read(const DeleteFilePtr& deletes, const std::string& data_file_path) {
    const std::string& path = deletes->file.file_path;
    auto at = rows_.find(path);
    if (at == rows_.end()) {
      TARN_ASSIGN_OR_RETURN(auto rows, ReadPositionDeletes(store_, deletes->file));
      at = rows_.emplace(path, Rows{.by_data_file = std::move(rows), .uses = uses_.at(path)}).first;
    }
    const auto found = at->second.by_data_file.find(data_file_path);
    Positions positions = found == at->second.by_data_file.end() ? Positions() : found->second;
    if (--at->second.uses == 0) {
      rows_.erase(at);
    }
    return positions;
  }

 private:
  struct Rows {
    std::map<std::string, Positions> by_data_file;
    size_t uses = 0;  // That are still to come.
  };

  storage::ObjectStore& store_;
  std::unordered_map<std::string, size_t> uses_;
  std::unordered_map<std::string, Rows> rows_;
};

}  // namespace

Status VisitDeletedPositions(storage::ObjectStore& store, std::span<const FileScanTask> tasks,
                             const std::function<Status(size_t, const Positions&)>& visit) {
  SharedDeletes shared(store, tasks);
  for (size_t i = 0; i < tasks.size(); ++i) {
    const std::string& path = tasks[i].file.file_path;
    std::vector<DataFile> own;
    Positions positions;
    bool any = false;
    for (const DeleteFilePtr& deletes : tasks[i].deletes) {
      if (!IsPositionDelete(deletes)) {
        continue;
      }
      any = true;
      if (shared.Has(deletes)) {
        TARN_ASSIGN_OR_RETURN(const Positions more, shared.Read(deletes, path));
        positions = MergePositions(positions, more);
      } else {
        own.push_back(deletes->file);
      }
    }
    if (!own.empty()) {
      TARN_ASSIGN_OR_RETURN(const Positions more, ReadPositionDeletesOf(store, own, path));
      positions = positions.empty() ? more : MergePositions(positions, more);
    }
    if (any) {
      TARN_RETURN_IF_ERROR(visit(i, positions));
    }
  }
  return Status::Ok();
}

Result<Positions> ReadDeletedPositions(storage::ObjectStore& store, const FileScanTask& task) {
  std::vector<DataFile> files;
  for (const DeleteFilePtr& deletes : task.deletes) {
    if (IsPositionDelete(deletes)) {
      files.push_back(deletes->file);
    }
  }
  return files.empty() ? Result<Positions>(Positions())
                       : ReadPositionDeletesOf(store, files, task.file.file_path);
}

Result<WrittenRowDeletes> WriteRowDeletes(storage::ObjectStore& store,
                                          const TableMetadata& metadata, UuidGenerator& uuids,
                                          const std::vector<RowDeletion>& deletions) {
  const bool vectors = metadata.format_version >= 3;
  WrittenRowDeletes written;
  std::vector<Merged> merged;
  for (const RowDeletion& deletion : deletions) {
    TARN_ASSIGN_OR_RETURN(std::optional<Merged> one,
                          MergeDeletion(store, deletion, vectors, written));
    if (one) {
      merged.push_back(*std::move(one));
    }
  }
  if (merged.empty()) {
    return written;
  }
  if (vectors) {
    std::vector<DeletionVector> blobs;
    for (Merged& one : merged) {
      blobs.push_back({.data_file_path = one.file->file_path,
                       .spec_id = one.file->spec_id,
                       .partition = one.file->partition,
                       .positions = std::move(one.positions)});
    }
    const std::string path =
        fmt::format("{}/{}-deletes.puffin", DataFolder(metadata), uuids.NextV7().ToString());
    TARN_ASSIGN_OR_RETURN(written.added, WriteDeletionVectors(store, path, blobs));
    return written;
  }
  for (Merged& one : merged) {
    const PositionDeleteOptions options{
        .file_path =
            fmt::format("{}/{}-deletes.parquet", DataFolder(metadata), uuids.NextV7().ToString()),
        .data_file_path = one.file->file_path,
        .spec_id = one.file->spec_id,
        .partition = one.file->partition};
    Result<DataFile> file = WritePositionDeletes(store, options, std::move(one.positions));
    if (!file.ok()) {
      RemoveWritten(store, written.added);
      return file.status();
    }
    written.added.push_back(std::move(file).value());
  }
  return written;
}

}  // namespace tarn::iceberg
