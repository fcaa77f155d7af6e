// Apply: unapplied changes become rows of Current and Prior.
//
// Reads the changes twice: once narrow (keys, operations, times) to fold them over what Current
// holds, once whole to write the rows that result; or once, when all their values fit the memory.
// Keys are found in Current by their hash and confirmed on the key columns. Large sets are folded
// in passes, each over a share of the keys, so that memory stays bounded. Nothing is visible before
// the caller commits the result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/base/uuid.h"
#include "tarn/iceberg/manifest.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/lakehouse/table_files.h"
#include "tarn/lakehouse/table_spec.h"
#include "tarn/storage/object_store.h"

namespace tarn::lakehouse {

/// Where changes come from: the source, or a reload that compared the table with what has landed.
enum class ChangeOrigin : uint8_t { kSource, kReload };

struct ApplyRequest {
  const TableSpec& spec;
  const iceberg::TableMetadata& metadata;
  const TableFiles& files;  // `changes`: the unapplied ones only.
  Timestamp now;            // hdr__modified_timestamp of what is written.
  /// Of a reload the operations I, U and D are written as i, u and d.
  ChangeOrigin origin = ChangeOrigin::kSource;
};

/// What happened, counted in rows.
struct ApplyCounts {
  int64_t changes = 0;
  int64_t current_rows = 0;  // Written for changes; rows that only moved are not counted.
  int64_t prior_rows = 0;
  int64_t noop_deletes = 0;
  int64_t rewritten_files = 0;
  int64_t moved_rows = 0;  // Live rows of rewritten files.
};

/// Files to commit in one snapshot. Change files are not listed: the caller removes them or not.
struct ApplyResult {
  std::vector<iceberg::DataFile> current;          // Added.
  std::vector<iceberg::DataFile> current_deleted;  // Added: rows that soft_delete keeps.
  std::vector<iceberg::DataFile> prior;            // Added.
  std::vector<iceberg::DataFile> deletes;          // Added position delete files.
  std::vector<iceberg::DataFile> removed;          // Data files of Current.
  std::vector<iceberg::DataFile> removed_deletes;  // Replaced position delete files.
  std::vector<std::string> hidden_paths;           // Files of Current that hold deleted rows only.
  std::string newest_identifier;                   // Of the changes applied.
  ApplyCounts counts;
};

struct ApplyDeps {
  storage::ObjectStore& store;
  UuidGenerator& uuids;
};

/// Errors: kCorruption when files are not what tarn writes; those of the store. On an error no file
/// of the attempt is left, except after a crash. Threads: any; one apply per table at a time.
/// Cost: reads the changes twice, the narrow columns of Current once, and whole only those of its
/// files that are rewritten or, with history, that lose rows.
Result<ApplyResult> RunApply(const ApplyRequest& request, const ApplyDeps& deps);

/// All data and delete files that the result adds.
std::vector<iceberg::DataFile> AddedFiles(const ApplyResult& result);

}  // namespace tarn::lakehouse
