#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tarn/cli/commands.h"
#include "tarn/cli/dataset_options.h"
#include "tarn/cli/dataset_transfer.h"
#include "tarn/cli/exit_code.h"
#include "tarn/cli/interrupt.h"

namespace tarn::cli {

namespace {

using nlohmann::json;

const std::vector<std::string> kFileColumns = {"path", "sizeBytes", "updatedTime",
                                               "transactionRid"};

Status Create(CommandContext& context, const DatasetOptions& options) {
  const size_t slash = options.dataset.rfind('/');
  if (slash == std::string::npos || slash + 1 == options.dataset.size()) {
    return UsageError("a dataset is created as PROJECT/NAME, found \"" + options.dataset + "\"");
  }
  TARN_ASSIGN_OR_RETURN(const std::string parent,
                        ResolveRid(context, options.dataset.substr(0, slash)));
  return CallAndShow(context, "POST", "/api/v2/datasets",
                     {{"parentFolderRid", parent}, {"name", options.dataset.substr(slash + 1)}},
                     {});
}

constexpr std::chrono::milliseconds kTurnWaitFirst{50};
constexpr std::chrono::milliseconds kTurnWaitMax{1000};

// "transaction ri.… of alice, open since …", as far as the server tells.
std::string HolderOf(CommandContext& context, const std::string& rid,
                     const DatasetOptions& options) {
  const std::string branch = options.branch.empty() ? "master" : options.branch;
  const Result<HttpClient*> client = context.Client();
  const Result<json> head =
      client.ok() ? (*client)->GetJson(DatasetTarget(rid) + "/branches/" + EncodeUrl(branch))
                  : client.status();
  const std::string open = head.ok() ? head->value("transactionRid", "") : "";
  const Result<json> history =
      open.empty() ? Result<json>(json::object())
                   : (*client)->GetJson(NativeDatasetTarget(rid) + "/history?pageSize=50");
  std::string text = open.empty() ? "a transaction" : "transaction " + open;
  for (const json& one : history.ok() ? history->value("data", json::array()) : json::array()) {
    if (one.value("rid", "") == open && one.value("status", "") == "OPEN") {
      const std::string user = one.value("createdBy", "");
      const Result<json> known = (*client)->GetJson("/api/v2/admin/users/" + EncodeUrl(user));
      text += " of " + (known.ok() ? known->value("username", user) : user) + ", open since " +
              one.value("createdTime", "");
    }
  }
  return text;
}

// A branch has one open transaction at a time: another command's ends soon, one that was left open
// does not.
Result<std::string> StartTransaction(CommandContext& context, const std::string& rid,
                                     const DatasetOptions& options, const std::string& type) {
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  const std::string target =
      WithQuery(DatasetTarget(rid) + "/transactions", {{"branchName", options.branch}});
  const auto give_up =
      std::chrono::steady_clock::now() + std::chrono::seconds(options.wait_seconds);
  for (std::chrono::milliseconds wait = kTurnWaitFirst;; wait = std::min(wait * 2, kTurnWaitMax)) {
    const Result<json> started = client->Json("POST", target, {{"transactionType", type}});
    if (started.ok()) {
      return started->value("rid", "");
    }
    if (started.status().reason() != "OpenTransactionAlreadyExists") {
      return started.status();
    }
    if (std::chrono::steady_clock::now() + wait > give_up) {
      return Status(started.status().code(),
                    "branch " + (options.branch.empty() ? "master" : options.branch) + " of " +
                        options.dataset + " is held by " + HolderOf(context, rid, options) +
                        ": wait longer with --wait SECONDS, or end it with tarn dataset "
                        "transaction commit or abort")
          .WithReason(started.status().reason(), started.status().details());
    }
    std::this_thread::sleep_for(wait);
  }
}

Result<json> CloseTransaction(CommandContext& context, const std::string& rid,
                              const std::string& transaction, std::string_view verb) {
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  return client->Json(
      "POST",
      DatasetTarget(rid) + "/transactions/" + EncodeUrl(transaction) + "/" + std::string(verb),
      json());
}

/// Aborts what a failed command began; the failure that led here is what the user needs to see.
Status AbortAfter(CommandContext& context, const std::string& rid, const std::string& transaction,
                  const Status& failure) {
  if (failure.code() == ErrorCode::kCommitStateUnknown) {
    return failure;
  }
  const Status aborted = StatusOf(CloseTransaction(context, rid, transaction, "abort"));
  return aborted.ok()
             ? failure
             : Status(failure.code(), failure.message() + "; and transaction " + transaction +
                                          " stays open: " + aborted.message())
                   .WithReason(failure.reason(), failure.details());
}

Result<json> UploadAll(CommandContext& context, const std::string& rid,
                       const std::string& transaction, const std::vector<LocalFile>& files) {
  json uploaded = json::array();
  for (const LocalFile& file : files) {
    TARN_ASSIGN_OR_RETURN(json one, UploadOne(context, rid, transaction, file));
    uploaded.push_back(std::move(one));
  }
  return uploaded;
}

Status Put(CommandContext& context, const DatasetOptions& options) {
  if (!options.as.empty() && options.paths.size() != 1) {
    return UsageError("--as names exactly one file");
  }
  TARN_ASSIGN_OR_RETURN(
      std::vector<LocalFile> files,
      PlanUploads(options.paths, options.as.empty() ? options.prefix : options.as));
  if (!options.as.empty()) {
    if (files.size() != 1) {
      return UsageError("--as names exactly one file, found a folder");
    }
    files[0].logical = options.as;
  }
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  if (!options.transaction.empty()) {
    TARN_ASSIGN_OR_RETURN(const json uploaded, UploadAll(context, rid, options.transaction, files));
    return context.Out().Show(json{{"files", uploaded}}, TableOf(uploaded, kFileColumns));
  }
  const InterruptWatch watch;  // An OPEN transaction would block the branch.
  TARN_ASSIGN_OR_RETURN(const std::string transaction,
                        StartTransaction(context, rid, options, options.type));
  const Result<json> uploaded = UploadAll(context, rid, transaction, files);
  if (!uploaded.ok()) {
    return AbortAfter(context, rid, transaction, uploaded.status());
  }
  const Result<json> committed = CloseTransaction(context, rid, transaction, "commit");
  if (!committed.ok()) {
    return AbortAfter(context, rid, transaction, committed.status());
  }
  return context.Out().Show(json{{"transaction", *committed}, {"files", *uploaded}},
                            TableOf(*uploaded, kFileColumns));
}

Status Get(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  TARN_ASSIGN_OR_RETURN(const std::string view, ViewQuery(context, rid, options));
  std::vector<std::string> paths = options.paths;
  if (options.to == "-" && paths.size() != 1) {
    return UsageError("--to - writes exactly one PATH to standard output");
  }
  if (paths.empty()) {
    TARN_ASSIGN_OR_RETURN(const json files, ListAll(context, DatasetTarget(rid) + "/files" + view));
    for (const json& file : files) {
      paths.push_back(file.value("path", ""));
    }
  }
  if (options.to == "-") {
    return StatusOf(DownloadOne(context, rid, paths.front(), view, "-"));
  }
  json written = json::array();
  std::vector<std::string> refused;
  for (const std::string& path : paths) {
    const Result<std::string> local = PlanDownload(options.to, path);
    const Result<uint64_t> size_bytes =
        local.ok() ? DownloadOne(context, rid, path, view, *local) : local.status();
    if (size_bytes.status().reason() == kNameRefused) {
      // Another name may do: the other files come all the same.
      std::fputs(("tarn: " + EscapeForTerminal(size_bytes.status().message()) + "\n").c_str(),
                 stderr);
      refused.push_back(path);
      continue;
    }
    TARN_RETURN_IF_ERROR(size_bytes);
    written.push_back({{"path", path}, {"to", *local}, {"sizeBytes", std::to_string(*size_bytes)}});
  }
  TARN_RETURN_IF_ERROR(context.Out().Show(written, TableOf(written, {"path", "sizeBytes", "to"})));
  return refused.empty()
             ? Status::Ok()
             : Status::FailedPrecondition(
                   "get: " + std::to_string(refused.size()) + " of " +
                   std::to_string(paths.size()) +
                   " files have names that the local file system does not take, the first is \"" +
                   refused.front() + "\": write them with --to - and a name of your own")
                   .WithReason(std::string(kNameRefused), json{{"paths", refused}}.dump());
}

Status List(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(
      const json datasets,
      ListAll(context, WithQuery("/tarn/v1/resources",
                                 {{"type", "dataset"}, {"project", options.project}})));
  return ShowDocument(context, datasets, {"path", "rid"});
}

Status ListFiles(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  TARN_ASSIGN_OR_RETURN(const std::string view, ViewQuery(context, rid, options));
  TARN_ASSIGN_OR_RETURN(const json files,
                        ListAll(context, WithQuery(DatasetTarget(rid) + "/files" + view,
                                                   {{"pathPrefix", options.prefix}})));
  return ShowDocument(context, files, kFileColumns);
}

Status RemoveAll(CommandContext& context, const std::string& rid, const std::string& transaction,
                 const std::vector<std::string>& paths) {
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  for (const std::string& path : paths) {
    TARN_RETURN_IF_ERROR(
        StatusOf(client->Json("DELETE",
                              WithQuery(DatasetTarget(rid) + "/files/" + EncodeUrl(path),
                                        {{"transactionRid", transaction}}),
                              json())));
  }
  return Status::Ok();
}

Status Remove(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  TARN_ASSIGN_OR_RETURN(const std::string transaction,
                        StartTransaction(context, rid, options, "DELETE"));
  const Status removed = RemoveAll(context, rid, transaction, options.paths);
  if (!removed.ok()) {
    return AbortAfter(context, rid, transaction, removed);
  }
  const Result<json> committed = CloseTransaction(context, rid, transaction, "commit");
  if (!committed.ok()) {
    return AbortAfter(context, rid, transaction, committed.status());
  }
  return ShowDocument(context, *committed, {});
}

void AddTransactionCommands(CLI::App& dataset, CommandContext& context,
                            const std::shared_ptr<DatasetOptions>& options) {
  CLI::App* const transaction = dataset.add_subcommand("transaction", "transactions of a dataset");
  transaction->require_subcommand(1);
  CLI::App* const start = AddDatasetCommand(
      *transaction, context, "start", "open a transaction", options,
      [](CommandContext& c, const DatasetOptions& o) -> Status {
        TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(c, o.dataset));
        return CallAndShow(
            c, "POST", WithQuery(DatasetTarget(rid) + "/transactions", {{"branchName", o.branch}}),
            {{"transactionType", o.type}}, {});
      });
  start->add_option("--type", options->type, "SNAPSHOT, APPEND, UPDATE or DELETE");
  start->add_option("--branch", options->branch, "branch, default master");
  CLI::App* const commit = AddDatasetCommand(
      *transaction, context, "commit", "make an open transaction visible", options,
      [](CommandContext& c, const DatasetOptions& o) -> Status {
        TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(c, o.dataset));
        TARN_ASSIGN_OR_RETURN(const json closed, CloseTransaction(c, rid, o.transaction, "commit"));
        return ShowDocument(c, closed, {});
      });
  commit->add_option("transaction", options->transaction, "RID")->required();
  CLI::App* const abort = AddDatasetCommand(
      *transaction, context, "abort", "give an open transaction up", options,
      [](CommandContext& c, const DatasetOptions& o) -> Status {
        TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(c, o.dataset));
        TARN_ASSIGN_OR_RETURN(const json closed, CloseTransaction(c, rid, o.transaction, "abort"));
        return ShowDocument(c, closed, {});
      });
  abort->add_option("transaction", options->transaction, "RID")->required();
  CLI::App* const show = AddDatasetCommand(
      *transaction, context, "show", "show a transaction", options,
      [](CommandContext& c, const DatasetOptions& o) -> Status {
        TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(c, o.dataset));
        return CallAndShow(
            c, "GET", DatasetTarget(rid) + "/transactions/" + EncodeUrl(o.transaction), json(), {});
      });
  show->add_option("transaction", options->transaction, "RID")->required();
}

