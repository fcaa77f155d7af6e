#include "tarn/transform/mapping_syntax.h"

#include "test/support/matchers.h"

namespace tarn::transform {
namespace {

class MappingSyntaxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(engine_, engine::Engine::Open({.threads = 1}));
    ASSERT_OK_AND_ASSIGN(session_, engine_->OpenSession());
  }

  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::Session> session_;
};

TEST_F(MappingSyntaxTest, ColumnsNeedNotBeThere) {
  EXPECT_OK(CheckMappingSyntax(
      *session_, {.target = "t",
                  .columns = {{"x", "unknown * 2"}, {"y", "items[].sku || '!'"}, {"z", ""}},
                  .where = "a > 1 AND ${b c} IS NULL"}));
}

TEST_F(MappingSyntaxTest, MistakesNameTargetAndKey) {
  const auto check = [&](const MappingSpec& spec) { return CheckMappingSyntax(*session_, spec); };
  EXPECT_THAT(check({.target = "t", .where = "a >"}),
              FailsWith(ErrorCode::kInvalidArgument, "transform t: where: syntax error"));
  EXPECT_THAT(check({.target = "t", .columns = {{"x", "now()"}}}),
              FailsWith(ErrorCode::kInvalidArgument, "transform t: columns.x: "));
  EXPECT_THAT(check({.target = "t", .columns = {{"x", "a", "floaty"}}}),
              FailsWith(ErrorCode::kInvalidArgument, "transform t: columns.x.type: "));
  EXPECT_THAT(check({.target = "t", .delete_when = "sum(a)"}),
              FailsWith(ErrorCode::kInvalidArgument, "delete_when: "));
  EXPECT_THAT(check({.target = "t", .event_time = "(SELECT 1)"}),
              FailsWith(ErrorCode::kInvalidArgument, "event_time: "));
  EXPECT_THAT(check({.target = "t", .expect = {{"e", "a b"}}}),
              FailsWith(ErrorCode::kInvalidArgument, "expect.e: "));
}

}  // namespace
}  // namespace tarn::transform
