// Exit codes of the command line, fixed for scripts.
#pragma once

#include "tarn/base/status.h"

namespace tarn::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitOther = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotFound = 3;
inline constexpr int kExitConflict = 4;
inline constexpr int kExitTransient = 5;
inline constexpr int kExitDenied = 6;

/// 0 ok, 2 usage, 3 not found, 4 conflict (also already exists), 5 transient (also when the outcome
/// of a change is not known: look before you repeat it), 6 denied, 1 other.
/// A kInvalidArgument with reason "Usage" is wrong use of the command itself.
int ExitCodeOf(const Status& status);

/// A failure of the command line itself: exit code 2.
Status UsageError(std::string message);

}  // namespace tarn::cli
