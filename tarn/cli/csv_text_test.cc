#include "tarn/cli/csv_text.h"

#include "test/support/matchers.h"

namespace tarn::cli {
namespace {

TEST(CsvTextTest, ReadsQuotesNewlinesAndEmptyFields) {
  ASSERT_OK_AND_ASSIGN(const Table table, ParseCsv("a,b\r\n1,\"x\"\"y,\nz\"\r\n,\n\"\",last"));
  EXPECT_EQ(table.columns, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(table.rows,
            (std::vector<std::vector<std::string>>{{"1", "x\"y,\nz"}, {"", ""}, {"", "last"}}));
  EXPECT_TRUE(ParseCsv("")->columns.empty());
}

TEST(CsvTextTest, BrokenTextIsRefused) {
  EXPECT_THAT(ParseCsv("a\n\"open"), Fails(ErrorCode::kCorruption));
  EXPECT_THAT(ParseCsv("a,b\n1\n"), FailsWith(ErrorCode::kCorruption, "record 1"));
}

}  // namespace
}  // namespace tarn::cli
