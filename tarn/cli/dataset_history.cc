// tarn dataset log, diff, increment, schema, read.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tarn/base/sql_name.h"
#include "tarn/cli/dataset_graph.h"
#include "tarn/cli/dataset_options.h"
#include "tarn/cli/exit_code.h"

namespace tarn::cli {

namespace {

using nlohmann::json;

const std::vector<std::string> kTransactionColumns = {"rid", "transactionType", "status",
                                                      "createdTime", "closedTime"};

// Entries of a paged listing until `limit` are there.
Result<json> ListUpTo(CommandContext& context, const std::string& target, int64_t limit) {
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  json entries = json::array();
  std::string page_token;
  do {
    TARN_ASSIGN_OR_RETURN(
        const json page,
        client->GetJson(WithQuery(target, {{"pageSize", "50"}, {"pageToken", page_token}})));
    for (const json& entry : page.value("data", json::array())) {
      if (static_cast<int64_t>(entries.size()) < limit) {
        entries.push_back(entry);
      }
    }
    page_token = page.value("nextPageToken", "");
  } while (!page_token.empty() && static_cast<int64_t>(entries.size()) < limit);
  return entries;
}

std::optional<std::string> OptionalText(const json& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_string()
             ? std::optional<std::string>(found->get<std::string>())
             : std::nullopt;
}

// "APPEND COMMITTED 2026-01-31T… 12 files (master, tag v1) ri.…".
std::string TextOf(const json& entry) {
  std::string text = entry.value("transactionType", "") + " " + entry.value("status", "") + " " +
                     entry.value("createdTime", "") + " " +
                     std::to_string(entry.value("fileCount", int64_t{0})) + " files";
  std::string names;
  for (const json& branch : entry.value("branches", json::array())) {
    names += (names.empty() ? "" : ", ") + branch.get<std::string>();
  }
  for (const json& tag : entry.value("tags", json::array())) {
    names += (names.empty() ? "tag " : ", tag ") + tag.get<std::string>();
  }
  if (!names.empty()) {
    text += " (" + names + ")";
  }
  if (entry.value("dataRemoved", false)) {
    text += " [data removed by retention]";
  }
  return EscapeForTerminal(text + " " + entry.value("rid", ""));
}

Status ShowGraph(CommandContext& context, const std::string& rid, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const json history,
                        ListUpTo(context, NativeDatasetTarget(rid) + "/history", options.limit));
  std::vector<GraphEntry> entries;
  for (const json& entry : history) {
    entries.push_back({.id = entry.value("rid", ""),
                       .parent = OptionalText(entry, "parentRid"),
                       .merged = OptionalText(entry, "mergedRid"),
                       .text = TextOf(entry)});
  }
  std::string drawing;
  for (const std::string& line : DrawGraph(entries)) {
    drawing += (drawing.empty() ? "" : "\n") + line;
  }
  return context.Out().Show(history, drawing);
}

Status ShowLog(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  if (options.graph) {
    return ShowGraph(context, rid, options);
  }
  const std::string branch = options.branch.empty() ? "master" : options.branch;
  TARN_ASSIGN_OR_RETURN(
      const json history,
      ListUpTo(context,
               DatasetTarget(rid) + "/branches/" + EncodeUrl(branch) + "/transactions?preview=true",
               options.limit));
  return ShowDocument(context, history, kTransactionColumns);
}

// Reads all pages of lists of files into one document.
Result<json> ReadPages(CommandContext& context, const std::string& target,
                       const std::vector<std::string>& lists) {
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  json all;
  std::string page_token;
  do {
    TARN_ASSIGN_OR_RETURN(json page,
                          client->GetJson(WithQuery(target, {{"pageToken", page_token}})));
    page_token = page.value("nextPageToken", "");
    page.erase("nextPageToken");
    if (all.is_null()) {
      all = std::move(page);
      continue;
    }
    for (const std::string& list : lists) {
      for (json& entry : page[list]) {
        all[list].push_back(std::move(entry));
      }
    }
  } while (!page_token.empty());
  return all;
}

// One row per file: "added", "changed", "removed", and its path.
Table ChangesTable(const json& document, const std::vector<std::string>& lists) {
  Table table{.columns = {"change", "path", "sizeBytes"}, .rows = {}};
  for (const std::string& list : lists) {
    for (const json& entry : document.value(list, json::array())) {
      const json& file = entry.contains("after") ? entry["after"] : entry;
      table.rows.push_back(
          {list, CellOf(entry.value("path", json())), CellOf(file.value("sizeBytes", json()))});
    }
  }
  return table;
}

Status ShowDifference(CommandContext& context, const DatasetOptions& options) {
  const std::vector<std::string> lists = {"added", "changed", "removed"};
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  TARN_ASSIGN_OR_RETURN(
      const json difference,
      ReadPages(context,
                WithQuery(NativeDatasetTarget(rid) + "/compare",
                          {{"from", options.from}, {"to", options.to}, {"pageSize", "10000"}}),
                lists));
  return context.Out().Show(difference, ChangesTable(difference, lists));
}

Status ShowIncrement(CommandContext& context, const DatasetOptions& options) {
  const std::vector<std::string> lists = {"added", "changed", "removed", "removed_by_retention"};
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  TARN_ASSIGN_OR_RETURN(
      const json increment,
      ReadPages(
          context,
          WithQuery(NativeDatasetTarget(rid) + "/increment",
                    {{"since", options.from}, {"branch", options.branch}, {"pageSize", "10000"}}),
          lists));
  if (!context.json && !increment.value("incremental", true)) {
    return context.Out().Show(increment, "not incremental: " + increment.value("reason", ""));
  }
  return context.Out().Show(increment, ChangesTable(increment, lists));
}

Status ShowSchema(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  TARN_ASSIGN_OR_RETURN(const std::string view, ViewQuery(context, rid, options));
  const std::string target =
      WithQuery(DatasetTarget(rid) + "/getSchema" + view, {{"preview", "true"}});
  TARN_ASSIGN_OR_RETURN(const json document, client->GetJson(target));
  const json fields =
      document.value("schema", json::object()).value("fieldSchemaList", json::array());
  return context.Out().Show(document, TableOf(fields, {"name", "type", "nullable"}));
}

// As an array of objects, which the SQL route writes exactly.
Status ReadJson(CommandContext& context, const DatasetOptions& options, const std::string& rid) {
  std::string columns;
  for (const std::string& column : options.columns) {
    columns += (columns.empty() ? "" : ", ") + QuoteSqlName(column);
  }
  json body = {{"query", "SELECT " + (columns.empty() ? "*" : columns) + " FROM " +
                             QuoteSqlName(rid) +
                             (options.row_limit > 0 ? " LIMIT " + std::to_string(options.row_limit)
                                                    : std::string())}};
  if (!options.branch.empty()) {
    body["branch"] = options.branch;
  }
  if (!options.at.empty()) {
    body["at"] = options.at;
  }
  return ShowSql(context, body);
}

// The rows as they come, without holding them.
Status ReadRows(CommandContext& context, const DatasetOptions& options) {
  if (options.format != "csv" && options.format != "arrow") {
    return UsageError("--format is csv or arrow, found \"" + options.format + "\"");
  }
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  if (context.json) {
    return ReadJson(context, options, rid);
  }
  TARN_ASSIGN_OR_RETURN(const std::string view, ViewQuery(context, rid, options));
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  HttpCall call;
  std::vector<std::pair<std::string, std::string>> parameters = {
      {"format", options.format == "csv" ? "CSV" : "ARROW"}};
  for (const std::string& column : options.columns) {
    parameters.emplace_back("columns", column);
  }
  if (options.row_limit > 0) {
    parameters.emplace_back("rowLimit", std::to_string(options.row_limit));
  }
  call.target = WithQuery(DatasetTarget(rid) + "/readTable" + view, parameters);
  call.download = [&context](std::string_view bytes) {
    Output out = context.Out();
    return out.Raw(bytes);
  };
  return StatusOf(client->Send(call));
}

}  // namespace

