#include "tarn/metastore/home_lock.h"

#include <unistd.h>

#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::metastore {
namespace {

TEST(HomeLockTest, ASecondHolderIsToldWhoTheFirstIs) {
  const TemporaryDirectory folder;
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<HomeLock> lock, HomeLock::Acquire(folder.path()));
  const Result<std::unique_ptr<HomeLock>> second = HomeLock::Acquire(folder.path());
  EXPECT_THAT(second, FailsWith(ErrorCode::kFailedPrecondition, folder.path().string()));
  EXPECT_THAT(second,
              FailsWith(ErrorCode::kFailedPrecondition, "process " + std::to_string(::getpid())));
  lock.reset();
  EXPECT_THAT(HomeLock::Acquire(folder.path()), IsOk());
}

TEST(HomeLockTest, AMissingFolderIsNamed) {
  EXPECT_THAT(HomeLock::Acquire("/nowhere/at/all"),
              FailsWith(ErrorCode::kUnavailable, "/nowhere/at/all"));
}

}  // namespace
}  // namespace tarn::metastore
