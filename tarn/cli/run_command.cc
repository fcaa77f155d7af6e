#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/cli/commands.h"
#include "tarn/cli/exit_code.h"
#include "tarn/cli/pipeline_file.h"

namespace tarn::cli {

namespace {

using nlohmann::json;

// Short runs are seen to end soon, long ones are asked about rarely.
constexpr std::chrono::milliseconds kPollFirst{20};
constexpr std::chrono::milliseconds kPollMax{250};
constexpr std::chrono::seconds kTellEvery{1};

struct RunOptions {
  std::string file;
  bool once = false;
};

std::string TextIn(const json& object, const char* name, const char* otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

/// The failure of a run, or of one of its tasks, as the server tells it. A task that failed is
/// always exit code 1; a run that the server gave up because it stops is transient.
Status FailureOf(const json& state) {
  const auto found = state.find("error");
  const json told = found != state.end() && found->is_object() ? *found : json::object();
  const std::string task = TextIn(told, "task", "");
  const std::string message =
      (task.empty() ? "run" : task) + ": " + TextIn(told, "message", "failed without a reason");
  const bool gave_up = task.empty() && TextIn(told, "code", "") == "Unavailable";
  return Status(gave_up ? ErrorCode::kUnavailable : ErrorCode::kInternal, message)
      .WithReason(TextIn(told, "name", "TaskFailed"));
}

/// Tells errors of tasks that are tried again, each once.
void TellErrors(const json& state, std::map<std::string, std::string>& told) {
  for (const json& task : state.value("tasks", json::array())) {
    const std::string name = task.is_object() ? TextIn(task, "task", "") : "";
    const std::string error = task.is_object() ? TextIn(task, "last_error", "") : "";
    if (error != told[name] && !error.empty()) {
      std::fputs(("tarn: " + EscapeForTerminal(name + ": " + error) + "\n").c_str(), stderr);
    }
    told[name] = error;
  }
}

/// One line for each task whose state or numbers are others than those told last, at most once in
/// kTellEvery.
class Progress {
 public:
  void Tell(const json& state) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < kTellEvery) {
      return;
    }
    last_ = now;
    for (const json& task : state.value("tasks", json::array())) {
      if (task.is_object()) {
        TellTask(task);
      }
    }
  }

 private:
  void TellTask(const json& task) {
    const std::string name = TextIn(task, "task", "");
    std::string line = fmt::format("{}: {}", name, TextIn(task, "state", ""));
    for (const char* count : {"rows_in", "rows_out", "rejected", "unapplied"}) {
      line += fmt::format(", {} {}", count, task.value(count, int64_t{0}));
    }
    if (std::string& told = told_[name]; told != line) {
      std::fputs(("tarn: " + EscapeForTerminal(line) + "\n").c_str(), stderr);
      told = line;
    }
  }

  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::map<std::string, std::string> told_;
};

/// Follows a run until it ends. Polling only reads, so a server that is away for a moment is
/// waited for; one that came back without the run was stopped in between.
Status Follow(CommandContext& context, const std::string& run_id) {
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  int failures = 0;
  std::chrono::milliseconds wait = kPollFirst;
  std::map<std::string, std::string> told;
  Progress progress;
  for (;;) {
    const Result<json> state = client->GetJson("/tarn/v1/runs/" + EncodeUrl(run_id));
    if (!state.ok()) {
      if (state.status().code() == ErrorCode::kNotFound) {
        return Status::Unavailable(
            "the server ended while the run went on: what it committed stays; run it again");
      }
      if (!IsRetryable(state.status().code()) || ++failures > 40) {
        return state.status();
      }
    } else {
      failures = 0;
      const std::string name = state->value("state", "");
      if (name == "SUCCEEDED") {
        return ShowWithTasks(context, *state);
      }
      if (name != "RUNNING") {
        return FailureOf(*state);
      }
      if (!context.json) {
        TellErrors(*state, told);
        progress.Tell(*state);
      }
    }
    std::this_thread::sleep_for(wait);
    wait = std::min(wait * 5 / 4, kPollMax);
  }
}

Status RunFile(CommandContext& context, const RunOptions& options) {
  TARN_ASSIGN_OR_RETURN(const json pipeline, ApplyPipelineFile(context, options.file));
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  const std::string name = pipeline.is_object() ? pipeline.value("name", "") : "";
  if (name.empty()) {
    return Status::Internal(options.file + ": the server's answer has no pipeline name");
  }
  const std::string target = "/tarn/v1/pipelines/" + EncodeUrl(name);
  TARN_ASSIGN_OR_RETURN(
      const json started,
      client->Json("POST", target + (options.once ? ":runOnce" : ":start"), json::object()));
  if (!options.once && !context.json) {
    std::fputs(EscapeForTerminal("tarn: pipeline " + name +
                                 " is running; it goes on when this "
                                 "command ends. To stop a task: tarn task stop " +
                                 name + ".TASK")
                   .c_str(),
               stderr);
    std::fputs("\n", stderr);
  }
  return Follow(context, started.value("runId", ""));
}

}  // namespace

void AddRunCommand(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* const run = app.add_subcommand("run", "apply a pipeline file, start it, follow it");
  run->add_option("file", options->file, "pipeline file")->required();
  run->add_flag("--once", options->once, "drain the sources, apply, return");
  run->callback([&context, options] {
    context.action = [&context, options] { return RunFile(context, *options); };
  });
}

}  // namespace tarn::cli