void AddDatasetHistoryCommands(CLI::App& dataset, CommandContext& context,
                               const std::shared_ptr<DatasetOptions>& options) {
  CLI::App* const log = AddDatasetCommand(
      dataset, context, "log", "transactions of a branch, newest first", options, ShowLog);
  log->add_flag("--graph", options->graph, "all branches, as a graph");
  log->add_option("--limit", options->limit, "at most so many");
  CLI::App* const diff = AddDatasetCommand(
      dataset, context, "diff", "files that differ between two views", options, ShowDifference);
  diff->add_option("from", options->from, "branch, tag or transaction")->required();
  diff->add_option("to", options->to, "branch, tag or transaction")->required();
  CLI::App* const increment =
      AddDatasetCommand(dataset, context, "increment",
                        "what changed on a branch since a transaction", options, ShowIncrement);
  increment->add_option("--since", options->from, "transaction; all files are new without it");
  CLI::App* const schema =
      AddDatasetCommand(dataset, context, "schema", "the schema of a view", options, ShowSchema);
  CLI::App* const read =
      AddDatasetCommand(dataset, context, "read", "the rows of a view to standard output", options,
                        [](CommandContext& c, const DatasetOptions& o) { return ReadRows(c, o); });
  read->add_option("--format", options->format, "csv or arrow");
  read->add_option("--columns", options->columns, "only these")->delimiter(',');
  read->add_option("--limit", options->row_limit, "at most so many rows; 0 = all");
  for (CLI::App* const command : {schema, read}) {
    command->add_option("--branch", options->branch, "branch or tag, default master");
    command->add_option("--at", options->at, "transaction RID, ISO-8601 time or tag");
  }
  for (CLI::App* const command : {log, increment}) {
    command->add_option("--branch", options->branch, "branch, default master");
  }
}

}  // namespace tarn::cli
