// InterruptWatch: lets a command end what it began when the user interrupts it.
#pragma once

#include "tarn/base/status.h"

namespace tarn::cli {

/// While one is alive, SIGINT and SIGTERM do not end the process; Check says that one came. A
/// second one ends it as usual. One at a time; the process' main thread.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  /// Errors: kCancelled once a signal came while a watch was alive.
  static Status Check();
};

}  // namespace tarn::cli
