#include "tarn/base/crash_point.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

namespace tarn {

namespace {

struct Armed {
  std::string name;
  int64_t pass = 1;
  std::atomic<int64_t> passes{0};
};

// "<name>[:<n>]". Never freed: other threads may be looking at it, and there is one per process.
Armed* ParseArmed(std::string_view text) {
  auto* armed = new Armed;
  armed->name = text;
  const size_t colon = armed->name.rfind(':');
  if (colon != std::string::npos) {
    armed->pass = std::atoll(armed->name.c_str() + colon + 1);
    armed->name.resize(colon);
  }
  return armed;
}

std::atomic<Armed*>& ArmedPoint() {
  static std::atomic<Armed*> armed = [] {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, before threads change the environment.
    const char* value = std::getenv("TARN_CRASH_POINT");
    return ParseArmed(value == nullptr ? "" : value);
  }();
  return armed;
}

}  // namespace

void CrashPoint(std::string_view name) {
  Armed* armed = ArmedPoint().load(std::memory_order_acquire);
  if (armed->name.empty() || armed->name != name) [[likely]] {
    return;
  }
  if (armed->passes.fetch_add(1) + 1 == armed->pass) {
    ::kill(::getpid(), SIGKILL);
    ::pause();
  }
}

void ArmCrashPoint(std::string_view text) {
  ArmedPoint().store(ParseArmed(text), std::memory_order_release);
}

}  // namespace tarn
