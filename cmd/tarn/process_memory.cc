#include "cmd/tarn/process_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tarn {

namespace {

constexpr uint64_t kWithoutBudget = 512ULL << 20;  // Connections, caches, the program itself.
constexpr uint64_t kRoomMin = 2ULL << 30;

// The number behind `name` in a file of /proc, in bytes; 0 where it is not there.
uint64_t ReadKibibytes(const char* path, const char* name) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) {
    return 0;
  }
  char line[256];
  unsigned long long found = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, name, std::strlen(name)) == 0) {
      std::sscanf(line + std::strlen(name), " %llu", &found);
      break;
    }
  }
  std::fclose(file);
  return static_cast<uint64_t>(found) << 10;
}

// What the control group of the process may have; all there is without one.
uint64_t GroupLimit() {
  uint64_t limit = UINT64_MAX;
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    if (std::FILE* file = std::fopen(path, "re")) {
      unsigned long long found = 0;
      if (std::fscanf(file, "%llu", &found) == 1) {
        limit = std::min<uint64_t>(limit, found);
      }
      std::fclose(file);
    }
  }
  return limit;
}

}  // namespace

query::MemoryWatchOptions QueryMemoryOf(uint64_t memory_bytes, uint64_t engine_memory_bytes) {
  return {.limit_bytes = memory_bytes + engine_memory_bytes + kWithoutBudget,
          .growth_bytes = engine_memory_bytes + kWithoutBudget};
}

void LimitProcessMemory(uint64_t memory_bytes, uint64_t engine_memory_bytes) {
  const uint64_t machine = std::min(ReadKibibytes("/proc/meminfo", "MemAvailable:"), GroupLimit());
  const uint64_t begun = ReadKibibytes("/proc/self/status", "VmData:");
  // A sanitizer's shadow is larger than any machine.
  if (machine == 0 || begun == 0 || begun / 4 > machine) {
    return;
  }
  const uint64_t room =
      std::max(machine / 10 * 9, 2 * (memory_bytes + engine_memory_bytes) + kRoomMin);
  rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) == 0 && begun + room < limit.rlim_cur) {
    limit.rlim_cur = begun + room;
    ::setrlimit(RLIMIT_DATA, &limit);
  }
}

}  // namespace tarn
