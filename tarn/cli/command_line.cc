#include "tarn/cli/command_line.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tarn/base/log.h"
#include "tarn/cli/commands.h"
#include "tarn/cli/exit_code.h"

#ifndef TARN_VERSION
#define TARN_VERSION "0.1.0"
#endif

namespace tarn::cli {

namespace {

std::string Environment(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::string(value) : otherwise;
}

std::string ExpandHome(const std::string& path) {
  if (path == "~" || path.starts_with("~/")) {
    return Environment("HOME", "/") + path.substr(1);
  }
  return path;
}

void AddGlobalOptions(CLI::App& app, CommandContext& context) {
  context.url = Environment("TARN_URL", "http://127.0.0.1:8080");
  context.home = Environment("TARN_HOME", "~/.tarn");
  app.fallthrough();  // Global options may stand behind the command.
  app.require_subcommand(1);
  app.add_option("--url", context.url, "server, default $TARN_URL or http://127.0.0.1:8080");
  app.add_option("--token", context.token, "default $TARN_TOKEN or HOME/admin-token");
  app.add_option("--home", context.home, "folder of the server, default $TARN_HOME or ~/.tarn");
  app.add_flag("--json", context.json, "print one JSON document and nothing else");
}

/// Tells a failure: one line for people, the error object for programs, both on standard error.
void TellFailure(const CommandContext& context, const Status& status) {
  if (context.json) {
    nlohmann::json details = nlohmann::json::parse(status.details(), nullptr, false);
    const nlohmann::json document = {
        {"error",
         {{"code", ErrorCodeName(status.code())},
          {"name", status.reason()},
          {"message", status.message()},
          {"parameters", details.is_object() ? details : nlohmann::json::object()}}}};
    const std::string text =
        document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    std::fputs(text.c_str(), stderr);
    return;
  }
  const std::string name = status.reason().empty() || status.reason() == "Usage"
                               ? std::string()
                               : " (" + status.reason() + ")";
  std::fputs(("tarn: " + EscapeForTerminal(status.message()) + name + "\n").c_str(), stderr);
}

// A command that later versions will have. Takes any words, so that it never complains of those.
void AddLaterCommand(CLI::App& parent, CommandContext& context, const std::string& name) {
  CLI::App* const later = parent.add_subcommand(name, "not available in this version");
  later->fallthrough(false);
  later->allow_extras();
  later->callback([&context, later] {
    const std::vector<std::string> words = later->remaining();
    context.json = context.json || std::find(words.begin(), words.end(), "--json") != words.end();
    context.action = [name = later->get_name()] {
      return Status::Unimplemented("the command " + name + " is not available in this version");
    };
  });
}

void AddLaterCommands(CLI::App& app, CommandContext& context) {
  AddLaterCommand(app, context, "group");
  AddLaterCommand(app, context, "role");
  CLI::App* const metastore = app.add_subcommand("metastore", "the server's own database");
  metastore->require_subcommand(1);
  for (const char* name : {"export", "import", "check"}) {
    AddLaterCommand(*metastore, context, name);
  }
}

}  // namespace

void AddServeCommand(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App* const serve = app.add_subcommand("serve", "run the server and its workers");
  serve->add_option("--listen", options->listen, "HOST:PORT, default 127.0.0.1:8080");
  serve->add_option("--config", options->config_path, "default HOME/tarn.toml");
  serve->add_flag("--insecure-anonymous", options->insecure_anonymous,
                  "loopback only: no tokens, every caller is the administrator");
  serve->callback([&context, options] {
    context.action = [&context, options]() -> Status {
      if (!context.callbacks->serve) {
        return Status::Unimplemented("this program is a client only: it cannot serve");
      }
      options->home = context.home;
      return context.callbacks->serve(*options);
    };
  });
}

void AddVersionCommand(CLI::App& app, CommandContext& context) {
  CLI::App* const version = app.add_subcommand("version", "version of this program");
  version->callback([&context] {
    context.action = [&context] {
      return context.Out().Show(nlohmann::json{{"version", TARN_VERSION}}, "tarn " TARN_VERSION);
    };
  });
}

int Run(int argc, const char* const* argv, const Callbacks& callbacks) {
  CommandContext context;
  context.callbacks = &callbacks;
  CLI::App app("tarn: versioned datasets, and streams as Iceberg tables", "tarn");
  AddGlobalOptions(app, context);
  AddServeCommand(app, context);
  AddRunCommand(app, context);
  AddDatasetCommands(app, context);
  AddSqlCommand(app, context);
  AddPipelineCommands(app, context);
  AddTaskCommands(app, context);
  AddStatusCommand(app, context);
  AddTableCommands(app, context);
  AddViewCommands(app, context);
  AddAccessCommands(app, context);
  AddVersionCommand(app, context);
  AddLaterCommands(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    TellFailure(context, UsageError(std::string(error.what()) + "; see --help"));
    return kExitUsage;
  }
  context.home = ExpandHome(context.home);
  Status status;
  try {
    status = context.action ? context.action() : UsageError("no command; see --help");
  } catch (const std::exception& exception) {
    status = Status::Internal(exception.what());
  }
  if (!status.ok()) {
    TellFailure(context, status);
  }
  return ExitCodeOf(status);
}

}  // namespace tarn::cli
