// Named places where a test can have the process die as if by kill -9.
//
// TARN_CRASH_POINT=<name>[:<n>] in the environment arms the n-th pass (from 1) through that name.
// Every name is listed in docs/formats/crash_points.md.
#pragma once

#include <string_view>

namespace tarn {

/// Dies without unwinding or flushing when `name` is armed; otherwise one branch. Threads: any.
void CrashPoint(std::string_view name);

/// Arms "<name>[:<n>]" from here on instead of what the environment says; counting starts anew. For
/// the child processes of tests.
void ArmCrashPoint(std::string_view text);

}  // namespace tarn
