#include "tarn/metastore/migrations.h"

#include "test/support/matchers.h"

namespace tarn::metastore {
namespace {

Migration Step(const std::string& room, int version, const std::string& sql = "x") {
  return {.room = room, .version = version, .sql = sql};
}

AppliedMigration Done(const Migration& step) {
  return {.room = step.room, .version = step.version, .hash = HashOf(step)};
}

std::vector<std::string> Names(const std::vector<Migration>& plan) {
  std::vector<std::string> names;
  for (const Migration& step : plan) {
    names.push_back(step.room + std::to_string(step.version));
  }
  return names;
}

TEST(MigrationsTest, RunsWhatIsMissingInOrder) {
  const std::vector<Migration> wanted = {Step("b", 1), Step("a", 1), Step("b", 2)};
  ASSERT_OK_AND_ASSIGN(const std::vector<Migration> all, PlanMigrations({}, wanted));
  EXPECT_THAT(Names(all), ::testing::ElementsAre("b1", "a1", "b2"));
  ASSERT_OK_AND_ASSIGN(const std::vector<Migration> rest,
                       PlanMigrations({Done(Step("b", 1))}, wanted));
  EXPECT_THAT(Names(rest), ::testing::ElementsAre("a1", "b2"));
}

TEST(MigrationsTest, RoomsItDoesNotNameAreLeftAlone) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Migration> plan,
                       PlanMigrations({Done(Step("other", 7))}, {Step("a", 1)}));
  EXPECT_THAT(Names(plan), ::testing::ElementsAre("a1"));
}

TEST(MigrationsTest, VersionsMustCountUp) {
  for (const int version : {0, 2, -1}) {
    EXPECT_THAT(PlanMigrations({}, {Step("a", version)}), Fails(ErrorCode::kInvalidArgument));
  }
  EXPECT_THAT(PlanMigrations({}, {Step("a", 1), Step("a", 1)}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(PlanMigrations({}, {Step("", 1)}), Fails(ErrorCode::kInvalidArgument));
}

TEST(MigrationsTest, ANewerDatabaseIsRefused) {
  EXPECT_THAT(PlanMigrations({Done(Step("a", 1)), Done(Step("a", 2))}, {Step("a", 1)}),
              FailsWith(ErrorCode::kFailedPrecondition, "room a is at 2, this program knows 1"));
}

TEST(MigrationsTest, AChangedStepIsRefused) {
  EXPECT_THAT(PlanMigrations({Done(Step("a", 1, "old"))}, {Step("a", 1, "changed")}),
              FailsWith(ErrorCode::kFailedPrecondition, "migration 1 of room a"));
}

}  // namespace
}  // namespace tarn::metastore
