// TARN_CHECK: a bug is not an error. Aborts, also in release, where going on could write wrong
// data.
#pragma once

#include <string>

namespace tarn::internal {
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line,
                              const std::string& detail = {});
}  // namespace tarn::internal

#define TARN_CHECK(condition)                                        \
  do {                                                               \
    if (!(condition)) [[unlikely]] {                                 \
      ::tarn::internal::CheckFailed(#condition, __FILE__, __LINE__); \
    }                                                                \
  } while (false)
