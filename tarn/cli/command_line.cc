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
  app.set_version_flag("--version", "tarn " TARN_VERSION);
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

// Works on the files of the home, without a server.
void AddMetastoreCommand(CLI::App& app, CommandContext& context) {
  CLI::App* const metastore =
      app.add_subcommand("metastore", "the server's own database; the server must not run");
  metastore->require_subcommand(1);
  const auto file = std::make_shared<std::string>();
  const auto add = [&](const char* name, const char* help,
                       Callbacks::MetastoreFunction Callbacks::* function) {
    CLI::App* const command = metastore->add_subcommand(name, help);
    command->callback([&context, file, function] {
      context.action = [&context, file, function]() -> Status {
        const Callbacks::MetastoreFunction& run = context.callbacks->*function;
        if (!run) {
          return Status::Unimplemented("this program is a client only: it has no metastore");
        }
        TARN_ASSIGN_OR_RETURN(const std::string done, run({.home = context.home, .file = *file}));
        return context.Out().Show(nlohmann::json{{"done", done}}, done);
      };
    });
    return command;
  };
  add("export", "write everything it holds to one file", &Callbacks::export_metastore)
      ->add_option("file", *file, "the file to make")
      ->required();
  add("import", "make the metastore of a home that has none from such a file",
      &Callbacks::import_metastore)
      ->add_option("file", *file, "the file that export wrote")
      ->required();
  add("check", "read every page and every reference", &Callbacks::check_metastore);
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
  AddFolderCommands(app, context);
  AddAccessCommands(app, context);
  AddGroupCommands(app, context);
  AddVersionCommand(app, context);
  AddMetastoreCommand(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
    TellFailure(context,
                UsageError((unknown.empty() ? std::string(error.what())
                                            : "there is no command or option " + unknown.front()) +
                           "; see --help"));
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
