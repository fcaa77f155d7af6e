// Status and Result<T>: how every function of tarn reports failure.
//
// A code tells programs what the caller should do; a message tells people what was attempted on
// which object and what was found. Both classes are [[nodiscard]]: an error dropped in a commit
// path is lost data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tarn/base/check.h"

namespace tarn {

/// What the caller should do about a failure. The set is closed.
enum class ErrorCode : uint8_t {
  kOk,
  // Fix the request, do not retry.
  kInvalidArgument,
  kUnauthenticated,
  kPermissionDenied,
  kNotFound,
  kAlreadyExists,
  kFailedPrecondition,
  kUnimplemented,
  // Re-read, then retry the transaction.
  kConflict,
  // Retry the same call with back-off.
  kResourceExhausted,
  kUnavailable,
  kDeadlineExceeded,
  // Look up the outcome first; never delete the files of the attempt.
  kCommitStateUnknown,
  // Stop quietly.
  kCancelled,
  // Alert a person.
  kCorruption,
  kInternal,
};

/// Stable name of a code, e.g. "NotFound".
std::string_view ErrorCodeName(ErrorCode code);

/// True where the same call may succeed later without the caller re-reading anything.
bool IsRetryable(ErrorCode code);

/// Outcome of an operation without a value. Cheap when OK (one null pointer).
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorCode code, std::string message);
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  static Status Ok() { return {}; }
  static Status InvalidArgument(std::string message);
  static Status NotFound(std::string message);
  static Status AlreadyExists(std::string message);
  static Status PermissionDenied(std::string message);
  static Status FailedPrecondition(std::string message);
  static Status Unimplemented(std::string message);
  static Status Conflict(std::string message);
  static Status Unavailable(std::string message);
  static Status Corruption(std::string message);
  static Status Internal(std::string message);

  [[nodiscard]] bool ok() const { return rep_ == nullptr; }
  [[nodiscard]] ErrorCode code() const { return rep_ ? rep_->code : ErrorCode::kOk; }
  /// Text for people; empty when OK. Never branch on it.
  [[nodiscard]] const std::string& message() const;
  /// Stable name of the precise error for a wire protocol (e.g. "OpenTransactionAlreadyExists"),
  /// empty when the code says enough.
  [[nodiscard]] const std::string& reason() const;
  /// JSON object text with the parameters of `reason`, empty when there are none.
  [[nodiscard]] const std::string& details() const;
  /// "NotFound: message", or "OK".
  [[nodiscard]] std::string ToString() const;

  /// The same failure with "context: " before its message; OK stays OK.
  [[nodiscard]] Status WithContext(std::string_view context) const;
  /// The same failure with a wire name and its parameters as JSON object text.
  [[nodiscard]] Status WithReason(std::string reason, std::string details_json = {}) const;

  friend bool operator==(const Status& a, const Status& b) {
    return a.code() == b.code() && a.message() == b.message() && a.reason() == b.reason();
  }

 private:
  struct Rep {
    ErrorCode code;
    std::string message;
    std::string reason;
    std::string details;
  };
  std::unique_ptr<Rep> rep_;
};

/// A value or the failure that prevented it.
template <typename T>
class [[nodiscard]] Result {
 public:
  using ValueType = T;

  // In place: an empty optional is a value like any other.
  Result(T value)  // NOLINT(google-explicit-constructor)
      : value_(std::in_place, std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    TARN_CHECK(!status_.ok());
  }
  template <typename U>
    requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
             !std::is_same_v<std::remove_cvref_t<U>, Status> &&
             !std::is_same_v<std::remove_cvref_t<U>, Result<T>>)
  Result(U&& value)  // NOLINT(google-explicit-constructor)
      : value_(std::in_place, std::forward<U>(value)) {}

  [[nodiscard]] bool ok() const { return status_.ok(); }
  [[nodiscard]] const Status& status() const& { return status_; }
  [[nodiscard]] Status status() && { return std::move(status_); }

  /// The value; aborts when there is none.
  [[nodiscard]] const T& value() const& {
    Require();
    return *value_;
  }
  [[nodiscard]] T& value() & {
    Require();
    return *value_;
  }
  [[nodiscard]] T value() && {
    Require();
    return std::move(*value_);
  }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] T operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

 private:
  void Require() const {
    if (!status_.ok()) {
      internal::CheckFailed("Result has a value", __FILE__, __LINE__, status_.ToString());
    }
  }

  Status status_;
  std::optional<T> value_;
};

// The macros ask an overloaded StatusOf(), so that arrow_status.h can teach them Arrow's types.
inline const Status& StatusOf(const Status& status) { return status; }
inline Status&& StatusOf(Status&& status) { return std::move(status); }
template <typename T>
const Status& StatusOf(const Result<T>& result) {
  return result.status();
}
template <typename T>
Status StatusOf(Result<T>&& result) {
  return std::move(result).status();
}
template <typename T>
T ValueOf(Result<T>&& result) {
  return std::move(result).value();
}

}  // namespace tarn

#define TARN_CONCAT_(a, b) a##b
#define TARN_CONCAT(a, b) TARN_CONCAT_(a, b)

#define TARN_RETURN_IF_ERROR_(temporary, expression)                                 \
  do {                                                                               \
    auto&& temporary = (expression);                                                 \
    if (!temporary.ok()) {                                                           \
      return ::tarn::Status(StatusOf(std::forward<decltype(temporary)>(temporary))); \
    }                                                                                \
  } while (false)

#define TARN_ASSIGN_OR_RETURN_(temporary, target, expression) \
  auto temporary = (expression);                              \
  if (!temporary.ok()) {                                      \
    return ::tarn::Status(StatusOf(std::move(temporary)));    \
  }                                                           \
  target = ValueOf(std::move(temporary))

// Temporaries are numbered by __COUNTER__: a macro inside a lambda inside another macro's argument
// is on the same line.

/// Returns from the enclosing function when the expression (Status or Result) failed.
#define TARN_RETURN_IF_ERROR(...) \
  TARN_RETURN_IF_ERROR_(TARN_CONCAT(tarn_status_, __COUNTER__), (__VA_ARGS__))

/// Assigns the value of a Result to `target` (which may declare), or returns its failure.
#define TARN_ASSIGN_OR_RETURN(target, ...) \
  TARN_ASSIGN_OR_RETURN_(TARN_CONCAT(tarn_result_, __COUNTER__), target, (__VA_ARGS__))
