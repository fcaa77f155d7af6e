#include "tarn/source/files/file_selection.h"

#include "test/support/matchers.h"

namespace tarn::source::files {
namespace {

using ::testing::Optional;

TEST(FileSelectionTest, NamesTheRuleThatExcludes) {
  ASSERT_OK_AND_ASSIGN(const FileSelection selection,
                       FileSelection::Parse({"*"}, {"*.tmp", "a/<yyyy>.csv"}, {"done", "x/y/"}));
  EXPECT_THAT(selection.ExcludedBy("a.tmp"), Optional(std::string("*.tmp")));
  EXPECT_THAT(selection.ExcludedBy("a/2026.csv"), Optional(std::string("a/<yyyy>.csv")));
  EXPECT_THAT(selection.ExcludedBy("done/a/b.csv"), Optional(std::string("done/")));
  EXPECT_THAT(selection.ExcludedBy("x/y/z"), Optional(std::string("x/y/")));
  for (const char* key : {"a.csv", "b/a.tmp", "done", "done2/a", "x/yz"}) {
    EXPECT_EQ(selection.ExcludedBy(key), std::nullopt) << key;
  }
}

TEST(FileSelectionTest, BadRulesAreRefused) {
  EXPECT_THAT(FileSelection::Parse({}, {}, {}),
              FailsWith(ErrorCode::kInvalidArgument, "name at least one"));
  EXPECT_THAT(FileSelection::Parse({"*"}, {"**"}, {}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(FileSelection::Parse({"*"}, {}, {"../x"}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(FileSelection::Parse({"*"}, {}, {""}), Fails(ErrorCode::kInvalidArgument));
}

}  // namespace
}  // namespace tarn::source::files
