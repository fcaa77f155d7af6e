// Bridge from Arrow's Status and Result to ours, for .cc files that call Arrow.
//
// Include it before any template that uses the TARN_ macros on Arrow values.
#pragma once

#include <arrow/result.h>
#include <arrow/status.h>

#include "tarn/base/status.h"

namespace tarn {

/// Maps an Arrow failure: out of memory and capacity to kResourceExhausted, missing keys and files
/// to kNotFound, I/O to kUnavailable, broken data to kCorruption, the rest by its nature. A failure
/// that ToArrow made comes back as it was.
Status FromArrow(const arrow::Status& status);

/// Wraps one of ours for callbacks that must answer with Arrow's type.
arrow::Status ToArrow(const Status& status);

}  // namespace tarn

// Found by argument-dependent look-up from the TARN_ macros.
namespace arrow {
inline ::tarn::Status StatusOf(const Status& status) { return ::tarn::FromArrow(status); }
template <typename T>
::tarn::Status StatusOf(const Result<T>& result) {
  return ::tarn::FromArrow(result.status());
}
template <typename T>
T ValueOf(Result<T>&& result) {
  return std::move(result).ValueUnsafe();
}
}  // namespace arrow
