// Logical paths: how files are called inside a dataset. Names only; physical names are the
// server's.
#pragma once

#include <cstddef>
#include <string_view>

#include "tarn/base/status.h"

namespace tarn::dataset {

inline constexpr size_t kPathBytesMax = 4096;

/// Checks a logical path: UTF-8 of 1–4096 bytes, no NUL, no leading slash, no segment that is
/// empty, "." or "..". Byte-exact: nothing is normalised, so a trailing slash is refused.
///
/// Errors: kInvalidArgument, reason InvalidFilePath with the path. Cost: one pass.
Status CheckLogicalPath(std::string_view path);

}  // namespace tarn::dataset
