#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tarn/cli/commands.h"
#include "tarn/cli/csv_text.h"
#include "tarn/cli/exit_code.h"

namespace tarn::cli {

namespace {

struct SqlOptions {
  std::string query;
  std::string format;
  std::string branch;
  std::string at;
};

Result<std::string> MediaTypeOf(const std::string& format) {
  if (format == "json") {
    return std::string("application/json");
  }
  if (format == "arrow") {
    return std::string("application/vnd.apache.arrow.stream");
  }
  if (format == "csv" || format == "table") {
    return std::string("text/csv");
  }
  return UsageError("--format is table, csv, json or arrow, found " + format);
}

Status Query(CommandContext& context, const SqlOptions& options) {
  const std::string chosen = options.format.empty() ? "table" : options.format;
  TARN_RETURN_IF_ERROR(StatusOf(MediaTypeOf(chosen)));
  if (context.json && chosen == "arrow") {
    return UsageError("--json and --format arrow cannot stand together");
  }
  const std::string format = context.json ? "json" : chosen;
  TARN_ASSIGN_OR_RETURN(const std::string media_type, MediaTypeOf(format));
  std::string query = options.query;
  if (query == "-") {
    TARN_ASSIGN_OR_RETURN(query, ReadLocalFile("-"));
  }
  nlohmann::json body = {{"query", query}};
  if (!options.branch.empty()) {
    body["branch"] = options.branch;
  }
  if (!options.at.empty()) {
    body["at"] = options.at;
  }
  HttpCall call;
  call.method = "POST";
  call.target = "/tarn/v1/sql";
  call.headers = {{"Content-Type", "application/json"}, {"Accept", media_type}};
  call.body = body.dump();
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  Output out = context.Out();
  if (format == "table") {
    TARN_ASSIGN_OR_RETURN(const HttpAnswer answer, client->Send(call));
    TARN_ASSIGN_OR_RETURN(const Table table, ParseCsv(answer.body));
    return out.Raw(FormatTable(table));
  }
  // Numbers go through as they came: a JSON library would round them.
  char last = '\n';
  call.download = [&out, &last](std::string_view bytes) {
    last = bytes.empty() ? last : bytes.back();
    return out.Raw(bytes);
  };
  TARN_RETURN_IF_ERROR(StatusOf(client->Send(call)));
  return format == "json" && last != '\n' ? out.Raw("\n") : Status::Ok();
}

}  // namespace

void AddSqlCommand(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<SqlOptions>();
  CLI::App* const sql = app.add_subcommand("sql", "query datasets, tables and views");
  sql->add_option("query", options->query, "SQL text; - reads standard input")->required();
  sql->add_option("--format", options->format, "table, csv, json or arrow");
  sql->add_option("--branch", options->branch, "branch of the datasets and tables");
  sql->add_option("--at", options->at, "time, snapshot or transaction");
  sql->callback([&context, options] {
    context.action = [&context, options] { return Query(context, *options); };
  });
}

}  // namespace tarn::cli
