#include "tarn/base/crash_point.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace tarn {

namespace {

struct Armed {
  std::string name;
  int64_t pass = 1;
};

const Armed& ArmedPoint() {
  static const Armed kArmed = [] {
    Armed armed;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, before threads change the environment.
    const char* value = std::getenv("TARN_CRASH_POINT");
    if (value != nullptr) {
      armed.name = value;
      const size_t colon = armed.name.rfind(':');
      if (colon != std::string::npos) {
        armed.pass = std::atoll(armed.name.c_str() + colon + 1);
        armed.name.resize(colon);
      }
    }
    return armed;
  }();
  return kArmed;
}

}  // namespace

void CrashPoint(std::string_view name) {
  const Armed& armed = ArmedPoint();
  if (armed.name.empty() || armed.name != name) [[likely]] {
    return;
  }
  static std::atomic<int64_t> passes{0};
  if (passes.fetch_add(1) + 1 == armed.pass) {
    ::kill(::getpid(), SIGKILL);
    ::pause();
  }
}

}  // namespace tarn
