// Change files that stay in the table after they were applied, for as long as keep_changes says.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/lakehouse/table_files.h"

namespace tarn::lakehouse {

/// Takes the change files out of `files` that an apply has taken in: those that begin at or before
/// the applied identifier.
std::vector<FileScanTask> TakeApplied(TableFiles& files, std::string_view applied_identifier);

/// Those of the applied files that need not stay: all without `keep`, else those whose newest row
/// was appended longer ago than that. A file that does not tell stays.
/// Errors: kCorruption for a bound that is no time.
Result<std::vector<iceberg::DataFile>> Outlived(
    const std::vector<FileScanTask>& applied, const std::optional<std::chrono::microseconds>& keep,
    Timestamp now);

}  // namespace tarn::lakehouse
