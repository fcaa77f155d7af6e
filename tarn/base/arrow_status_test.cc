#include "tarn/base/arrow_status.h"

#include <cerrno>

#include <arrow/util/io_util.h>

#include "test/support/matchers.h"

namespace tarn {
namespace {

TEST(ArrowStatusTest, OurFailuresComeBackAsTheyWere) {
  for (const ErrorCode code :
       {ErrorCode::kPermissionDenied, ErrorCode::kNotFound, ErrorCode::kUnavailable,
        ErrorCode::kResourceExhausted, ErrorCode::kCommitStateUnknown, ErrorCode::kCorruption}) {
    const Status status = Status(code, "object \"a\"").WithReason("Why", "{}");
    const arrow::Status through = ToArrow(status);
    EXPECT_FALSE(through.ok());
    EXPECT_EQ(FromArrow(through), status);
    EXPECT_EQ(FromArrow(through.WithMessage("while reading: ", through.message())).code(), code);
  }
  EXPECT_TRUE(ToArrow(Status::Ok()).ok());
  EXPECT_OK(FromArrow(arrow::Status::OK()));
}

TEST(ArrowStatusTest, ArrowFailuresAreMappedByNature) {
  EXPECT_THAT(FromArrow(arrow::Status::OutOfMemory("x")), Fails(ErrorCode::kResourceExhausted));
  EXPECT_THAT(FromArrow(arrow::Status::KeyError("x")), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(FromArrow(arrow::Status::IOError("x")), Fails(ErrorCode::kUnavailable));
  EXPECT_THAT(FromArrow(arrow::internal::IOErrorFromErrno(ENOENT, "x")),
              Fails(ErrorCode::kNotFound));
  EXPECT_THAT(FromArrow(arrow::Status::Invalid("x")), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(FromArrow(arrow::Status::NotImplemented("x")), Fails(ErrorCode::kUnimplemented));
  EXPECT_THAT(FromArrow(arrow::Status::Cancelled("x")), Fails(ErrorCode::kCancelled));
  EXPECT_THAT(FromArrow(arrow::Status::UnknownError("x")), Fails(ErrorCode::kInternal));
}

}  // namespace
}  // namespace tarn
