#include "tarn/base/sql_name.h"

#include <gtest/gtest.h>

namespace tarn {
namespace {

TEST(SqlNameTest, QuotesAreDoubledAndNulIsLeftOut) {
  EXPECT_EQ(QuoteSqlName("a b"), "\"a b\"");
  EXPECT_EQ(QuoteSqlName("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(QuoteSqlName(std::string_view("a\0b", 3)), "\"ab\"");
  EXPECT_EQ(QuoteSqlName(""), "\"\"");
}

}  // namespace
}  // namespace tarn
