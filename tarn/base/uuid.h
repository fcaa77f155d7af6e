// Universally unique identifiers: random (v4) and time-ordered (v7), RFC 9562.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"

namespace tarn {

/// 128 bits. Value; ordered by bytes, so v7 sorts by time.
struct Uuid {
  std::array<uint8_t, 16> bytes{};

  /// Lower-case text with dashes, 36 characters.
  [[nodiscard]] std::string ToString() const;
  /// Errors: kInvalidArgument unless 36 characters of hex and dashes.
  static Result<Uuid> Parse(std::string_view text);

  friend auto operator<=>(const Uuid&, const Uuid&) = default;
};

/// Makes identifiers that no other call on any machine makes. Threads: any.
///
/// v7 identifiers of one generator increase strictly, also within one millisecond and when the
/// clock steps back.
class UuidGenerator {
 public:
  explicit UuidGenerator(const Clock& clock) : clock_(clock) {}
  UuidGenerator(const UuidGenerator&) = delete;
  UuidGenerator& operator=(const UuidGenerator&) = delete;

  Uuid NextV7();
  Uuid NextV4();

 private:
  const Clock& clock_;
  std::mutex mutex_;
  int64_t last_millis_ = 0;    // Guarded by mutex_.
  uint32_t last_counter_ = 0;  // Guarded by mutex_; 18 bits behind the time.
};

/// Fills `size` bytes from the operating system's secure generator; aborts if it has none.
void FillSecureRandom(uint8_t* bytes, size_t size);

}  // namespace tarn

template <>
struct std::hash<tarn::Uuid> {
  size_t operator()(const tarn::Uuid& uuid) const noexcept {
    return std::hash<std::string_view>{}(
        std::string_view(reinterpret_cast<const char*>(uuid.bytes.data()), uuid.bytes.size()));
  }
};
