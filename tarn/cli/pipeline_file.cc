#include "tarn/cli/pipeline_file.h"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/pipeline/variables.h"

namespace tarn::cli {

using nlohmann::json;

Result<HttpCall> MakePipelineCall(const std::string& target, const std::string& path) {
  HttpCall call;
  call.method = "POST";
  call.target = target;
  TARN_ASSIGN_OR_RETURN(const std::string yaml, ReadLocalFile(path));
  json variables = json::object();
  // What is no YAML has no variables: the server says what is wrong with it.
  const Result<std::vector<std::string>> names = pipeline::ListVariables(yaml);
  if (names.ok()) {
    for (const std::string& name : *names) {
      if (const char* value = std::getenv(name.c_str())) {
        variables[name] = value;
      }
    }
  }
  if (variables.empty()) {
    call.headers = {{"Content-Type", "application/yaml"}};
    call.body = yaml;
  } else {
    call.headers = {{"Content-Type", "application/json"}};
    call.body = json{{"yaml", yaml}, {"variables", std::move(variables)}}.dump(
        -1, ' ', false, json::error_handler_t::replace);
  }
  return call;
}

Result<json> SendPipelineFile(CommandContext& context, const std::string& target,
                              const std::string& path) {
  TARN_ASSIGN_OR_RETURN(HttpCall call, MakePipelineCall(target, path));
  call.headers.emplace_back("Accept", "application/json");
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  const Result<HttpAnswer> answer = client->Send(call);
  if (!answer.ok()) {
    return answer.status().WithContext(path);
  }
  json document = answer->body.empty() ? json::object() : json::parse(answer->body, nullptr, false);
  if (document.is_discarded()) {
    return Status::Internal(path + ": the server's answer is no JSON");
  }
  return document;
}

Result<json> ApplyPipelineFile(CommandContext& context, const std::string& path) {
  Result<json> applied = SendPipelineFile(context, "/tarn/v1/pipelines", path);
  const ErrorCode code = applied.status().code();
  if (path == "-" || (code != ErrorCode::kConflict && code != ErrorCode::kAlreadyExists &&
                      code != ErrorCode::kFailedPrecondition)) {
    return applied;
  }
  // The failure is that of the first object; the plan knows all.
  const Result<json> plan = SendPipelineFile(context, "/tarn/v1/pipelines:plan", path);
  json refused = json::array();
  for (const json& change : plan.ok() ? plan->value("data", json::array()) : json::array()) {
    if (!change.value("refused", false)) {
      continue;
    }
    if (!context.json) {
      std::fputs(
          ("tarn: " +
           EscapeForTerminal(change.value("object", "") + ": " + change.value("effect", "")) + "\n")
              .c_str(),
          stderr);
    }
    refused.push_back(change);
  }
  if (refused.empty()) {
    return applied;
  }
  json details = json::parse(applied.status().details(), nullptr, false);
  details = details.is_object() ? details : json::object();
  details["refused"] = std::move(refused);
  return Status(code, applied.status().message())
      .WithReason(applied.status().reason(),
                  details.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::string FormatTasks(const json& tasks) {
  static const std::vector<std::string> kColumns = {
      "task",     "kind",      "state",    "rows_in",     "rows_out",
      "rejected", "unapplied", "lag_rows", "lag_seconds", "data_updated_to"};
  json rows = json::array();
  std::string notes;
  for (const json& task : tasks) {
    if (!task.is_object()) {
      continue;
    }
    json row = task;
    if (task.contains("lag_seconds") && task["lag_seconds"].is_number()) {
      row["lag_seconds"] = fmt::format("{:.1f}", task["lag_seconds"].get<double>());
    }
    const std::string name = task.value("task", "");
    if (task.contains("last_error") && task["last_error"].is_string()) {
      notes += EscapeForTerminal(name + ": " + task["last_error"].get<std::string>()) + "\n";
    }
    for (const json& warning : task.value("warnings", json::array())) {
      notes +=
          EscapeForTerminal(fmt::format("{}: {} {} ({})", name, warning.value("code", ""),
                                        warning.value("object", ""), warning.value("at", ""))) +
          "\n";
    }
    rows.push_back(std::move(row));
  }
  return FormatTable(TableOf(rows, kColumns)) + notes;
}

Status ShowWithTasks(CommandContext& context, const json& document) {
  if (!document.is_object() || !document.contains("tasks") || !document["tasks"].is_array()) {
    return ShowDocument(context, document, {});
  }
  json fields = document;
  fields.erase("tasks");
  return context.Out().Show(document,
                            FormatTable(FieldsOf(fields)) + "\n" + FormatTasks(document["tasks"]));
}

}  // namespace tarn::cli
