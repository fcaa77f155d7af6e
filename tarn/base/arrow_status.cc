#include "tarn/base/arrow_status.h"

#include <cerrno>

#include <arrow/util/io_util.h>

namespace tarn {

namespace {
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
}  // namespace

Status FromArrow(const arrow::Status& status) {
  if (status.ok()) {
    return Status::Ok();
  }
  return {CodeFor(status), status.message()};
}

arrow::Status ToArrow(const Status& status) {
  if (status.ok()) {
    return arrow::Status::OK();
  }
  switch (status.code()) {
    case ErrorCode::kInvalidArgument:
      return arrow::Status::Invalid(status.message());
    case ErrorCode::kUnavailable:
    case ErrorCode::kNotFound:
      return arrow::Status::IOError(status.ToString());
    case ErrorCode::kCancelled:
      return arrow::Status::Cancelled(status.message());
    default:
      return arrow::Status::UnknownError(status.ToString());
  }
}

}  // namespace tarn
