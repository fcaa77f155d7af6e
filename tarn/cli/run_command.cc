#include <chrono>
#include <thread>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tarn/cli/commands.h"
#include "tarn/cli/exit_code.h"

namespace tarn::cli {

namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kPollInterval{250};

struct RunOptions {
  std::string file;
  bool once = false;
};

/// The failure of a run, or of one of its tasks, as the server tells it.
Status FailureOf(const json& state) {
  const json error = state.value("error", json::object());
  const json& told = error.is_object() ? error : json::object();
  return Status::Internal(told.value("task", "run") + std::string(": ") +
                          told.value("message", "failed without a reason"))
      .WithReason(told.value("name", "TaskFailed"));
}

/// Follows a run until it ends. Polling only reads, so a server that is away for a moment is
/// waited for.
Status Follow(CommandContext& context, const std::string& run_id) {
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  int failures = 0;
  for (;;) {
    const Result<json> state = client->GetJson("/tarn/v1/runs/" + EncodeUrl(run_id));
    if (!state.ok()) {
      if (!IsRetryable(state.status().code()) || ++failures > 40) {
        return state.status();
      }
    } else {
      failures = 0;
      const std::string name = state->value("state", "");
      if (name == "SUCCEEDED") {
        return ShowDocument(context, *state, {});
      }
      if (name != "RUNNING") {
        return FailureOf(*state);
      }
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

Status RunFile(CommandContext& context, const RunOptions& options) {
  HttpCall call;
  call.method = "POST";
  call.target = "/tarn/v1/pipelines";
  call.headers = {{"Content-Type", "application/yaml"}, {"Accept", "application/json"}};
  TARN_ASSIGN_OR_RETURN(call.body, ReadLocalFile(options.file));
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  const Result<HttpAnswer> applied = client->Send(call);
  if (!applied.ok()) {
    return applied.status().WithContext(options.file);
  }
  const json pipeline = json::parse(applied->body, nullptr, false);
  const std::string name = pipeline.is_object() ? pipeline.value("name", "") : "";
  if (name.empty()) {
    return Status::Internal(options.file + ": the server's answer has no pipeline name");
  }
  const std::string target = "/tarn/v1/pipelines/" + EncodeUrl(name);
  TARN_ASSIGN_OR_RETURN(
      const json started,
      client->Json("POST", target + (options.once ? ":runOnce" : ":start"), json::object()));
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
