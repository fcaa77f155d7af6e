// Time as a dependency: every test decides what time it is.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

#include "tarn/base/status.h"

namespace tarn {

/// An instant, UTC, microseconds since 1970. The only representation of wall-clock time in tarn.
using Timestamp = std::chrono::sys_time<std::chrono::microseconds>;

inline int64_t ToMicros(Timestamp time) { return time.time_since_epoch().count(); }
/// Milliseconds since 1970, rounded down also before it.
inline int64_t ToMillis(Timestamp time) {
  return std::chrono::floor<std::chrono::milliseconds>(time).time_since_epoch().count();
}
inline Timestamp FromMicros(int64_t micros) { return Timestamp{std::chrono::microseconds{micros}}; }
inline Timestamp FromMillis(int64_t millis) { return Timestamp{std::chrono::milliseconds{millis}}; }

/// "2026-01-31T12:00:00.123456Z": six fractional digits, always UTC. Years outside 0..9999 have a
/// sign ("+10000-…", "-0044-…"), which ParseTimestamp does not read.
std::string FormatTimestamp(Timestamp time);
/// Reads ISO-8601 with a zone ("Z" or an offset), optional fraction up to nine digits (cut to
/// microseconds); a date alone is midnight UTC. Errors: kInvalidArgument.
Result<Timestamp> ParseTimestamp(std::string_view text);

/// Source of wall-clock time. Threads: any.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Timestamp Now() const = 0;
};

/// The machine's clock.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] Timestamp Now() const override;
};

/// A clock that moves when told to. Threads: any.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Timestamp start) : micros_(ToMicros(start)) {}
  [[nodiscard]] Timestamp Now() const override { return FromMicros(micros_.load()); }
  void Set(Timestamp time) { micros_.store(ToMicros(time)); }
  void Advance(std::chrono::microseconds by) { micros_.fetch_add(by.count()); }

 private:
  std::atomic<int64_t> micros_;
};

}  // namespace tarn
