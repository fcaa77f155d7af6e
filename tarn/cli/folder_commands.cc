// tarn folder …
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tarn/cli/commands.h"
#include "tarn/cli/exit_code.h"

namespace tarn::cli {

namespace {

using nlohmann::json;

Status CreateFolder(CommandContext& context, const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == path.size()) {
    return UsageError("a folder is created as PROJECT/FOLDER, found \"" + path + "\"");
  }
  TARN_ASSIGN_OR_RETURN(const std::string parent, ResolveRid(context, path.substr(0, slash)));
  return CallAndShow(context, "POST", "/api/v2/filesystem/folders",
                     {{"parentFolderRid", parent}, {"displayName", path.substr(slash + 1)}}, {});
}

Status ListFolder(CommandContext& context, const std::string& path) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, path));
  TARN_ASSIGN_OR_RETURN(const json children, ListAll(context, "/api/v2/filesystem/folders/" +
                                                                  EncodeUrl(rid) + "/children"));
  return ShowDocument(context, children, {"displayName", "type", "rid"});
}

Status DeleteFolder(CommandContext& context, const std::string& path) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, path));
  return CallAndShow(context, "DELETE", "/tarn/v1/folders/" + EncodeUrl(rid), json(), {});
}

}  // namespace

void AddFolderCommands(CLI::App& app, CommandContext& context) {
  const auto path = std::make_shared<std::string>();
  CLI::App* const folder = app.add_subcommand(
      "folder", "folders of a project: the schemas of SQL, the namespaces of Iceberg");
  folder->require_subcommand(1);
  const auto add = [&](const char* name, const char* help,
                       Status (*command)(CommandContext&, const std::string&)) {
    CLI::App* const sub = folder->add_subcommand(name, help);
    sub->add_option("folder", *path, "PROJECT/FOLDER")->required();
    sub->callback([&context, path, command] {
      context.action = [&context, path, command] { return command(context, *path); };
    });
  };
  add("create", "make a folder in a project or folder", CreateFolder);
  add("list", "what a folder or project holds", ListFolder);
  add("delete", "remove a folder that holds nothing", DeleteFolder);
}

}  // namespace tarn::cli
