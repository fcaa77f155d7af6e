// What the command groups share: global options, the client, the output. One file per group.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tarn/base/status.h"
#include "tarn/base/url.h"
#include "tarn/cli/command_line.h"
#include "tarn/cli/http_client.h"
#include "tarn/cli/output.h"

namespace CLI {
class App;
}

namespace tarn::cli {

/// One run of the command line. One owner thread; commands keep references to it.
struct CommandContext {
  std::string url;
  std::string token;
  std::string home;
  bool json = false;
  const Callbacks* callbacks = nullptr;
  std::function<Status()> action;  // Set by the subcommand that was named.

  /// The client, opened at first use. Errors: as HttpClient::Open.
  Result<HttpClient*> Client();
  [[nodiscard]] Output Out() const {
    return {json ? OutputFormat::kJson : OutputFormat::kText, stdout};
  }

 private:
  std::unique_ptr<HttpClient> client_;
};

void AddServeCommand(CLI::App& app, CommandContext& context);
void AddDatasetCommands(CLI::App& app, CommandContext& context);
void AddSqlCommand(CLI::App& app, CommandContext& context);
void AddPipelineCommands(CLI::App& app, CommandContext& context);
void AddTaskCommands(CLI::App& app, CommandContext& context);
void AddRunCommand(CLI::App& app, CommandContext& context);
void AddStatusCommand(CLI::App& app, CommandContext& context);
void AddTableCommands(CLI::App& app, CommandContext& context);
void AddViewCommands(CLI::App& app, CommandContext& context);
void AddFolderCommands(CLI::App& app, CommandContext& context);
void AddAccessCommands(CLI::App& app, CommandContext& context);  // user, token, project
void AddGroupCommands(CLI::App& app, CommandContext& context);   // group, role
void AddVersionCommand(CLI::App& app, CommandContext& context);

/// RID of a resource given as "ri.…" or as "PROJECT/FOLDER/NAME" (a leading slash starts at the
/// spaces). Errors: kNotFound (PathNotFound).
Result<std::string> ResolveRid(CommandContext& context, std::string_view name);

/// All entries of `data` over all pages. `target` may have a query.
Result<nlohmann::json> ListAll(CommandContext& context, const std::string& target);

/// "target?a=1&b=2" without the parameters whose value is empty.
std::string WithQuery(std::string target,
                      const std::vector<std::pair<std::string, std::string>>& parameters);

/// Sends, then shows the answer: arrays as a table of `columns`, objects field by field.
Status CallAndShow(CommandContext& context, std::string_view method, const std::string& target,
                   const nlohmann::json& body, const std::vector<std::string>& columns);
Status ShowDocument(CommandContext& context, const nlohmann::json& document,
                    const std::vector<std::string>& columns);

/// Sends a call that is answered with rows and shows them: as an aligned table, with --json as the
/// array that came, number by number: a JSON library would round. Returns the answer without them.
Result<HttpAnswer> ShowRows(CommandContext& context, HttpCall call);
/// The same for a request of POST /tarn/v1/sql.
Status ShowSql(CommandContext& context, const nlohmann::json& request);

/// Reads a local file ("-" = standard input) of at most 64 MiB. Errors: a usage error that names
/// it.
Result<std::string> ReadLocalFile(const std::string& path);

}  // namespace tarn::cli
