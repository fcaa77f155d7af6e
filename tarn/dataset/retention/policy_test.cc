#include "tarn/dataset/retention/policy.h"

#include "test/support/matchers.h"

namespace tarn::dataset::retention {
namespace {

using ::testing::HasSubstr;

TEST(PolicyTest, AFullPolicyComesBackAsItWas) {
  RetentionPolicy policy;
  policy.name = "old";
  policy.datasets.datasets = {"ri.foundry.main.dataset.00000000-0000-4000-8000-000000000001"};
  policy.datasets.folders = {"ri.compass.main.folder.00000000-0000-4000-8000-000000000002"};
  policy.datasets.derived = true;
  policy.datasets.in_trash = false;
  policy.transactions = {.branch_in = {"master"},
                         .branch_not_in = {"keep"},
                         .keep_newest = 3,
                         .keep_views = 2,
                         .older_than = std::chrono::hours(24),
                         .view_older_than = std::chrono::hours(48),
                         .no_file_in_active_view = true,
                         .aborted = false};
  policy.grace = std::chrono::hours(1);
  policy.latest_view = LatestView::kDelete;
  EXPECT_THAT(ParsePolicy(FormatPolicy(policy)), IsOkAndHolds(policy));
}

TEST(PolicyTest, TheGraceIsAWeek) {
  ASSERT_OK_AND_ASSIGN(const RetentionPolicy policy, ParsePolicy(R"({"name":"a","datasets":
      {"all":true},"transactions":{"aborted":true}})"));
  EXPECT_EQ(policy.grace, std::chrono::hours(168));
}

struct Bad {
  const char* json;
  const char* says;
};

class BadPolicyTest : public ::testing::TestWithParam<Bad> {};

TEST_P(BadPolicyTest, IsRefusedByTheMemberAtFault) {
  const Result<RetentionPolicy> parsed = ParsePolicy(GetParam().json);
  EXPECT_THAT(parsed, Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(parsed.status().message(), HasSubstr(GetParam().says));
  EXPECT_EQ(parsed.status().reason(), "InvalidRetentionPolicy");
}

INSTANTIATE_TEST_SUITE_P(
    Policies, BadPolicyTest,
    ::testing::Values(
        Bad{"{", "no JSON"}, Bad{"[]", "must be an object"}, Bad{"{}", "name"},
        Bad{R"({"name":""})", "1 to 256"}, Bad{R"({"name":"a","bogus":1})", "bogus"},
        Bad{R"({"name":"a"})", "datasets"},
        Bad{R"({"name":"a","datasets":{},"transactions":{"aborted":true}})", "selects nothing"},
        Bad{R"({"name":"a","datasets":{"all":1},"transactions":{"aborted":true}})", "all"},
        Bad{R"({"name":"a","datasets":{"rids":["x"]},"transactions":{"aborted":true}})",
            "resource identifier"},
        Bad{R"({"name":"a","datasets":{"rids":[]},"transactions":{"aborted":true}})", "not empty"},
        Bad{R"({"name":"a","datasets":{"all":true},"transactions":{}})", "every transaction"},
        Bad{R"({"name":"a","datasets":{"all":true},"transactions":{"branchIn":["m"]}})",
            "every transaction"},
        Bad{R"({"name":"a","datasets":{"all":true},"transactions":{"keepNewest":0}})",
            "keepNewest"},
        Bad{R"({"name":"a","datasets":{"all":true},"transactions":{"olderThan":5}})", "olderThan"},
        Bad{R"({"name":"a","datasets":{"all":true},"transactions":{"olderThan":"x"}})",
            "olderThan"},
        Bad{R"({"name":"a","datasets":{"all":true},"transactions":{"aborted":true},
                "latestView":"no"})",
            "latestView"},
        Bad{R"({"name":"a","datasets":{"all":true},"transactions":{"aborted":true},
                "latestView":"delete"})",
            "latestView"},
        Bad{R"({"name":"a","datasets":{"all":true},"transactions":{"aborted":true},"grace":""})",
            "grace"}));

TEST(PolicyTest, EveryConditionGivenMustHold) {
  const Timestamp now = FromMillis(1'000'000);
  TransactionFacts facts{.aborted = false,
                         .branch = "master",
                         .closed_at = now - std::chrono::seconds(100),
                         .view_closed_at = now - std::chrono::seconds(50),
                         .among_newest = false,
                         .in_kept_view = false,
                         .in_active_view = false};
  const TransactionSelector all{.branch_in = {"master"},
                                .branch_not_in = {"x"},
                                .keep_newest = 1,
                                .keep_views = 1,
                                .older_than = std::chrono::seconds(100),
                                .view_older_than = std::chrono::seconds(50),
                                .no_file_in_active_view = true,
                                .aborted = false};
  EXPECT_TRUE(Selects(all, facts, now));
  EXPECT_FALSE(Selects(all, facts, now - std::chrono::milliseconds(1)));
  const auto without = [&](auto change) {
    TransactionFacts changed = facts;
    change(changed);
    return Selects(all, changed, now);
  };
  EXPECT_FALSE(without([](auto& f) { f.aborted = true; }));
  EXPECT_FALSE(without([](auto& f) { f.branch = "other"; }));
  EXPECT_FALSE(without([](auto& f) { f.branch.reset(); }));
  EXPECT_FALSE(without([&](auto& f) { f.view_closed_at = now; }));
  EXPECT_FALSE(without([](auto& f) { f.among_newest = true; }));
  EXPECT_FALSE(without([](auto& f) { f.in_kept_view = true; }));
  EXPECT_FALSE(without([](auto& f) { f.in_active_view = true; }));
}

TEST(PolicyTest, ADeletedBranchIsNotAmongTheExcludedOnes) {
  TransactionSelector selector;
  selector.branch_not_in = {"master"};
  EXPECT_TRUE(selector.SelectsBranch(std::nullopt));
  EXPECT_FALSE(selector.SelectsBranch("master"));
}

}  // namespace
}  // namespace tarn::dataset::retention
