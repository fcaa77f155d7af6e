// MemoryBudget: what all large buffers of one process may take together.
//
// Engine slots, landing buffers and HTTP bodies reserve before they allocate. When nothing is left,
// sources pause and requests wait or are refused; nothing is killed by the operating system.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tarn/base/status.h"

namespace tarn {

class MemoryBudget;

/// A share of a budget, given back when it dies. Movable value; one owner thread. The budget must
/// outlive it.
class Reservation {
 public:
  Reservation() = default;  // Of nothing.
  Reservation(Reservation&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Reservation& operator=(Reservation&& other) noexcept;
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() { Release(); }

  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  /// Takes more, without waiting. Errors: as MemoryBudget::TryReserve; what was held stays held.
  Status Grow(uint64_t bytes);
  /// Gives back all but `bytes`; no effect when it holds less.
  void ShrinkTo(uint64_t bytes);
  void Release() { ShrinkTo(0); }
  /// Takes over the share of `other`, which must be of the same budget or empty.
  void Merge(Reservation&& other);

 private:
  friend class MemoryBudget;
  Reservation(MemoryBudget* budget, uint64_t bytes) : budget_(budget), bytes_(bytes) {}

  MemoryBudget* budget_ = nullptr;  // Null exactly for a default or moved-from object.
  uint64_t bytes_ = 0;
};

/// Counts bytes, allocates none. Threads: any.
///
/// Waiting reservations are served in order of arrival, so a large one is not starved by other
/// waiting ones; TryReserve and Grow take what is free now, ahead of those that wait.
class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;
  ~MemoryBudget();

  /// Waits up to `wait` for `bytes`; `purpose` names them in the error.
  /// Errors: kResourceExhausted when they did not become free in time; kInvalidArgument when they
  /// exceed the whole budget.
  Result<Reservation> Reserve(uint64_t bytes, std::string_view purpose,
                              std::chrono::milliseconds wait);
  /// Errors: kResourceExhausted when they are not free now; kInvalidArgument as above.
  Result<Reservation> TryReserve(uint64_t bytes, std::string_view purpose);

  [[nodiscard]] uint64_t limit_bytes() const { return limit_bytes_; }
  [[nodiscard]] uint64_t used_bytes() const;
  /// The most that was used at one time.
  [[nodiscard]] uint64_t peak_bytes() const;

 private:
  friend class Reservation;
  [[nodiscard]] Status CheckSize(uint64_t bytes, std::string_view purpose) const;
  [[nodiscard]] Status Exhausted(uint64_t bytes, std::string_view purpose) const;
  bool Fits(uint64_t bytes) const { return bytes <= limit_bytes_ - used_bytes_; }
  void Take(uint64_t bytes);
  void Give(uint64_t bytes);

  const uint64_t limit_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable freed_;
  uint64_t used_bytes_ = 0;  // Guarded by mutex_, as all below.
  uint64_t peak_bytes_ = 0;
  uint64_t next_ticket_ = 0;  // Given to the next that waits.
  uint64_t serving_ = 0;      // Lowest ticket that may take.
  std::set<uint64_t> abandoned_;
};

}  // namespace tarn
