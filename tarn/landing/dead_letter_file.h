// DeadLetterFile: the dead letters of one commit on their way into one Parquet object, and the
// commit of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/base/uuid.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/landing/dead_letter.h"
#include "tarn/storage/object_store.h"

namespace tarn::format {
class ParquetWriter;
}

namespace tarn::landing {

struct DeadLetterFileOptions {
  dataset::DatasetRid rejected;
  Timestamp landed{};                // hdr__landed_timestamp of all.
  int64_t piece_bytes = 8LL << 20;   // Letters that wait in memory until they are written,
  int64_t group_bytes = 32LL << 20;  // and those of a row group of the file.
};

/// Nothing is visible before Close, and nothing is registered before CommitDeadLetters. One owner
/// thread. Memory: a piece and a row group. Destroying it without Close leaves no object.
class DeadLetterFile {
 public:
  DeadLetterFile(DeadLetterFileOptions options, storage::ObjectStore& store, UuidGenerator& uuids);
  ~DeadLetterFile();
  DeadLetterFile(const DeadLetterFile&) = delete;
  DeadLetterFile& operator=(const DeadLetterFile&) = delete;

  /// Errors: those of the store.
  Status Add(DeadLetter letter);
  [[nodiscard]] int64_t row_count() const { return row_count_; }
  /// Finishes the object. Nothing when there were no letters. Errors: those of the store.
  Result<std::optional<dataset::StoredFile>> Close();

 private:
  Status WritePiece();

  const DeadLetterFileOptions options_;
  storage::ObjectStore& store_;
  UuidGenerator& uuids_;
  std::vector<DeadLetter> piece_;
  int64_t piece_bytes_ = 0;
  int64_t row_count_ = 0;
  dataset::StoredFile file_;
  std::unique_ptr<format::ParquetWriter> writer_;  // Made with the first piece.
};

/// A finished object and where it belongs.
struct DeadLetterCommit {
  dataset::DatasetRid rejected;
  dataset::StoredFile file;
  std::string by;  // User id.
};

/// Registers the object in a transaction of the dataset of dead letters. The dataset gets its
/// schema with the first one; a schema that somebody put stays.
Status CommitDeadLetters(metastore::SqlTransaction& sql, dataset::DatasetStore& datasets,
                         const DeadLetterCommit& commit);

}  // namespace tarn::landing
