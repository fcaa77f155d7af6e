#include "tarn/server/failed_answers.h"

#include "test/support/matchers.h"

namespace tarn::server {
namespace {

TEST(FailedAnswersTest, TheNewestAreKeptForTheirUsers) {
  FailedAnswers answers(2);
  answers.Add("1", "alice", Status::InvalidArgument("a"));
  answers.Add("2", "alice", Status::InvalidArgument("b"));
  answers.Add("3", "bob", Status::Unavailable("c"));
  EXPECT_FALSE(answers.Find("1", "alice").has_value());
  ASSERT_TRUE(answers.Find("2", "alice").has_value());
  EXPECT_THAT(*answers.Find("2", "alice"), FailsWith(ErrorCode::kInvalidArgument, "b"));
  EXPECT_FALSE(answers.Find("3", "alice").has_value());
  EXPECT_TRUE(answers.Find("3", "bob").has_value());
}

}  // namespace
}  // namespace tarn::server
