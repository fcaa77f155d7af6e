#include "tarn/base/check.h"

#include "tarn/base/status.h"
#include "test/support/matchers.h"

namespace tarn {
namespace {

TEST(CheckDeathTest, AbortsWithTheConditionAndPlace) {
  TARN_CHECK(1 + 1 == 2);
  EXPECT_DEATH(TARN_CHECK(1 + 1 == 3), "check_test.cc:.*check failed: 1 \\+ 1 == 3");
}

TEST(CheckDeathTest, AMissingValueShowsItsFailure) {
  const Result<int> result = Status::NotFound("no such thing");
  EXPECT_DEATH(static_cast<void>(result.value()), "NotFound: no such thing");
}

}  // namespace
}  // namespace tarn
