// PublishFile: a file gets its name when it is whole.
#pragma once

#include <filesystem>

#include "tarn/base/status.h"

namespace tarn::metastore {

/// Makes `part` durable and renames it to `file`, in place of one that is there. After a crash the
/// name holds all of the new bytes or what it held before.
///
/// Errors: kUnavailable naming the step and the file; `part` may be left.
Status PublishFile(const std::filesystem::path& part, const std::filesystem::path& file);

}  // namespace tarn::metastore
