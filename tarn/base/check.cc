#include "tarn/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tarn::internal {

void CheckFailed(const char* condition, const char* file, int line, const std::string& detail) {
  // Straight to stderr: the logger may be what is broken.
  std::fprintf(stderr, "%s:%d: check failed: %s%s%s\n", file, line, condition,
               detail.empty() ? "" : ": ", detail.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace tarn::internal
