#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/cli/commands.h"
#include "tarn/cli/pipeline_file.h"
#include "tarn/pipeline/pipeline_schema.h"

namespace tarn::cli {

namespace {

using nlohmann::json;

struct PipelineOptions {
  std::string file;
  std::string name;
  std::string landing;
  int64_t rows = 20;
};

Status SendFile(CommandContext& context, const std::string& target, const std::string& path,
                const std::vector<std::string>& columns) {
  TARN_ASSIGN_OR_RETURN(const json document, SendPipelineFile(context, target, path));
  return ShowDocument(context, document, columns);
}

std::string PipelineTarget(const std::string& name) {
  return "/tarn/v1/pipelines/" + EncodeUrl(name);
}

// The file as it was applied; with --json {"name", "yaml"}.
Status Export(CommandContext& context, const std::string& name) {
  HttpCall call;
  call.target = PipelineTarget(name) + ":export";
  call.headers = {{"Accept", "application/yaml, application/json"}};
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  TARN_ASSIGN_OR_RETURN(const HttpAnswer answer, client->Send(call));
  return context.Out().Show(json{{"name", name}, {"yaml", answer.body}}, answer.body);
}

// What would be read, and why not the rest, in one table for people.
Status PreviewLanding(CommandContext& context, const PipelineOptions& options) {
  TARN_ASSIGN_OR_RETURN(
      const json document,
      SendPipelineFile(context,
                       WithQuery("/tarn/v1/landing:preview", {{"landing", options.landing}}),
                       options.file));
  json rows = json::array();
  for (const char* part : {"included", "excluded"}) {
    for (json row : document.value(part, json::array())) {
      row["read"] = part == std::string("included") ? "yes" : "no";
      rows.push_back(std::move(row));
    }
  }
  return context.Out().Show(document,
                            TableOf(rows, {"read", "landing", "path", "size", "date", "reason"}));
}

Status SampleLanding(CommandContext& context, const PipelineOptions& options) {
  const std::string target =
      WithQuery("/tarn/v1/landing:sample",
                {{"landing", options.landing}, {"rows", std::to_string(options.rows)}});
  TARN_ASSIGN_OR_RETURN(HttpCall call, MakePipelineCall(target, options.file));
  const Result<HttpAnswer> shown = ShowRows(context, std::move(call));
  return shown.ok() ? Status::Ok() : shown.status().WithContext(options.file);
}

// What stands in the way of a file is a conflict, as it would be when the file is applied.
Status Plan(CommandContext& context, const PipelineOptions& options) {
  TARN_ASSIGN_OR_RETURN(const json document,
                        SendPipelineFile(context, "/tarn/v1/pipelines:plan", options.file));
  TARN_RETURN_IF_ERROR(ShowDocument(context, document, {"object", "change", "effect"}));
  size_t refused = 0;
  for (const json& change : document.value("data", json::array())) {
    refused += change.value("refused", false) ? 1 : 0;
  }
  return refused == 0
             ? Status::Ok()
             : Status(ErrorCode::kConflict,
                      fmt::format("{}: {} of the changes would be refused", options.file, refused));
}

using PipelineCommand = Status (*)(CommandContext&, const PipelineOptions&);

CLI::App* Add(CLI::App& parent, CommandContext& context, const std::string& name,
              const std::string& help, const std::shared_ptr<PipelineOptions>& options,
              PipelineCommand command) {
  CLI::App* const sub = parent.add_subcommand(name, help);
  sub->callback([&context, options, command] {
    context.action = [&context, options, command] { return command(context, *options); };
  });
  return sub;
}

void AddLandingCommands(CLI::App& app, CommandContext& context,
                        const std::shared_ptr<PipelineOptions>& options) {
  CLI::App* const landing = app.add_subcommand("landing", "what a landing task would read");
  landing->require_subcommand(1);
  CLI::App* const sample =
      Add(*landing, context, "sample", "the first rows as they would land", options, SampleLanding);
  sample->add_option("--rows", options->rows, "at most so many rows");
  const std::vector<CLI::App*> with_file = {
      Add(*landing, context, "preview", "the files that a run would read, and why not the others",
          options, PreviewLanding),
      sample,
      Add(*landing, context, "replay-rejected",
          "land dead letters once more, as the file, which is applied, has it now", options,
          [](CommandContext& c, const PipelineOptions& o) {
            return SendFile(c,
                            WithQuery("/tarn/v1/landing:replayRejected", {{"landing", o.landing}}),
                            o.file, {});
          })};
  for (CLI::App* const sub : with_file) {
    sub->add_option("file", options->file, "pipeline file; - for standard input")->required();
    sub->add_option("landing", options->landing, "name of the landing task");
  }
}

}  // namespace

void AddPipelineCommands(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<PipelineOptions>();
  CLI::App* const pipeline = app.add_subcommand("pipeline", "declarative pipelines");
  pipeline->require_subcommand(1);
  const std::vector<CLI::App*> with_file = {
      Add(*pipeline, context, "validate", "check a pipeline file", options,
          [](CommandContext& c, const PipelineOptions& o) {
            return SendFile(c, "/tarn/v1/pipelines:validate", o.file,
                            {"line", "column", "message"});
          }),
      Add(*pipeline, context, "plan", "what applying a file would do; exit code 4: it is refused",
          options, Plan),
      Add(*pipeline, context, "apply", "make the server's pipeline as in the file", options,
          [](CommandContext& c, const PipelineOptions& o) {
            TARN_ASSIGN_OR_RETURN(const json document, ApplyPipelineFile(c, o.file));
            return ShowWithTasks(c, document);
          })};
  for (CLI::App* const sub : with_file) {
    sub->add_option("file", options->file, "pipeline file; - for standard input")->required();
  }
  Add(*pipeline, context, "list", "list pipelines", options,
      [](CommandContext& c, const PipelineOptions&) {
        return CallAndShow(c, "GET", "/tarn/v1/pipelines", json(), {"name", "project", "state"});
      });
  const std::vector<CLI::App*> with_name = {
      Add(*pipeline, context, "show", "show a pipeline and its tasks", options,
          [](CommandContext& c, const PipelineOptions& o) {
            TARN_ASSIGN_OR_RETURN(HttpClient * client, c.Client());
            TARN_ASSIGN_OR_RETURN(const json document, client->GetJson(PipelineTarget(o.name)));
            return ShowWithTasks(c, document);
          }),
      Add(*pipeline, context, "delete", "delete a pipeline; its data stays", options,
          [](CommandContext& c, const PipelineOptions& o) {
            return CallAndShow(c, "DELETE", PipelineTarget(o.name), json(), {});
          }),
      Add(*pipeline, context, "export", "print the pipeline file", options,
          [](CommandContext& c, const PipelineOptions& o) { return Export(c, o.name); })};
  for (CLI::App* const sub : with_name) {
    sub->add_option("name", options->name, "name of the pipeline")->required();
  }
  Add(*pipeline, context, "schema", "print the JSON schema of pipeline files", options,
      [](CommandContext& c, const PipelineOptions&) {
        return c.Out().Raw(pipeline::PipelineSchema());  // It is JSON anyhow.
      });
  AddLandingCommands(app, context, options);
}

}  // namespace tarn::cli
