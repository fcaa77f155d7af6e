#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/cli/commands.h"

namespace tarn::cli {

namespace {

using nlohmann::json;

struct TableOptions {
  std::string name;
  std::string key;
  std::string older_than;
  std::string dialect = "spark";
  int64_t keep = -1;
  bool dry_run = false;
  bool purge = false;
};

std::string TableTarget(const TableOptions& options, std::string_view rest) {
  return "/tarn/v1/tables/" + EncodeUrl(options.name) + std::string(rest);
}

json MaintenanceBody(const TableOptions& options) {
  json body = {{"dryRun", options.dry_run}};
  if (!options.older_than.empty()) {
    body["olderThan"] = options.older_than;
  }
  if (options.keep >= 0) {
    body["keep"] = options.keep;
  }
  return body;
}

/// A part of a table that is read: its route and the columns people see.
struct TablePart {
  const char* name;
  const char* help;
  const char* rest;
  std::vector<std::string> columns;
};

// What is wrong, or slow, is a failure for scripts; notes are none.
Status Diagnose(CommandContext& context, const TableOptions& options) {
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  TARN_ASSIGN_OR_RETURN(const json document, client->GetJson(TableTarget(options, "/doctor")));
  TARN_RETURN_IF_ERROR(ShowDocument(context, document, {"severity", "finding", "advice"}));
  size_t errors = 0;
  size_t warnings = 0;
  for (const json& finding : document.value("data", json::array())) {
    const std::string severity = finding.value("severity", "");
    errors += severity == "error" ? 1 : 0;
    warnings += severity == "warning" ? 1 : 0;
  }
  return errors + warnings == 0
             ? Status::Ok()
             : Status::FailedPrecondition(
                   fmt::format("{}: {} errors, {} warnings", options.name, errors, warnings))
                   .WithReason("TableHasFindings");
}

void AddTableReaders(CLI::App& table, CommandContext& context,
                     const std::shared_ptr<TableOptions>& options) {
  const TablePart parts[] = {
      {"show", "schema, partitioning, properties", "", {}},
      {"snapshots",
       "snapshots, newest first",
       "/snapshots",
       {"snapshotId", "committedTime", "operation", "addedRows", "deletedRows"}},
      {"files",
       "data and delete files of the current snapshot",
       "/files",
       {"path", "content", "rowCount", "sizeBytes"}},
      {"history", "moves of the branches", "/history", {"time", "ref", "snapshotId"}}};
  for (const TablePart& part : parts) {
    CLI::App* const sub = table.add_subcommand(part.name, part.help);
    sub->add_option("name", options->name, "PROJECT.TABLE")->required();
    sub->callback([&context, options, part] {
      context.action = [&context, options, part] {
        return CallAndShow(context, "GET", TableTarget(*options, part.rest), json(), part.columns);
      };
    });
  }
}

void AddTableMaintenance(CLI::App& table, CommandContext& context,
                         const std::shared_ptr<TableOptions>& options) {
  const std::pair<const char*, const char*> verbs[] = {
      {"compact", "rewrite small files into larger ones"},
      {"expire", "drop old snapshots and the files only they need"},
      {"orphans", "find or remove files that nothing refers to"}};
  for (const auto& [verb, help] : verbs) {
    CLI::App* const sub = table.add_subcommand(verb, help);
    sub->add_option("name", options->name, "PROJECT.TABLE")->required();
    if (std::string_view(verb) != "compact") {
      sub->add_option("--older-than", options->older_than, "only what is older, e.g. 7d");
    }
    if (std::string_view(verb) == "expire") {
      sub->add_option("--keep", options->keep, "snapshots to keep in any case")
          ->check(CLI::NonNegativeNumber);
    }
    sub->add_flag("--dry-run", options->dry_run, "say what would happen");
    sub->callback([&context, options, verb = std::string(verb)] {
      context.action = [&context, options, verb] {
        return CallAndShow(context, "POST", TableTarget(*options, ":" + verb),
                           MaintenanceBody(*options), {});
      };
    });
  }
}

}  // namespace

void AddTableCommands(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<TableOptions>();
  CLI::App* const table = app.add_subcommand("table", "Iceberg tables");
  table->require_subcommand(1);
  CLI::App* const list = table->add_subcommand("list", "list tables");
  list->callback([&context] {
    context.action = [&context]() -> Status {
      TARN_ASSIGN_OR_RETURN(const json tables, ListAll(context, "/tarn/v1/tables"));
      return ShowDocument(context, tables, {"name", "rows", "snapshotId", "updatedTime"});
    };
  });
  AddTableReaders(*table, context, options);
  CLI::App* const doctor = table->add_subcommand(
      "doctor", "what is wrong or slow, and what to do; exit code 1 when there is something");
  doctor->add_option("name", options->name, "PROJECT.TABLE")->required();
  doctor->callback([&context, options] {
    context.action = [&context, options] { return Diagnose(context, *options); };
  });
  AddTableMaintenance(*table, context, options);
  CLI::App* const drop =
      table->add_subcommand("drop", "take a table of no pipeline out of the catalog (files stay)");
  drop->add_option("name", options->name, "PROJECT.TABLE")->required();
  drop->add_flag("--purge", options->purge, "delete its files, too (Owner)");
  drop->callback([&context, options] {
    context.action = [&context, options] {
      return CallAndShow(
          context, "DELETE",
          WithQuery(TableTarget(*options, ""), {{"purge", options->purge ? "true" : ""}}), json(),
          {});
    };
  });
  CLI::App* const trace = table->add_subcommand("trace", "all changes of one key, in order");
  trace->add_option("name", options->name, "PROJECT.TABLE")->required();
  trace->add_option("key", options->key, "key; composite: a JSON array")->required();
  trace->callback([&context, options] {
    context.action = [&context, options] {
      return CallAndShow(
          context, "GET", WithQuery(TableTarget(*options, "/trace"), {{"key", options->key}}),
          json(), {"change_identifier", "operation", "from", "to", "store", "snapshot_id", "row"});
    };
  });
}

void AddViewCommands(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<TableOptions>();
  CLI::App* const view = app.add_subcommand("view", "current and history views");
  view->require_subcommand(1);
  CLI::App* const show = view->add_subcommand("show", "print the SQL of a view");
  show->add_option("name", options->name, "PROJECT.VIEW")->required();
  show->add_option("--dialect", options->dialect, "spark, trino or duckdb");
  show->callback([&context, options] {
    context.action = [&context, options]() -> Status {
      TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
      TARN_ASSIGN_OR_RETURN(const json document,
                            client->GetJson(WithQuery("/tarn/v1/views/" + EncodeUrl(options->name),
                                                      {{"dialect", options->dialect}})));
      return context.Out().Show(document, document.value("sql", ""));
    };
  });
  CLI::App* const drop =
      view->add_subcommand("drop", "take a view of no pipeline out of the catalog");
  drop->add_option("name", options->name, "PROJECT.VIEW")->required();
  drop->callback([&context, options] {
    context.action = [&context, options] {
      return CallAndShow(context, "DELETE", "/tarn/v1/views/" + EncodeUrl(options->name), json(),
                         {});
    };
  });
}

}  // namespace tarn::cli
