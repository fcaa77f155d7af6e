#include <algorithm>
#include <cctype>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tarn/cli/commands.h"
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

// Where the first word begins, behind blanks and comments.
size_t FirstWord(std::string_view query) {
  for (size_t at = 0;;) {
    at = std::min(query.find_first_not_of(" \t\r\n", at), query.size());
    const std::string_view mark = query.substr(at, 2);
    if (mark != "--" && mark != "/*") {
      return at;
    }
    const std::string_view end = mark == "--" ? "\n" : "*/";
    const size_t ends = query.find(end, at + 2);
    at = ends == std::string_view::npos ? query.size() : ends + end.size();
  }
}

// True for the statements that change rows, or make or drop something.
bool IsChange(std::string_view query) {
  const size_t begin = FirstWord(query);
  std::string word;
  for (const char c : query.substr(begin)) {
    if (std::isalpha(static_cast<unsigned char>(c)) == 0) {
      break;
    }
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return word == "delete" || word == "update" || word == "insert" || word == "merge" ||
         word == "create" || word == "drop";
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
  if (query.find_first_not_of(" \t\r\n") == std::string::npos) {
    return UsageError("the query is empty");
  }
  nlohmann::json body = {{"query", query}};
  if (!options.branch.empty()) {
    body["branch"] = options.branch;
  }
  if (!options.at.empty()) {
    body["at"] = options.at;
  }
  if (IsChange(query)) {
    if (!options.branch.empty() || !options.at.empty()) {
      return UsageError("rows are changed as they are now: leave --branch and --at out");
    }
    return CallAndShow(context, "POST", "/tarn/v1/sql:change", body, {});
  }
  if (format == "table" || context.json) {
    return ShowSql(context, body);
  }
  HttpCall call;
  call.method = "POST";
  call.target = "/tarn/v1/sql";
  call.only_asks = true;
  call.headers = {{"Content-Type", "application/json"}, {"Accept", media_type}};
  call.body = body.dump();
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  Output out = context.Out();
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
  CLI::App* const sql =
      app.add_subcommand("sql", "query datasets, tables and views, change tables");
  sql->add_option("query", options->query, "SQL text; - reads standard input")->required();
  sql->add_option("--format", options->format, "table, csv, json or arrow");
  sql->add_option("--branch", options->branch, "branch or tag of the datasets and tables");
  sql->add_option("--at", options->at, "time, snapshot, transaction or tag");
  sql->callback([&context, options] {
    context.action = [&context, options] { return Query(context, *options); };
  });
}

}  // namespace tarn::cli
