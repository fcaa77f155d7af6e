#include "test/support/child_process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include <gtest/gtest.h>

#include "tarn/base/check.h"
#include "tarn/base/crash_point.h"

namespace tarn {

namespace {

constexpr int kPassed = 0;
constexpr int kFailed = 1;
constexpr unsigned kNobody = 65534;

int StatusOfChild(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  TARN_CHECK(child >= 0);
  if (child == 0) {
    // An exception must not unwind into the parent's test runner, which would go on in both.
    try {
      body();
    } catch (const std::exception& exception) {
      ADD_FAILURE() << "exception in the child: " << exception.what();
    }
    std::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? kFailed : kPassed);
  }
  int status = 0;
  TARN_CHECK(::waitpid(child, &status, 0) == child);
  return status;
}

bool Passed(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == kPassed; }

}  // namespace

bool PassesInChild(const std::function<void()>& body) { return Passed(StatusOfChild(body)); }

bool PassesUnprivileged(const std::function<void()>& body) {
  return PassesInChild([&body] {
    if (::geteuid() == 0) {
      TARN_CHECK(::setgid(kNobody) == 0);
      TARN_CHECK(::setuid(kNobody) == 0);
    }
    body();
  });
}

bool DiesAtCrashPoint(const char* point, const std::function<void()>& body) {
  const int status = StatusOfChild([&] {
    ArmCrashPoint(point);
    body();
  });
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace tarn
