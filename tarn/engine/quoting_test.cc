#include "tarn/engine/quoting.h"

#include <gtest/gtest.h>

namespace tarn::engine {
namespace {

TEST(QuotingTest, NamesAndTexts) {
  EXPECT_EQ(QuoteName("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(QuoteName(std::string_view("a\0b", 3)), "\"ab\"");
  EXPECT_EQ(QuoteNames({"a", "b.c"}), "\"a\".\"b.c\"");
  EXPECT_EQ(QuoteText("it's"), "'it''s'");
  EXPECT_EQ(QuoteText("\\n"), "'\\n'");
  EXPECT_EQ(QuoteText(std::string_view("a\0", 2)), "('a'||chr(0)||'')");
  EXPECT_EQ(QuoteTextList({}), "[]");
  EXPECT_EQ(QuoteTextList({"a", "b'"}), "['a', 'b''']");
}

}  // namespace
}  // namespace tarn::engine
