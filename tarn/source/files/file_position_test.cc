#include "tarn/source/files/file_position.h"

#include "test/support/matchers.h"

namespace tarn::source::files {
namespace {

TEST(FilePositionTest, OutcomesHaveNamesThatReadBack) {
  for (const FileOutcome outcome :
       {FileOutcome::kLoaded, FileOutcome::kChangedWhileRead, FileOutcome::kEmpty,
        FileOutcome::kUnreadable, FileOutcome::kChangedIgnored, FileOutcome::kTouched}) {
    EXPECT_THAT(ParseFileOutcome(FileOutcomeName(outcome)), IsOkAndHolds(outcome));
  }
  EXPECT_EQ(FileOutcomeName(FileOutcome::kTouched), "touched");
  EXPECT_THAT(ParseFileOutcome("Loaded"), FailsWith(ErrorCode::kInvalidArgument, "\"Loaded\""));
}

}  // namespace
}  // namespace tarn::source::files
