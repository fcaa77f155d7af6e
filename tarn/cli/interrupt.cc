#include "tarn/cli/interrupt.h"

#include <csignal>

namespace tarn::cli {

namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

volatile std::sig_atomic_t came = 0;

void Note(int signal) {
  came = signal;
  std::signal(signal, SIG_DFL);  // Whoever cannot wait says it twice.
}

}  // namespace

InterruptWatch::InterruptWatch() {
  came = 0;
  struct sigaction action = {};  // Without SA_RESTART: a read that waits is to end, too.
  action.sa_handler = Note;
  for (const int signal : kSignals) {
    ::sigaction(signal, &action, nullptr);
  }
}

InterruptWatch::~InterruptWatch() {
  came = 0;
  for (const int signal : kSignals) {
    std::signal(signal, SIG_DFL);
  }
}

Status InterruptWatch::Check() {
  return came == 0 ? Status::Ok() : Status(ErrorCode::kCancelled, "interrupted");
}

}  // namespace tarn::cli
