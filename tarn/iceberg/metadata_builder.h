// ApplyUpdates: the only way from one version of a table's metadata to the next.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/iceberg/table_update.h"

namespace tarn::iceberg {

struct UpdateResult {
  TableMetadata metadata;
  bool changed = false;  // False: every update was a no-op; write no file.
};

/// Applies updates in order; on any error nothing is applied. Pure.
///
/// `base`: null makes a new table (assign-uuid, upgrade-format-version and the rest come as
/// updates). Errors: kInvalidArgument for an update that is wrong in itself; kConflict when only
/// the state of the table is against it (a sequence number that is not above the last one).
Result<UpdateResult> ApplyUpdates(const TableMetadata* base,
                                  const std::vector<TableUpdate>& updates, int64_t now_ms);

/// Records the file that held `base` in the metadata log of its successor and cuts the log to
/// "write.metadata.previous-versions-max". Returns the files that fell out of the log.
std::vector<std::string> LogPreviousMetadata(const TableMetadata& base,
                                             const std::string& base_location, TableMetadata& next);

}  // namespace tarn::iceberg
