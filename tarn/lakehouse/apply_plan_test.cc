#include "tarn/lakehouse/apply_plan.h"

#include "test/support/matchers.h"

namespace tarn::lakehouse {
namespace {

TEST(ApplyPlanTest, TheGreaterRowLimitDecides) {
  const ApplyThresholds thresholds;
  const Timestamp now{};
  EXPECT_FALSE(IsApplyDue({.rows = 9'999}, thresholds, now));
  EXPECT_TRUE(IsApplyDue({.rows = 10'000}, thresholds, now));
  EXPECT_FALSE(IsApplyDue({.rows = 10'000, .current_rows = 10'000'000}, thresholds, now));
  EXPECT_TRUE(IsApplyDue({.rows = 100'000, .current_rows = 10'000'000}, thresholds, now));
}

TEST(ApplyPlanTest, BytesFilesAndAgeTriggerOnTheirOwn) {
  ApplyThresholds thresholds;
  const Timestamp now = FromMillis(10'000);
  EXPECT_TRUE(IsApplyDue({.rows = 1, .bytes = 128LL << 20}, thresholds, now));
  EXPECT_TRUE(IsApplyDue({.rows = 1, .files = 64}, thresholds, now));
  EXPECT_FALSE(IsApplyDue({.rows = 1, .oldest = FromMillis(0)}, thresholds, now));
  thresholds.age_max = std::chrono::seconds{10};
  EXPECT_TRUE(IsApplyDue({.rows = 1, .oldest = FromMillis(0)}, thresholds, now));
  EXPECT_FALSE(IsApplyDue({.rows = 0, .oldest = FromMillis(0)}, thresholds, now));
}

TEST(ApplyPlanTest, AFileIsRewrittenWhenMoreThanAFifthIsDead) {
  EXPECT_EQ(ChooseFileAction(100, 5, 5), FileAction::kKeep);
  EXPECT_EQ(ChooseFileAction(100, 5, 20), FileAction::kWriteDeletes);
  EXPECT_EQ(ChooseFileAction(100, 5, 21), FileAction::kRewrite);
  EXPECT_EQ(ChooseFileAction(100, 5, 100), FileAction::kRemove);
}

TEST(ApplyPlanTest, PassesGrowWithTheChanges) {
  EXPECT_EQ(PassCount(1'000, 10, 512 << 20), 1);
  EXPECT_GT(PassCount(100'000'000, 10, 512 << 20), 50);
}

TEST(ApplyPlanTest, WhileMoreWaitsAppliesAreFewerButNotLater) {
  ApplyThresholds thresholds;
  thresholds.age_max = std::chrono::seconds{5};
  const ApplyThresholds behind = WhileBehind(thresholds);
  const Timestamp now = FromMicros(10'000'000);
  UnappliedWork work{.rows = 999'999, .bytes = 128LL << 20, .files = 64, .current_rows = 100};
  EXPECT_TRUE(IsApplyDue(work, thresholds, now));
  EXPECT_FALSE(IsApplyDue(work, behind, now));
  work.rows = 1'000'000;
  EXPECT_TRUE(IsApplyDue(work, behind, now));
  work.current_rows = 4'000'000;
  EXPECT_FALSE(IsApplyDue(work, behind, now));
  work.files = 8 * 64;
  EXPECT_TRUE(IsApplyDue(work, behind, now));
  work.files = 1;
  work.oldest = FromMicros(1);
  EXPECT_TRUE(IsApplyDue(work, behind, now)) << "the age is what was asked for";
  thresholds.bytes = INT64_MAX;
  EXPECT_EQ(WhileBehind(thresholds).bytes, INT64_MAX);
}

}  // namespace
}  // namespace tarn::lakehouse
