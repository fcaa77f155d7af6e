#include "tarn/base/memory_budget.h"

#include <algorithm>

#include "tarn/base/quantity.h"

namespace tarn {

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    Release();
    budget_ = std::exchange(other.budget_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

Status Reservation::Grow(uint64_t bytes) {
  TARN_CHECK(budget_ != nullptr);
  TARN_ASSIGN_OR_RETURN(Reservation more, budget_->TryReserve(bytes, "growing a buffer"));
  Merge(std::move(more));
  return Status::Ok();
}

void Reservation::ShrinkTo(uint64_t bytes) {
  if (budget_ != nullptr && bytes < bytes_) {
    budget_->Give(bytes_ - bytes);
    bytes_ = bytes;
  }
}

void Reservation::Merge(Reservation&& other) {
  if (other.budget_ == nullptr) {
    return;
  }
  TARN_CHECK(budget_ == nullptr || budget_ == other.budget_);
  budget_ = std::exchange(other.budget_, nullptr);
  bytes_ += std::exchange(other.bytes_, 0);
}

MemoryBudget::~MemoryBudget() { TARN_CHECK(used_bytes_ == 0); }

Result<Reservation> MemoryBudget::Reserve(uint64_t bytes, std::string_view purpose,
                                          std::chrono::milliseconds wait) {
  TARN_RETURN_IF_ERROR(CheckSize(bytes, purpose));
  std::unique_lock lock(mutex_);
  const uint64_t ticket = next_ticket_++;
  const bool served =
      freed_.wait_for(lock, wait, [&] { return serving_ == ticket && Fits(bytes); });
  if (served) {
    Take(bytes);
    ++serving_;
  } else {
    abandoned_.insert(ticket);
  }
  while (abandoned_.erase(serving_) == 1) {
    ++serving_;
  }
  // The next in line may fit too.
  freed_.notify_all();
  if (!served) {
    return Exhausted(bytes, purpose);
  }
  return Reservation(this, bytes);
}

Result<Reservation> MemoryBudget::TryReserve(uint64_t bytes, std::string_view purpose) {
  TARN_RETURN_IF_ERROR(CheckSize(bytes, purpose));
  const std::lock_guard lock(mutex_);
  if (!Fits(bytes)) {
    return Exhausted(bytes, purpose);
  }
  Take(bytes);
  return Reservation(this, bytes);
}

uint64_t MemoryBudget::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_;
}

uint64_t MemoryBudget::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

Status MemoryBudget::CheckSize(uint64_t bytes, std::string_view purpose) const {
  if (bytes <= limit_bytes_) {
    return Status::Ok();
  }
  return Status::InvalidArgument(std::string(purpose) + " needs " + FormatSize(bytes) +
                                 ", more than the whole memory budget of " +
                                 FormatSize(limit_bytes_));
}

Status MemoryBudget::Exhausted(uint64_t bytes, std::string_view purpose) const {
  return {ErrorCode::kResourceExhausted,
          std::string(purpose) + " needs " + FormatSize(bytes) + ", memory budget has " +
              FormatSize(limit_bytes_ - used_bytes_) + " of " + FormatSize(limit_bytes_) + " free"};
}

void MemoryBudget::Take(uint64_t bytes) {
  used_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
}

void MemoryBudget::Give(uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    TARN_CHECK(bytes <= used_bytes_);
    used_bytes_ -= bytes;
  }
  freed_.notify_all();
}

}  // namespace tarn
