#include "tarn/storage/faulty_store.h"

#include "tarn/storage/memory_store.h"
#include "test/support/matchers.h"

namespace tarn::storage {
namespace {

class FaultyStoreTest : public ::testing::Test {
 protected:
  SystemClock clock_;
  MemoryStore store_{clock_};
};

TEST_F(FaultyStoreTest, FailsTheNthOperationAndCounts) {
  FaultyStore faulty(store_, {.fail_at = 2, .code = ErrorCode::kDeadlineExceeded});
  EXPECT_THAT(faulty.Head("a"), Fails(ErrorCode::kNotFound));
  EXPECT_FALSE(faulty.failed());
  EXPECT_THAT(faulty.List({}), FailsWith(ErrorCode::kDeadlineExceeded, "injected: List"));
  EXPECT_OK(faulty.List({}));
  EXPECT_EQ(faulty.operation_count(), 3);
  EXPECT_TRUE(faulty.failed());
  faulty.Rearm({.fail_at = 1, .fail_count = 2});
  EXPECT_THAT(faulty.List({}), Fails(ErrorCode::kUnavailable));
  EXPECT_THAT(faulty.List({}), Fails(ErrorCode::kUnavailable));
  EXPECT_OK(faulty.List({}));
}

TEST_F(FaultyStoreTest, CountsOneKindOnly) {
  FaultyStore faulty(store_, {.fail_at = 1, .only = StoreOperation::kClose});
  EXPECT_THAT(WriteObject(faulty, "a", "x", WriteMode::kOverwrite),
              FailsWith(ErrorCode::kUnavailable, "Close of \"a\""));
  EXPECT_EQ(store_.object_count(), 0u);
  EXPECT_OK(WriteObject(faulty, "a", "x", WriteMode::kOverwrite));
  EXPECT_EQ(faulty.operation_count(), 2);
}

TEST_F(FaultyStoreTest, AfterEffectTheOutcomeIsThereButUnknown) {
  FaultyStore faulty(
      store_, {.fail_at = 1, .mode = FaultMode::kAfterEffect, .only = StoreOperation::kClose});
  EXPECT_THAT(WriteObject(faulty, "a", "x", WriteMode::kOverwrite),
              Fails(ErrorCode::kCommitStateUnknown));
  EXPECT_THAT(ReadObject(store_, "a"), IsOkAndHolds(std::string("x")));
  faulty.Rearm({.fail_at = 1, .mode = FaultMode::kAfterEffect});
  EXPECT_THAT(faulty.Delete("a"), Fails(ErrorCode::kUnavailable));
  EXPECT_EQ(store_.object_count(), 0u);
}

TEST_F(FaultyStoreTest, AFailureOfTheStoreItselfIsNotHidden) {
  EXPECT_OK(WriteObject(store_, "a", "x", WriteMode::kOverwrite));
  FaultyStore faulty(store_, {.mode = FaultMode::kAfterEffect, .only = StoreOperation::kClose});
  ASSERT_OK_AND_ASSIGN(const auto writer, faulty.OpenWriter("b", WriteMode::kPutIfAbsent));
  EXPECT_OK(WriteObject(store_, "b", "y", WriteMode::kOverwrite));
  faulty.Rearm({.fail_at = 1, .mode = FaultMode::kAfterEffect});
  EXPECT_THAT(writer->Close(), Fails(ErrorCode::kAlreadyExists));
}

TEST_F(FaultyStoreTest, AShortWriteBreaksTheWriter) {
  FaultyStore faulty(
      store_, {.fail_at = 1, .mode = FaultMode::kShortWrite, .only = StoreOperation::kWrite});
  ASSERT_OK_AND_ASSIGN(const auto writer, faulty.OpenWriter("a", WriteMode::kOverwrite));
  EXPECT_THAT(writer->Write("0123"), Fails(ErrorCode::kUnavailable));
  EXPECT_THAT(writer->Write("4567"), Fails(ErrorCode::kFailedPrecondition));
  EXPECT_THAT(writer->Close(), Fails(ErrorCode::kFailedPrecondition));
  EXPECT_EQ(store_.object_count(), 0u);
}

TEST_F(FaultyStoreTest, ReadsAndOpensFailToo) {
  EXPECT_OK(WriteObject(store_, "a", "x", WriteMode::kOverwrite));
  int64_t failures = 0;
  for (int64_t n = 1;; ++n) {
    FaultyStore faulty(store_, {.fail_at = n});
    const Result<std::string> read = ReadObject(faulty, "a");
    if (!faulty.failed()) {
      EXPECT_THAT(read, IsOkAndHolds(std::string("x")));
      break;
    }
    EXPECT_THAT(read, Fails(ErrorCode::kUnavailable));
    ++failures;
  }
  EXPECT_EQ(failures, 2);
}

}  // namespace
}  // namespace tarn::storage
