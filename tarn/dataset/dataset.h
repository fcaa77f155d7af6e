// Dataset: a named set of files that only transactions change.
//
// Name and folder belong to the tree; this room keeps what is below.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tarn/base/clock.h"
#include "tarn/base/rid.h"
#include "tarn/dataset/ids.h"

namespace tarn::dataset {

/// What a commit does about files that do not fit the schema.
enum class SchemaValidation : uint8_t { kOff = 0, kWarn = 1, kReject = 2 };

/// Choices of a dataset's owner. Value.
struct DatasetSettings {
  /// A view that a SNAPSHOT began and that has no schema of its own reads the newest one of the
  /// views before it.
  bool inherit_schema_on_snapshot = false;
  SchemaValidation validate = SchemaValidation::kOff;  // Kept here, acted on by the committer.
  std::optional<std::chrono::seconds> idle_abort;      // Empty: OPEN transactions stay open.

  friend bool operator==(const DatasetSettings&, const DatasetSettings&) = default;
};

/// Value, as it was when read.
struct Dataset {
  DatasetRid rid;
  std::string base_uri;  // Of the file system that holds its managed files; empty = the default.
  DatasetSettings settings;
  Timestamp created_at{};
  std::string created_by;

  friend bool operator==(const Dataset&, const Dataset&) = default;
};

struct CreateDatasetOptions {
  Rid parent_folder;
  std::string name;
  std::string base_uri;
  std::string by;  // User id.
};

}  // namespace tarn::dataset
