#include "tarn/source/files/loaded_files.h"

#include "tarn/storage/faulty_store.h"
#include "tarn/storage/memory_store.h"
#include "test/support/matchers.h"

namespace tarn::source::files {
namespace {

using storage::FaultMode;
using storage::FaultyStore;

class LoadedFilesTest : public ::testing::Test {
 protected:
  LedgerEntry Put(const std::string& key, const std::string& bytes) {
    const storage::ObjectMeta meta =
        storage::WriteObject(store_, key, bytes, storage::WriteMode::kOverwrite).value();
    return {
        .key = key,
        .version = {.etag = meta.etag, .size_bytes = meta.size_bytes, .modified = meta.modified},
        .outcome = FileOutcome::kLoaded,
        .loaded = true};
  }
  static std::vector<RemovalOutcome> OutcomesOf(const std::vector<Removal>& removals) {
    std::vector<RemovalOutcome> outcomes;
    for (const Removal& removal : removals) {
      outcomes.push_back(removal.outcome);
    }
    return outcomes;
  }
  std::vector<std::string> Keys() {
    const storage::ListPage page = store_.List({}).value();
    std::vector<std::string> keys;
    for (const storage::ObjectMeta& object : page.objects) {
      keys.push_back(object.key);
    }
    return keys;
  }

  SystemClock clock_;
  storage::MemoryStore store_{clock_};
};

TEST_F(LoadedFilesTest, OnlyTheLoadedVersionIsDeleted) {
  const LedgerEntry plain = Put("a", "1");
  const LedgerEntry changed = Put("b", "2");
  const LedgerEntry gone = Put("c", "3");
  LedgerEntry rejected = Put("d", "4");
  rejected.outcome = FileOutcome::kUnreadable;
  Put("b", "5");
  EXPECT_OK(store_.Delete("c"));
  const std::vector<LedgerEntry> loaded = {plain, changed, gone, rejected};
  const std::vector<RemovalOutcome> expected = {RemovalOutcome::kRemoved, RemovalOutcome::kChanged,
                                                RemovalOutcome::kAlreadyGone,
                                                RemovalOutcome::kChanged};
  EXPECT_EQ(OutcomesOf(RemoveLoaded(store_, loaded, VersionKind::kEtag, RunMode::kDryRun)),
            expected);
  EXPECT_THAT(Keys(), ::testing::ElementsAre("a", "b", "d"));
  EXPECT_EQ(OutcomesOf(RemoveLoaded(store_, loaded, VersionKind::kEtag, RunMode::kDoIt)), expected);
  EXPECT_THAT(Keys(), ::testing::ElementsAre("b", "d"));
}

TEST_F(LoadedFilesTest, MovingKeepsThePathBelowThePrefix) {
  const LedgerEntry entry = Put("2026/a", "bytes");
  ASSERT_OK_AND_ASSIGN(const auto dry,
                       MoveLoaded(store_, {entry}, VersionKind::kEtag, "done", RunMode::kDryRun));
  EXPECT_EQ(OutcomesOf(dry), std::vector{RemovalOutcome::kRemoved});
  EXPECT_THAT(Keys(), ::testing::ElementsAre("2026/a"));
  ASSERT_OK_AND_ASSIGN(const auto moved,
                       MoveLoaded(store_, {entry}, VersionKind::kEtag, "done/", RunMode::kDoIt));
  EXPECT_EQ(OutcomesOf(moved), std::vector{RemovalOutcome::kRemoved});
  EXPECT_THAT(Keys(), ::testing::ElementsAre("done/2026/a"));
  EXPECT_THAT(storage::ReadObject(store_, "done/2026/a"), IsOkAndHolds(std::string("bytes")));
  EXPECT_THAT(MoveLoaded(store_, {entry}, VersionKind::kEtag, "../x", RunMode::kDoIt),
              Fails(ErrorCode::kInvalidArgument));
}

TEST_F(LoadedFilesTest, AnotherFileInTheWayIsAFailureAndNothingIsLost) {
  const LedgerEntry entry = Put("a", "mine");
  Put("done/a", "other");
  ASSERT_OK_AND_ASSIGN(const auto moved,
                       MoveLoaded(store_, {entry}, VersionKind::kEtag, "done", RunMode::kDoIt));
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved[0].outcome, RemovalOutcome::kFailed);
  EXPECT_THAT(moved[0].status, FailsWith(ErrorCode::kAlreadyExists, "\"done/a\""));
  EXPECT_THAT(Keys(), ::testing::ElementsAre("a", "done/a"));
}

TEST_F(LoadedFilesTest, MovingMayBeRepeatedAfterAnyFailure) {
  for (const FaultMode mode :
       {FaultMode::kBeforeEffect, FaultMode::kAfterEffect, FaultMode::kShortWrite}) {
    int64_t failures = 0;
    for (int64_t n = 1;; ++n) {
      const LedgerEntry entry = Put("a", "bytes");
      EXPECT_OK(store_.Delete("done/a"));
      FaultyStore faulty(store_, {.fail_at = n, .mode = mode});
      ASSERT_OK_AND_ASSIGN(const auto first,
                           MoveLoaded(faulty, {entry}, VersionKind::kEtag, "done", RunMode::kDoIt));
      if (!faulty.failed()) {
        break;
      }
      ++failures;
      EXPECT_EQ(first[0].outcome, RemovalOutcome::kFailed) << n;
      const bool is_here = store_.Head("a").ok();
      EXPECT_TRUE(is_here || store_.Head("done/a").ok()) << n;
      ASSERT_OK_AND_ASSIGN(const auto second,
                           MoveLoaded(faulty, {entry}, VersionKind::kEtag, "done", RunMode::kDoIt));
      EXPECT_EQ(second[0].outcome,
                is_here ? RemovalOutcome::kRemoved : RemovalOutcome::kAlreadyGone);
      EXPECT_THAT(Keys(), ::testing::ElementsAre("done/a"));
    }
    EXPECT_EQ(failures, 8);
  }
}

TEST_F(LoadedFilesTest, AFailedDeleteIsTriedAgainLater) {
  const LedgerEntry entry = Put("a", "x");
  FaultyStore faulty(store_, {.fail_at = 2});
  const auto removals = RemoveLoaded(faulty, {entry}, VersionKind::kEtag, RunMode::kDoIt);
  EXPECT_EQ(removals[0].outcome, RemovalOutcome::kFailed);
  EXPECT_THAT(removals[0].status, Fails(ErrorCode::kUnavailable));
  EXPECT_EQ(OutcomesOf(RemoveLoaded(faulty, {entry}, VersionKind::kEtag, RunMode::kDoIt)),
            std::vector{RemovalOutcome::kRemoved});
}

}  // namespace
}  // namespace tarn::source::files
