#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tarn/cli/commands.h"

namespace tarn::cli {

namespace {

using nlohmann::json;

struct AccessOptions {
  std::string name;
  std::string user;
  std::string scopes;
  std::string expires;
};

Status CreateToken(CommandContext& context, const AccessOptions& options) {
  json body = json::object();
  const std::pair<const char*, const std::string*> members[] = {{"user", &options.user},
                                                                {"name", &options.name},
                                                                {"scopes", &options.scopes},
                                                                {"expires", &options.expires}};
  for (const auto& [name, value] : members) {
    if (!value->empty()) {
      body[name] = *value;
    }
  }
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  TARN_ASSIGN_OR_RETURN(const json created, client->Json("POST", "/tarn/v1/tokens", body));
  // The bare token on a line of its own, so that TARN_TOKEN=$(tarn token create) works.
  return context.Out().Show(created, created.value("token", ""));
}

void AddTokenCommands(CLI::App& app, CommandContext& context,
                      const std::shared_ptr<AccessOptions>& options) {
  CLI::App* const token = app.add_subcommand("token", "bearer tokens");
  token->require_subcommand(1);
  CLI::App* const create = token->add_subcommand("create", "create a token; it is shown once");
  create->add_option("--user", options->user, "name or id; you when absent");
  create->add_option("--name", options->name, "what the token is for");
  create->add_option("--scopes", options->scopes, "separated by blanks; all when absent");
  create->add_option("--expires", options->expires, "e.g. 90d; never when absent");
  create->callback([&context, options] {
    context.action = [&context, options] { return CreateToken(context, *options); };
  });
  CLI::App* const list = token->add_subcommand("list", "list tokens");
  list->add_option("--user", options->user, "name or id; you when absent");
  list->callback([&context, options] {
    context.action = [&context, options] {
      return CallAndShow(context, "GET", WithQuery("/tarn/v1/tokens", {{"user", options->user}}),
                         json(), {"id", "name", "user", "scopes", "expires", "revoked"});
    };
  });
  CLI::App* const revoke = token->add_subcommand("revoke", "make a token stop working");
  revoke->add_option("id", options->name, "id of the token")->required();
  revoke->callback([&context, options] {
    context.action = [&context, options] {
      return CallAndShow(context, "DELETE", "/tarn/v1/tokens/" + EncodeUrl(options->name), json(),
                         {});
    };
  });
}

}  // namespace

void AddAccessCommands(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<AccessOptions>();
  CLI::App* const user = app.add_subcommand("user", "users");
  user->require_subcommand(1);
  CLI::App* const create = user->add_subcommand("create", "create a user without any rights");
  create->add_option("name", options->name, "user name")->required();
  create->callback([&context, options] {
    context.action = [&context, options] {
      return CallAndShow(context, "POST", "/tarn/v1/users", {{"name", options->name}}, {});
    };
  });
  CLI::App* const list = user->add_subcommand("list", "list users");
  list->callback([&context] {
    context.action = [&context] {
      return CallAndShow(context, "GET", "/tarn/v1/users", json(), {"id", "name"});
    };
  });
  AddTokenCommands(app, context, options);
  CLI::App* const project = app.add_subcommand("project", "projects");
  project->require_subcommand(1);
  CLI::App* const projects = project->add_subcommand("list", "list projects");
  projects->callback([&context] {
    context.action = [&context] {
      return CallAndShow(context, "GET", "/tarn/v1/resources?type=project", json(),
                         {"name", "path", "rid"});
    };
  });
}

}  // namespace tarn::cli
