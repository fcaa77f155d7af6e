#include "tarn/server/foundry/spark_names.h"

#include <gtest/gtest.h>

#include "test/support/matchers.h"

namespace tarn::server::foundry {
namespace {

TEST(SparkNamesTest, BackticksBecomeQuotes) {
  EXPECT_THAT(QuoteSparkNames("SELECT `a b`, x FROM `/Space/p/d`"),
              IsOkAndHolds(std::string("SELECT \"a b\", x FROM \"/Space/p/d\"")));
  EXPECT_THAT(QuoteSparkNames("`a``b\"c`"), IsOkAndHolds(std::string("\"a`b\"\"c\"")));
  EXPECT_THAT(QuoteSparkNames("``"), IsOkAndHolds(std::string("\"\"")));
  EXPECT_THAT(QuoteSparkNames(""), IsOkAndHolds(std::string()));
}

TEST(SparkNamesTest, TextsAndCommentsStay) {
  for (const std::string sql : {"SELECT 'a `b` ''c' -- `d`\nFROM x",
                                "SELECT \"a`b\" /* `c` */ FROM x", "SELECT '`", "-- `", "/* `"}) {
    EXPECT_THAT(QuoteSparkNames(sql), IsOkAndHolds(sql));
  }
}

TEST(SparkNamesTest, AnOpenNameIsRefused) {
  EXPECT_THAT(QuoteSparkNames("SELECT `a"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(QuoteSparkNames("`"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(QuoteSparkNames("`a``"), Fails(ErrorCode::kInvalidArgument));
}

}  // namespace
}  // namespace tarn::server::foundry
