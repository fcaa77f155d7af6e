#include "tarn/cli/dataset_graph.h"

#include "test/support/matchers.h"

namespace tarn::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DatasetGraphTest, AChainIsOneColumn) {
  EXPECT_THAT(DrawGraph({{"b", "a", {}, "second"}, {"a", {}, {}, "first"}}),
              ElementsAre("* second", "* first"));
  EXPECT_THAT(DrawGraph({}), IsEmpty());
}

TEST(DatasetGraphTest, BranchesJoinWhereTheyBegan) {
  EXPECT_THAT(DrawGraph({{"c", "a", {}, "c"}, {"b", "a", {}, "b"}, {"a", {}, {}, "a"}}),
              ElementsAre("* c", "| * b", "| /", "* a"));
}

TEST(DatasetGraphTest, AMergeOpensAColumnForWhatItTook) {
  EXPECT_THAT(
      DrawGraph(
          {{"m", "c", "b", "m"}, {"c", "a", {}, "c"}, {"b", "a", {}, "b"}, {"a", {}, {}, "a"}}),
      ElementsAre("* m", "* | c", "| * b", "| /", "* a"));
}

TEST(DatasetGraphTest, UnrelatedRootsStandSideBySide) {
  EXPECT_THAT(DrawGraph({{"y", "x", {}, "y"}, {"a", {}, {}, "a"}, {"x", {}, {}, "x"}}),
              ElementsAre("* y", "| * a", "* x"));
}

}  // namespace
}  // namespace tarn::cli
