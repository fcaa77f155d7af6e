// Pipeline files on their way to the server, and tables of tasks on their way to people.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tarn/base/status.h"
#include "tarn/cli/commands.h"
#include "tarn/cli/http_client.h"

namespace tarn::cli {

/// A call that sends the file as it is, so that line and column of failures are its own. Values
/// that the environment has for `${NAME}` under sources go beside it, never into it. No Accept yet.
/// Errors: as ReadLocalFile.
Result<HttpCall> MakePipelineCall(const std::string& target, const std::string& path);

/// Sends such a call; the answer as JSON. Failures name the file.
Result<nlohmann::json> SendPipelineFile(CommandContext& context, const std::string& target,
                                        const std::string& path);

/// Applies a pipeline file. When it is refused, everything that stands in its way goes to standard
/// error, a line for each object, and into the details of the failure as "refused".
Result<nlohmann::json> ApplyPipelineFile(CommandContext& context, const std::string& path);

/// A table of tasks for people, and below it what they should look at: warnings and last errors.
std::string FormatTasks(const nlohmann::json& tasks);

/// A pipeline or run: its own fields, then its tasks.
Status ShowWithTasks(CommandContext& context, const nlohmann::json& document);

}  // namespace tarn::cli
