#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tarn/cli/commands.h"

namespace tarn::cli {

namespace {

using nlohmann::json;

struct PipelineOptions {
  std::string file;
  std::string name;
  std::string landing;
};

/// Sends a pipeline file as it is; line and column of failures stay those of the file.
Status SendFile(CommandContext& context, const std::string& target, const std::string& path,
                const std::vector<std::string>& columns) {
  TARN_ASSIGN_OR_RETURN(HttpCall call, [&]() -> Result<HttpCall> {
    HttpCall made;
    made.method = "POST";
    made.target = target;
    made.headers = {{"Content-Type", "application/yaml"}, {"Accept", "application/json"}};
    TARN_ASSIGN_OR_RETURN(made.body, ReadLocalFile(path));
    return made;
  }());
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  const Result<HttpAnswer> answer = client->Send(call);
  if (!answer.ok()) {
    return answer.status().WithContext(path);
  }
  return ShowDocument(
      context, answer->body.empty() ? json::object() : json::parse(answer->body, nullptr, false),
      columns);
}

std::string PipelineTarget(const std::string& name) {
  return "/tarn/v1/pipelines/" + EncodeUrl(name);
}

Status Export(CommandContext& context, const std::string& target) {
  HttpCall call;
  call.target = target;
  call.headers = {{"Accept", "application/yaml, application/json"}};
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  TARN_ASSIGN_OR_RETURN(const HttpAnswer answer, client->Send(call));
  return context.Out().Raw(answer.body);
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
  CLI::App* const landing = app.add_subcommand("landing", "what a landing would read");
  landing->require_subcommand(1);
  CLI::App* const preview =
      Add(*landing, context, "preview", "list the files that match", options,
          [](CommandContext& c, const PipelineOptions& o) {
            return SendFile(c, WithQuery("/tarn/v1/landing:preview", {{"landing", o.landing}}),
                            o.file, {});
          });
  preview->add_option("file", options->file, "pipeline file")->required();
  preview->add_option("landing", options->landing, "name of the landing");
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
      Add(*pipeline, context, "plan", "what applying a file would do", options,
          [](CommandContext& c, const PipelineOptions& o) {
            return SendFile(c, "/tarn/v1/pipelines:plan", o.file, {"object", "change", "effect"});
          }),
      Add(*pipeline, context, "apply", "make the server's pipeline as in the file", options,
          [](CommandContext& c, const PipelineOptions& o) {
            return SendFile(c, "/tarn/v1/pipelines", o.file, {});
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
            return CallAndShow(c, "GET", PipelineTarget(o.name), json(), {});
          }),
      Add(*pipeline, context, "delete", "delete a pipeline; its data stays", options,
          [](CommandContext& c, const PipelineOptions& o) {
            return CallAndShow(c, "DELETE", PipelineTarget(o.name), json(), {});
          }),
      Add(*pipeline, context, "export", "print the pipeline file", options,
          [](CommandContext& c, const PipelineOptions& o) {
            return Export(c, PipelineTarget(o.name) + ":export");
          })};
  for (CLI::App* const sub : with_name) {
    sub->add_option("name", options->name, "name of the pipeline")->required();
  }
  Add(*pipeline, context, "schema", "print the JSON schema of pipeline files", options,
      [](CommandContext& c, const PipelineOptions&) {
        return Export(c, "/tarn/v1/pipelines:schema");
      });
  AddLandingCommands(app, context, options);
}

}  // namespace tarn::cli
