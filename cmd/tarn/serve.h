// Serve: one server process: builds every object, wires them, and runs until a signal.
#pragma once

#include "tarn/base/status.h"
#include "tarn/cli/command_line.h"

namespace tarn {

/// Runs until SIGTERM or SIGINT, then drains and stops. Prints "listening on http://HOST:PORT" on
/// standard output when it is ready.
/// Errors: what keeps it from starting, saying what to do.
Status Serve(const cli::ServeOptions& options);

}  // namespace tarn
