#include "tarn/cli/progress.h"

#include "test/support/matchers.h"

namespace tarn::cli {
namespace {

TEST(ProgressTest, Sizes) {
  EXPECT_EQ(FormatSize(0), "0 B");
  EXPECT_EQ(FormatSize(1023), "1023 B");
  EXPECT_EQ(FormatSize(1536), "1.5 KiB");
  EXPECT_EQ(FormatSize(uint64_t{5} << 30), "5.0 GiB");
}

TEST(ProgressTest, BarShareAndRate) {
  const std::string half = FormatProgress("f", 1 << 20, 2 << 20, 2);
  EXPECT_THAT(half, testing::HasSubstr("[###############...............]  50 %"));
  EXPECT_THAT(half, testing::HasSubstr("512.0 KiB/s"));
  EXPECT_THAT(FormatProgress("empty", 0, 0, 0), testing::HasSubstr("100 %"));
  EXPECT_THAT(FormatProgress("unknown", 10, 0, 1), testing::Not(testing::HasSubstr("%")));
  EXPECT_THAT(FormatProgress("more than stated", 30, 20, 1), testing::HasSubstr("100 %"));
}

TEST(ProgressTest, SilentUnlessATerminal) {
  std::FILE* const file = std::tmpfile();
  {
    ProgressBar bar("x", file);
    bar.Update(1, 2);
  }
  EXPECT_EQ(std::ftell(file), 0);
  std::fclose(file);
}

}  // namespace
}  // namespace tarn::cli
