// Runs: work that a request began and that later requests ask about.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "tarn/base/status.h"
#include "tarn/task/control.h"

namespace tarn::server::native {

inline constexpr size_t kRunsMax = 256;  // Ended ones are forgotten beyond it, oldest first.

/// Value.
struct RunState {
  std::string pipeline;
  bool running = true;
  task::RunOutcome outcome;  // Once it has ended.
};

/// Threads: any. The destructor waits for all runs.
class Runs {
 public:
  Runs() = default;
  ~Runs();
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  /// Runs `work` on a thread of its own. Ids sort by time. Errors: kResourceExhausted when too many
  /// are running.
  Status Start(const std::string& id, const std::string& pipeline,
               std::function<task::RunOutcome()> work);
  [[nodiscard]] std::optional<RunState> Find(const std::string& id) const;

 private:
  struct Run {
    RunState state;
    std::thread thread;
  };

  mutable std::mutex mutex_;
  std::map<std::string, Run> runs_;  // Guarded by mutex_.
};

}  // namespace tarn::server::native
