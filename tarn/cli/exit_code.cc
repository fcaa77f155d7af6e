#include "tarn/cli/exit_code.h"

namespace tarn::cli {

namespace {
constexpr std::string_view kUsage = "Usage";
}  // namespace

int ExitCodeOf(const Status& status) {
  if (status.reason() == kUsage) {
    return kExitUsage;
  }
  switch (status.code()) {
    case ErrorCode::kOk:
      return kExitOk;
    case ErrorCode::kNotFound:
      return kExitNotFound;
    case ErrorCode::kAlreadyExists:
    case ErrorCode::kConflict:
      return kExitConflict;
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadlineExceeded:
    case ErrorCode::kCommitStateUnknown:
      return kExitTransient;
    case ErrorCode::kUnauthenticated:
    case ErrorCode::kPermissionDenied:
      return kExitDenied;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kFailedPrecondition:
    case ErrorCode::kUnimplemented:
    case ErrorCode::kCancelled:
    case ErrorCode::kCorruption:
    case ErrorCode::kInternal:
      return kExitOther;
  }
  return kExitOther;
}

Status UsageError(std::string message) {
  return Status::InvalidArgument(std::move(message)).WithReason(std::string(kUsage));
}

}  // namespace tarn::cli
