// Named places where a test can have the process die as if by kill -9.
//
// TARN_CRASH_POINT=<name>[:<n>] in the environment arms the n-th pass (from 1) through that name.
// Every name is listed in docs/formats/crash_points.md.
#pragma once

#include <string_view>

namespace tarn {

/// Dies without unwinding or flushing when `name` is armed; otherwise one branch. Threads: any.
void CrashPoint(std::string_view name);

}  // namespace tarn
