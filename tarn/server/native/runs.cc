#include "tarn/server/native/runs.h"

#include <fmt/format.h>

namespace tarn::server::native {

Runs::~Runs() {
  // No request can begin a run any more; threads need the mutex to end.
  for (auto& [id, run] : runs_) {
    if (run.thread.joinable()) {
      run.thread.join();
    }
  }
}

Status Runs::Start(const std::string& id, const std::string& pipeline,
                   std::function<task::RunOutcome()> work) {
  const std::lock_guard lock(mutex_);
  for (auto at = runs_.begin(); at != runs_.end() && runs_.size() >= kRunsMax;) {
    if (at->second.state.running) {
      ++at;
      continue;
    }
    at->second.thread.join();
    at = runs_.erase(at);
  }
  if (runs_.size() >= kRunsMax) {
    return Status(ErrorCode::kResourceExhausted,
                  fmt::format("{} runs are under way: wait for one to end", kRunsMax));
  }
  Run& run = runs_[id];
  run.state.pipeline = pipeline;
  run.thread = std::thread([this, id, work = std::move(work)] {
    task::RunOutcome outcome = work();
    const std::lock_guard ending(mutex_);
    RunState& state = runs_.at(id).state;
    state.outcome = std::move(outcome);
    state.running = false;
  });
  return Status::Ok();
}

std::optional<RunState> Runs::Find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(id);
  return found == runs_.end() ? std::nullopt : std::optional<RunState>(found->second.state);
}

}  // namespace tarn::server::native
