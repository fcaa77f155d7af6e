#include "tarn/cli/interrupt.h"

#include <csignal>

#include <gtest/gtest.h>

#include "test/support/matchers.h"

namespace tarn::cli {
namespace {

TEST(InterruptTest, ASignalIsNotedWhileSomebodyWatches) {
  {
    const InterruptWatch watch;
    EXPECT_OK(InterruptWatch::Check());
    std::raise(SIGTERM);
    EXPECT_EQ(InterruptWatch::Check().code(), ErrorCode::kCancelled);
  }
  EXPECT_OK(InterruptWatch::Check());
}

TEST(InterruptTest, TheSecondOneEndsTheProcess) {
  EXPECT_EXIT(
      {
        const InterruptWatch watch;
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace tarn::cli
