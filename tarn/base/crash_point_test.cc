#include "tarn/base/crash_point.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "test/support/matchers.h"

namespace tarn {
namespace {

// Runs `passes` passes through "here" in a child with the variable set; how the child ended.
int EndOfChild(const char* armed, int passes) {
  const pid_t child = ::fork();
  if (child == 0) {
    // The variable is read at the first pass, and this process has made none.
    ::setenv("TARN_CRASH_POINT", armed, 1);
    for (int i = 0; i < passes; ++i) {
      CrashPoint("here");
      CrashPoint("elsewhere");
    }
    ::_exit(7);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

bool WasKilled(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }
bool Survived(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 7; }

TEST(CrashPointTest, DiesAtTheArmedPass) {
  EXPECT_TRUE(WasKilled(EndOfChild("here", 1)));
  EXPECT_TRUE(WasKilled(EndOfChild("here:3", 3)));
  EXPECT_TRUE(Survived(EndOfChild("here:3", 2)));
}

TEST(CrashPointTest, ArmingReplacesTheEnvironment) {
  const pid_t child = ::fork();
  if (child == 0) {
    CrashPoint("here");
    ArmCrashPoint("here:2");
    CrashPoint("here");
    CrashPoint("here");
    ::_exit(7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WasKilled(status));
}

TEST(CrashPointTest, OtherNamesDoNotCount) {
  EXPECT_TRUE(Survived(EndOfChild("nowhere", 5)));
  EXPECT_TRUE(Survived(EndOfChild("", 5)));
  EXPECT_TRUE(WasKilled(EndOfChild("elsewhere:5", 5)));
}

}  // namespace
}  // namespace tarn
