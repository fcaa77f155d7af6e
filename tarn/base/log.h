// Structured log lines to stderr. Only the layer that handles a failure logs it.
#pragma once

#include <string_view>

namespace tarn {

enum class LogLevel { kDebug, kNotice, kWarning, kError };

/// Sets the lowest level that is written; kNotice at start. Threads: any.
void SetLogLevel(LogLevel level);
/// Writes "<time> <level> <room> <message>". Threads: any. Cost: one formatted write.
void Log(LogLevel level, std::string_view room, std::string_view message);

}  // namespace tarn
