// The names of threads, as debuggers, profilers and `top -H` show them.
#pragma once

#include <string_view>

namespace tarn {

/// Names the calling thread. The kernel keeps the first 15 bytes. Threads that it starts later have
/// the same name until they give themselves another.
void NameThisThread(std::string_view name);

}  // namespace tarn
