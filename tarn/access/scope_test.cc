#include "tarn/access/scope.h"

#include "test/support/matchers.h"

namespace tarn::access {
namespace {

TEST(ScopeTest, SetsRoundTripThroughText) {
  EXPECT_THAT(ScopeSet::Parse(ScopeSet::All().ToString()), IsOkAndHolds(ScopeSet::All()));
  EXPECT_THAT(ScopeSet::Parse(""), IsOkAndHolds(ScopeSet()));
  EXPECT_THAT(ScopeSet::Parse("  api:sql-queries-execute api:datasets-read "),
              IsOkAndHolds(ScopeSet::Of({Scope::kDatasetsRead, Scope::kSqlQueriesExecute})));
  EXPECT_EQ(ScopeSet::Of({Scope::kPipelinesWrite, Scope::kDatasetsRead}).ToString(),
            "api:datasets-read api:pipelines-write");
}

TEST(ScopeTest, AllHoldsEachAndTheEmptySetNone) {
  for (int i = 0; i <= static_cast<int>(Scope::kPipelinesWrite); ++i) {
    const auto scope = static_cast<Scope>(i);
    EXPECT_TRUE(ScopeSet::All().Contains(scope));
    EXPECT_FALSE(ScopeSet().Contains(scope));
    EXPECT_THAT(ParseScope(ScopeName(scope)), IsOkAndHolds(scope));
  }
}

TEST(ScopeTest, IntersectKeepsWhatBothHave) {
  const ScopeSet a = ScopeSet::Of({Scope::kDatasetsRead, Scope::kAdminRead});
  const ScopeSet b = ScopeSet::Of({Scope::kAdminRead, Scope::kAdminWrite});
  EXPECT_EQ(a.Intersect(b), ScopeSet::Of({Scope::kAdminRead}));
}

TEST(ScopeTest, UnknownScopesAreNamed) {
  EXPECT_THAT(ScopeSet::Parse("api:datasets-read api:everything"),
              FailsWith(ErrorCode::kInvalidArgument, "api:everything"));
  EXPECT_THAT(ParseScope("datasets-read"), Fails(ErrorCode::kInvalidArgument));
}

}  // namespace
}  // namespace tarn::access
