#include "tarn/transform/column_plan.h"

#include <gtest/gtest.h>

namespace tarn::transform {
namespace {

TEST(ColumnPlanTest, PatternsMatchWithoutCase) {
  EXPECT_TRUE(MatchesPattern("abc", "ABC"));
  EXPECT_FALSE(MatchesPattern("abc", "abcd"));
  EXPECT_TRUE(MatchesPattern("%", ""));
  EXPECT_TRUE(MatchesPattern("%_id", "customer_ID"));
  EXPECT_TRUE(MatchesPattern("a%c%e", "abcde"));
  EXPECT_TRUE(MatchesPattern("a%b", "aXbXb"));
  EXPECT_FALSE(MatchesPattern("a%b", "aXbXc"));
  EXPECT_FALSE(MatchesPattern("", "a"));
  EXPECT_TRUE(MatchesPattern("a_c", "a_c"));
  EXPECT_FALSE(MatchesPattern("a_c", "abc")) << "_ is only itself";
}

}  // namespace
}  // namespace tarn::transform
