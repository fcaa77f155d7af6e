#include "tarn/base/status.h"

#include "tarn/base/arrow_status.h"
#include "test/support/matchers.h"

namespace tarn {
namespace {

Result<int> Half(int value) {
  if (value % 2 != 0) {
    return Status::InvalidArgument("odd");
  }
  return value / 2;
}

Result<int> Quarter(int value) {
  TARN_ASSIGN_OR_RETURN(const int half, Half(value));
  return Half(half);
}

Result<int> FromArrowResult(bool fail) {
  const auto call = [fail]() -> arrow::Result<int> {
    if (fail) {
      return arrow::Status::Invalid("no");
    }
    return 7;
  };
  TARN_ASSIGN_OR_RETURN(const int value, call());
  TARN_RETURN_IF_ERROR(arrow::Status::OK());
  return value;
}

TEST(StatusTest, MacrosPassValuesAndFailuresOn) {
  EXPECT_THAT(Quarter(8), IsOkAndHolds(2));
  EXPECT_THAT(Quarter(6), Fails(ErrorCode::kInvalidArgument));
}

TEST(StatusTest, ArrowFailuresKeepTheirMeaning) {
  EXPECT_THAT(FromArrowResult(false), IsOkAndHolds(7));
  EXPECT_THAT(FromArrowResult(true), Fails(ErrorCode::kInvalidArgument));
  EXPECT_EQ(FromArrow(arrow::Status::SerializationError("x")).code(), ErrorCode::kCorruption);
}

TEST(StatusTest, ContextAndReasonKeepTheCode) {
  const Status status =
      Status::Conflict("found t42").WithContext("branch main moved").WithReason("Moved", "{}");
  EXPECT_EQ(status.ToString(), "Conflict (Moved): branch main moved: found t42");
  EXPECT_EQ(status.code(), ErrorCode::kConflict);
  EXPECT_TRUE(Status::Ok().WithContext("x").ok());
}

TEST(StatusTest, CopiesAreIndependent) {
  const Status first = Status::NotFound("a");
  Status second = first;
  second = second.WithContext("b");
  EXPECT_EQ(first.message(), "a");
}

TEST(ResultTest, AnEmptyOptionalIsAValue) {
  const auto empty = []() -> Result<std::optional<std::string>> { return std::nullopt; };
  Result<std::optional<std::string>> result = empty();
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result.value().has_value());
  const std::optional<std::string> taken = std::move(result).value();
  EXPECT_FALSE(taken.has_value());
  Result<std::optional<std::string>> named(std::nullopt);
  EXPECT_FALSE(named->has_value());
  const Result<std::optional<std::string>> full("text");
  EXPECT_EQ(full.value(), "text");
}

}  // namespace
}  // namespace tarn
