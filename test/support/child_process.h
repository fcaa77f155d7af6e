// Runs a piece of a test in a child process: where it may lose rights, hit limits or die.
#pragma once

#include <functional>

namespace tarn {

/// Runs `body` in a fork. True when it ended without a failed expectation; what failed is printed.
/// The parent must have no other threads that `body` needs.
bool PassesInChild(const std::function<void()>& body);

/// As PassesInChild, as a user who owns nothing: file modes mean something also when tests are run
/// by root.
bool PassesUnprivileged(const std::function<void()>& body);

/// Runs `body` in a fork where the crash point is armed (crash_point.h). True when it was killed
/// there.
bool DiesAtCrashPoint(const char* point, const std::function<void()>& body);

}  // namespace tarn
