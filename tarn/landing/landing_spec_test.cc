#include "tarn/landing/landing_spec.h"

#include "test/support/matchers.h"

namespace tarn::landing {
namespace {

TEST(LandingSpecTest, PercentStandsForAnyCharacters) {
  EXPECT_TRUE(MatchesPattern("shop.%", "shop.customers"));
  EXPECT_TRUE(MatchesPattern("%.customers", "shop.customers"));
  EXPECT_TRUE(MatchesPattern("%", ""));
  EXPECT_TRUE(MatchesPattern("s%p.c%s", "shop.customers"));
  EXPECT_FALSE(MatchesPattern("shop.%", "shopping.x"));
  EXPECT_FALSE(MatchesPattern("shop.customers", "shop.customers2"));
  EXPECT_FALSE(MatchesPattern("a_c", "abc"));
}

}  // namespace
}  // namespace tarn::landing
