#include "tarn/base/status.h"

namespace tarn {

namespace {
const std::string& EmptyText() {
  static const std::string kEmpty;
  return kEmpty;
}
}  // namespace

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return "OK";
    case ErrorCode::kInvalidArgument:
      return "InvalidArgument";
    case ErrorCode::kUnauthenticated:
      return "Unauthenticated";
    case ErrorCode::kPermissionDenied:
      return "PermissionDenied";
    case ErrorCode::kNotFound:
      return "NotFound";
    case ErrorCode::kAlreadyExists:
      return "AlreadyExists";
    case ErrorCode::kFailedPrecondition:
      return "FailedPrecondition";
    case ErrorCode::kUnimplemented:
      return "Unimplemented";
    case ErrorCode::kConflict:
      return "Conflict";
    case ErrorCode::kResourceExhausted:
      return "ResourceExhausted";
    case ErrorCode::kUnavailable:
      return "Unavailable";
    case ErrorCode::kDeadlineExceeded:
      return "DeadlineExceeded";
    case ErrorCode::kCommitStateUnknown:
      return "CommitStateUnknown";
    case ErrorCode::kCancelled:
      return "Cancelled";
    case ErrorCode::kCorruption:
      return "Corruption";
    case ErrorCode::kInternal:
      return "Internal";
  }
  return "Unknown";
}

bool IsRetryable(ErrorCode code) {
  return code == ErrorCode::kResourceExhausted || code == ErrorCode::kUnavailable ||
         code == ErrorCode::kDeadlineExceeded;
}

Status::Status(ErrorCode code, std::string message) {
  TARN_CHECK(code != ErrorCode::kOk);
  rep_ = std::make_unique<Rep>(Rep{code, std::move(message), {}, {}});
}

Status::Status(const Status& other)
    : rep_(other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) {
    rep_ = other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr;
  }
  return *this;
}

Status Status::InvalidArgument(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message)};
}
Status Status::NotFound(std::string message) { return {ErrorCode::kNotFound, std::move(message)}; }
Status Status::AlreadyExists(std::string message) {
  return {ErrorCode::kAlreadyExists, std::move(message)};
}
Status Status::PermissionDenied(std::string message) {
  return {ErrorCode::kPermissionDenied, std::move(message)};
}
Status Status::FailedPrecondition(std::string message) {
  return {ErrorCode::kFailedPrecondition, std::move(message)};
}
Status Status::Unimplemented(std::string message) {
  return {ErrorCode::kUnimplemented, std::move(message)};
}
Status Status::Conflict(std::string message) { return {ErrorCode::kConflict, std::move(message)}; }
Status Status::Unavailable(std::string message) {
  return {ErrorCode::kUnavailable, std::move(message)};
}
Status Status::Corruption(std::string message) {
  return {ErrorCode::kCorruption, std::move(message)};
}
Status Status::Internal(std::string message) { return {ErrorCode::kInternal, std::move(message)}; }

const std::string& Status::message() const { return rep_ ? rep_->message : EmptyText(); }
const std::string& Status::reason() const { return rep_ ? rep_->reason : EmptyText(); }
const std::string& Status::details() const { return rep_ ? rep_->details : EmptyText(); }

std::string Status::ToString() const {
  if (ok()) {
    return "OK";
  }
  std::string text(ErrorCodeName(rep_->code));
  if (!rep_->reason.empty()) {
    text += " (" + rep_->reason + ")";
  }
  return text + ": " + rep_->message;
}

Status Status::WithContext(std::string_view context) const {
  Status copy = *this;
  if (copy.rep_) {
    copy.rep_->message = std::string(context) + ": " + copy.rep_->message;
  }
  return copy;
}

Status Status::WithReason(std::string reason, std::string details_json) const {
  Status copy = *this;
  if (copy.rep_) {
    copy.rep_->reason = std::move(reason);
    copy.rep_->details = std::move(details_json);
  }
  return copy;
}

}  // namespace tarn