void AddWait(CLI::App& command, const std::shared_ptr<DatasetOptions>& options) {
  command
      .add_option("--wait", options->wait_seconds,
                  "seconds to wait for the end of another transaction on the branch, default 10")
      ->check(CLI::Range(0, 86'400));
}

void AddFileCommands(CLI::App& dataset, CommandContext& context,
                     const std::shared_ptr<DatasetOptions>& options) {
  CLI::App* const put =
      AddDatasetCommand(dataset, context, "put", "upload files in one transaction", options, Put);
  put->add_option("local", options->paths, "files or folders; - for standard input")->required();
  put->add_option("--branch", options->branch, "branch, default master");
  put->add_option("--type", options->type, "SNAPSHOT, APPEND or UPDATE");
  put->add_option("--transaction", options->transaction, "into this open one, without commit");
  put->add_option("--prefix", options->prefix, "goes before every name, e.g. raw/");
  put->add_option("--as", options->as, "name of the one file in the dataset");
  AddWait(*put, options);
  CLI::App* const get =
      AddDatasetCommand(dataset, context, "get", "download files of a view", options, Get);
  get->add_option("paths", options->paths, "files; all when none is named");
  get->add_option("--to", options->to, "folder; - for standard output");
  CLI::App* const list =
      AddDatasetCommand(dataset, context, "ls", "list the files of a view", options, ListFiles);
  list->add_option("prefix", options->prefix, "only paths that start with this");
  for (CLI::App* const reader : {get, list}) {
    reader->add_option("--branch", options->branch, "branch or tag, default master");
    reader->add_option("--at", options->at, "transaction RID, ISO-8601 time or tag");
  }
  CLI::App* const remove = AddDatasetCommand(
      dataset, context, "rm", "take files out of the view (bytes stay)", options, Remove);
  remove->add_option("paths", options->paths, "exact paths")->required();
  remove->add_option("--branch", options->branch, "branch, default master");
  AddWait(*remove, options);
}

}  // namespace

std::string NativeDatasetTarget(const std::string& rid) {
  return "/tarn/v1/datasets/" + EncodeUrl(rid);
}

std::string DatasetTarget(const std::string& rid) { return "/api/v2/datasets/" + EncodeUrl(rid); }

Result<std::string> ViewQuery(CommandContext& context, const std::string& rid,
                              const DatasetOptions& options) {
  if (options.at.starts_with("ri.")) {
    return WithQuery("", {{"endTransactionRid", options.at}});
  }
  if (options.at.empty() && (options.branch.empty() || options.branch == "master")) {
    return WithQuery("", {{"branchName", options.branch}});
  }
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  const std::string target = NativeDatasetTarget(rid) + "/transactions:at";
  if (!options.at.empty()) {
    TARN_ASSIGN_OR_RETURN(
        const json answer,
        client->GetJson(WithQuery(target, {{"branch", options.branch}, {"at", options.at}})));
    return WithQuery("", {{"endTransactionRid", answer.value("transactionRid", "")}});
  }
  // A name is a branch's, or else a tag's. Without either the read itself says so.
  const Result<json> named = client->GetJson(WithQuery(target, {{"at", options.branch}}));
  if (named.ok() && named->value("kind", "") == "tag") {
    return WithQuery("", {{"endTransactionRid", named->value("transactionRid", "")}});
  }
  return WithQuery("", {{"branchName", options.branch}});
}

CLI::App* AddDatasetCommand(CLI::App& parent, CommandContext& context, const std::string& name,
                            const std::string& help, const std::shared_ptr<DatasetOptions>& options,
                            DatasetCommand command) {
  CLI::App* const sub = parent.add_subcommand(name, help);
  sub->add_option("dataset", options->dataset, "PROJECT/NAME or RID")->required();
  sub->callback([&context, options, command] {
    context.action = [&context, options, command] { return command(context, *options); };
  });
  return sub;
}

void AddDatasetCommands(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<DatasetOptions>();
  CLI::App* const dataset = app.add_subcommand("dataset", "versioned sets of files");
  dataset->require_subcommand(1);
  AddDatasetCommand(*dataset, context, "create", "create a dataset", options, Create);
  AddDatasetCommand(*dataset, context, "show", "show a dataset", options,
                    [](CommandContext& c, const DatasetOptions& o) -> Status {
                      TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(c, o.dataset));
                      return CallAndShow(c, "GET", DatasetTarget(rid), json(), {});
                    });
  CLI::App* const list = dataset->add_subcommand("list", "list datasets");
  list->add_option("project", options->project, "only in this project");
  list->callback([&context, options] {
    context.action = [&context, options] { return List(context, *options); };
  });
  AddFileCommands(*dataset, context, options);
  AddDatasetHistoryCommands(*dataset, context, options);
  AddDatasetBranchCommands(*dataset, context, options);
  AddDatasetRetentionCommands(*dataset, context, options);
  AddTransactionCommands(*dataset, context, options);
}

}  // namespace tarn::cli
