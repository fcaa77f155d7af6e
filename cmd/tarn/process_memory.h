// How large the process may become.
#pragma once

#include <cstdint>

#include "tarn/query/memory_watch.h"

namespace tarn {

/// Which statements are stopped, and when: beyond what the server's buffers and the engine may
/// hold, and some more for what has no budget.
query::MemoryWatchOptions QueryMemoryOf(uint64_t memory_bytes, uint64_t engine_memory_bytes);

/// Makes allocations fail before the machine has no memory left, so that one statement fails and
/// not the server: the kernel would kill that. Never less than twice the budgets and 2 GiB beyond
/// what the process has now. Does nothing where the system does not say how much there is.
void LimitProcessMemory(uint64_t memory_bytes, uint64_t engine_memory_bytes);

}  // namespace tarn
