#include "tarn/base/arrow_status.h"

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <arrow/util/io_util.h>

namespace tarn {

namespace {

// Carries one of our failures through Arrow unchanged.
class StatusDetail final : public arrow::StatusDetail {
 public:
  explicit StatusDetail(Status status) : status_(std::move(status)) {}
  [[nodiscard]] const char* type_id() const override { return kTypeId; }
  [[nodiscard]] std::string ToString() const override { return status_.ToString(); }
  [[nodiscard]] const Status& status() const { return status_; }

  static constexpr const char* kTypeId = "tarn::StatusDetail";

 private:
  const Status status_;
};

ErrorCode CodeFor(const arrow::Status& status) {
  switch (status.code()) {
    case arrow::StatusCode::OutOfMemory:
    case arrow::StatusCode::CapacityError:
      return ErrorCode::kResourceExhausted;
    case arrow::StatusCode::KeyError:
      return ErrorCode::kNotFound;
    case arrow::StatusCode::IOError:
      return arrow::internal::ErrnoFromStatus(status) == ENOENT ? ErrorCode::kNotFound
                                                                : ErrorCode::kUnavailable;
    case arrow::StatusCode::SerializationError:
      return ErrorCode::kCorruption;
    case arrow::StatusCode::Invalid:
    case arrow::StatusCode::TypeError:
    case arrow::StatusCode::IndexError:
      return ErrorCode::kInvalidArgument;
    case arrow::StatusCode::NotImplemented:
      return ErrorCode::kUnimplemented;
    case arrow::StatusCode::Cancelled:
      return ErrorCode::kCancelled;
    case arrow::StatusCode::AlreadyExists:
      return ErrorCode::kAlreadyExists;
    default:
      return ErrorCode::kInternal;
  }
}
arrow::StatusCode ArrowCodeFor(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return arrow::StatusCode::Invalid;
    case ErrorCode::kUnimplemented:
      return arrow::StatusCode::NotImplemented;
    case ErrorCode::kUnavailable:
    case ErrorCode::kNotFound:
      return arrow::StatusCode::IOError;
    case ErrorCode::kCancelled:
      return arrow::StatusCode::Cancelled;
    default:
      return arrow::StatusCode::UnknownError;
  }
}

}  // namespace

Status FromArrow(const arrow::Status& status) {
  if (status.ok()) {
    return Status::Ok();
  }
  if (status.detail() != nullptr &&
      std::string_view(status.detail()->type_id()) == StatusDetail::kTypeId) {
    return static_cast<const StatusDetail&>(*status.detail()).status();
  }
  return {CodeFor(status), status.message()};
}

arrow::Status ToArrow(const Status& status) {
  if (status.ok()) {
    return arrow::Status::OK();
  }
  return {ArrowCodeFor(status.code()), status.message(), std::make_shared<StatusDetail>(status)};
}

}  // namespace tarn
