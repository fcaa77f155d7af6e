#include "tarn/cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace tarn::cli {

namespace {
constexpr size_t kBarWidth = 30;
constexpr std::chrono::milliseconds kFirstDrawAfter{1000};
constexpr std::chrono::milliseconds kRedrawAfter{100};
}  // namespace

std::string FormatSize(uint64_t size_bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(size_bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", size_bytes)
                   : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string FormatProgress(std::string_view name, uint64_t done, uint64_t total, double seconds) {
  const uint64_t rate =
      seconds > 0 ? static_cast<uint64_t>(static_cast<double>(done) / seconds) : 0;
  if (total == 0 && done > 0) {
    return fmt::format("{}  {}  {}/s", name, FormatSize(done), FormatSize(rate));
  }
  const double share =
      total == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto filled = static_cast<size_t>(share * static_cast<double>(kBarWidth));
  return fmt::format("{}  [{}{}]  {:.0f} %  {} / {}  {}/s", name, std::string(filled, '#'),
                     std::string(kBarWidth - filled, '.'), share * 100, FormatSize(done),
                     FormatSize(total), FormatSize(rate));
}

ProgressBar::ProgressBar(std::string name, std::FILE* stream)
    : name_(std::move(name)),
      stream_(stream),
      visible_(::isatty(::fileno(stream)) == 1),
      started_(std::chrono::steady_clock::now()),
      last_drawn_(started_) {}

ProgressBar::~ProgressBar() {
  if (drawn_) {
    std::fputs("\r\x1b[K", stream_);
    std::fflush(stream_);
  }
}

void ProgressBar::Update(uint64_t done, uint64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (!visible_ || now - started_ < kFirstDrawAfter ||
      (drawn_ && now - last_drawn_ < kRedrawAfter)) {
    return;
  }
  const std::chrono::duration<double> elapsed = now - started_;
  const std::string line = "\r\x1b[K" + FormatProgress(name_, done, total, elapsed.count());
  std::fputs(line.c_str(), stream_);
  std::fflush(stream_);
  drawn_ = true;
  last_drawn_ = now;
}

}  // namespace tarn::cli
