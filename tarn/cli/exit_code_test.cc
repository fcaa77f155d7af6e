#include "tarn/cli/exit_code.h"

#include "test/support/matchers.h"

namespace tarn::cli {
namespace {

TEST(ExitCodeTest, FollowsTheTable) {
  EXPECT_EQ(ExitCodeOf(Status::Ok()), 0);
  EXPECT_EQ(ExitCodeOf(UsageError("x")), 2);
  EXPECT_EQ(ExitCodeOf(Status::NotFound("x")), 3);
  EXPECT_EQ(ExitCodeOf(Status::Conflict("x")), 4);
  EXPECT_EQ(ExitCodeOf(Status::AlreadyExists("x")), 4);
  EXPECT_EQ(ExitCodeOf(Status::Unavailable("x")), 5);
  EXPECT_EQ(ExitCodeOf(Status(ErrorCode::kResourceExhausted, "x")), 5);
  EXPECT_EQ(ExitCodeOf(Status(ErrorCode::kDeadlineExceeded, "x")), 5);
  EXPECT_EQ(ExitCodeOf(Status::PermissionDenied("x")), 6);
  EXPECT_EQ(ExitCodeOf(Status(ErrorCode::kUnauthenticated, "x")), 6);
  EXPECT_EQ(ExitCodeOf(Status::InvalidArgument("x")), 1);
  EXPECT_EQ(ExitCodeOf(Status::Internal("x")), 1);
  EXPECT_EQ(ExitCodeOf(Status(ErrorCode::kCommitStateUnknown, "x")), 5);
}

}  // namespace
}  // namespace tarn::cli
