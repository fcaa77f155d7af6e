#include <cstdio>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tarn/cli/commands.h"
#include "tarn/cli/pipeline_file.h"

namespace tarn::cli {

namespace {

using nlohmann::json;

struct TaskOptions {
  std::string task;
  std::string type;
  std::string from;
  std::string to;
  int64_t limit = 20;
};

std::string TaskTarget(const TaskOptions& options, std::string_view verb) {
  return "/tarn/v1/tasks/" + EncodeUrl(options.task) + std::string(verb);
}

Status PreviewTask(CommandContext& context, const TaskOptions& options) {
  HttpCall call;
  call.method = "POST";
  call.target =
      WithQuery(TaskTarget(options, ":preview"), {{"limit", std::to_string(options.limit)}});
  TARN_ASSIGN_OR_RETURN(const HttpAnswer answer, ShowRows(context, std::move(call)));
  for (const auto& [name, value] : answer.headers) {
    if (name == "tarn-rejected" || name == "tarn-first-rejection") {
      const std::string label = name == "tarn-rejected" ? "rejected rows" : "the first one";
      std::fputs(("tarn: " + EscapeForTerminal(label + ": " + value) + "\n").c_str(), stderr);
    }
  }
  return Status::Ok();
}

}  // namespace

void AddTaskCommands(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<TaskOptions>();
  CLI::App* const task = app.add_subcommand("task", "tasks of pipelines, named PIPELINE.TASK");
  task->require_subcommand(1);
  const auto add = [&context, options, task](const std::string& name, const std::string& help,
                                             std::function<Status()> action) {
    CLI::App* const sub = task->add_subcommand(name, help);
    sub->add_option("task", options->task, "PIPELINE.TASK")->required();
    sub->callback([&context, action = std::move(action)] { context.action = action; });
    return sub;
  };
  const std::pair<const char*, const char*> verbs[] = {
      {"prepare", "make what the task needs, check its table and mapping"},
      {"start", "run the task until it is stopped"},
      {"stop", "stop the task at its next commit"},
      {"apply", "merge what has been landed now"},
      {"recreate",
       "drop the task's table; the task makes it again from all that has landed, at once when it "
       "is running, else once it is started"}};
  for (const auto& [verb, help] : verbs) {
    add(verb, help, [&context, options, verb = std::string(verb)] {
      return CallAndShow(context, "POST", TaskTarget(*options, ":" + verb), json::object(), {});
    });
  }
  CLI::App* const reload =
      add("reload", "make the table equal to what has landed, as the file maps it now",
          [&context, options] {
            json body = json::object();
            const std::pair<const char*, const std::string*> members[] = {
                {"type", &options->type}, {"from", &options->from}, {"to", &options->to}};
            for (const auto& [name, value] : members) {
              if (!value->empty()) {
                body[name] = *value;
              }
            }
            return CallAndShow(context, "POST", TaskTarget(*options, ":reload"), body, {});
          });
  reload->add_option("--type", options->type,
                     "compare_and_apply, compare_and_apply_without_deletes or drop_and_create");
  reload->add_option("--from", options->from,
                     "first landing transaction; only without deletes, the default then");
  reload->add_option("--to", options->to, "last landing transaction");
  CLI::App* const preview = add("preview", "the first landed rows as the mapping makes them",
                                [&context, options] { return PreviewTask(context, *options); });
  preview->add_option("--limit", options->limit, "at most so many rows");
  add("status", "state and counters of the task", [&context, options] {
    return CallAndShow(context, "GET", TaskTarget(*options, ""), json(), {});
  });
}

void AddStatusCommand(CLI::App& app, CommandContext& context) {
  CLI::App* const status = app.add_subcommand("status", "state of all tasks");
  status->callback([&context] {
    context.action = [&context]() -> Status {
      TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
      TARN_ASSIGN_OR_RETURN(const json document, client->GetJson("/tarn/v1/status"));
      return context.Out().Show(document, FormatTasks(document.value("tasks", json::array())));
    };
  });
}

}  // namespace tarn::cli
