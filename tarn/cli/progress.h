// A progress bar on standard error, only on a terminal and only once a second has passed.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace tarn::cli {

/// "name  [#####.....]  50 %  10.0 MiB / 20.0 MiB  5.0 MiB/s"; without a total no bar and percent.
/// An empty file is 100 %.
std::string FormatProgress(std::string_view name, uint64_t done, uint64_t total, double seconds);

/// "1.5 MiB": at most one decimal.
std::string FormatSize(uint64_t size_bytes);

/// One owner thread. The destructor clears the line.
class ProgressBar {
 public:
  /// Silent unless `stream` is a terminal.
  ProgressBar(std::string name, std::FILE* stream);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Redraws at most ten times a second.
  void Update(uint64_t done, uint64_t total);

 private:
  std::string name_;
  std::FILE* stream_;
  bool visible_ = false;  // The stream is a terminal.
  bool drawn_ = false;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point last_drawn_;
};

}  // namespace tarn::cli
