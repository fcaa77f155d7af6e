// tarn dataset branch …, tag …
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tarn/cli/dataset_options.h"
#include "tarn/cli/exit_code.h"

namespace tarn::cli {

namespace {

using nlohmann::json;

std::string BranchTarget(const std::string& rid, const std::string& branch, std::string_view verb) {
  return NativeDatasetTarget(rid) + "/branches/" + EncodeUrl(branch) + ":" + std::string(verb);
}

Status ListBranches(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  TARN_ASSIGN_OR_RETURN(const json branches, ListAll(context, DatasetTarget(rid) + "/branches"));
  return ShowDocument(context, branches, {"name", "transactionRid"});
}

// From a branch the server starts: it alone knows its OPEN transaction and its schemas.
Status CreateBranch(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  json body = {{"name", options.name}};
  if (!options.from.empty()) {
    body[options.from.starts_with("ri.") ? "transactionRid" : "fromBranch"] = options.from;
  }
  return CallAndShow(context, "POST", NativeDatasetTarget(rid) + "/branches", body, {});
}

Status DeleteBranch(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  return CallAndShow(context, "DELETE", DatasetTarget(rid) + "/branches/" + EncodeUrl(options.name),
                     json(), {});
}

// "PATH=source" or "PATH=target"; the path may contain '='.
Result<json> ChoicesOf(const std::vector<std::string>& texts) {
  json choices = json::object();
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    const std::string side = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (side != "source" && side != "target") {
      return UsageError("--choose takes PATH=source or PATH=target, found \"" + text + "\"");
    }
    choices[text.substr(0, equals)] = side;
  }
  return choices;
}

Status MergeBranch(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  json body = {{"source", options.source}, {"dryRun", options.dry_run}};
  TARN_ASSIGN_OR_RETURN(body["choices"], ChoicesOf(options.choices));
  if (!options.otherwise.empty()) {
    body["otherwise"] = options.otherwise;
  }
  return CallAndShow(context, "POST", BranchTarget(rid, options.name, "merge"), body, {});
}

Status ResetBranch(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  return CallAndShow(context, "POST", BranchTarget(rid, options.name, "reset"),
                     {{"transactionRid", options.transaction}}, {});
}

Status FastForwardBranch(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  return CallAndShow(context, "POST", BranchTarget(rid, options.name, "fastForward"),
                     {{"to", options.transaction}}, {});
}

Status ProtectBranch(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  return CallAndShow(context, "POST", BranchTarget(rid, options.name, "protect"),
                     {{"protected", !options.off}}, {});
}

Status ListTags(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  TARN_ASSIGN_OR_RETURN(const json tags, ListAll(context, NativeDatasetTarget(rid) + "/tags"));
  return ShowDocument(context, tags, {"name", "transactionRid", "createdTime"});
}

Status CreateTag(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  return CallAndShow(context, "POST", NativeDatasetTarget(rid) + "/tags",
                     {{"name", options.name}, {"transactionRid", options.transaction}}, {});
}

Status DeleteTag(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  return CallAndShow(context, "DELETE",
                     NativeDatasetTarget(rid) + "/tags/" + EncodeUrl(options.name), json(), {});
}

void AddTagCommands(CLI::App& dataset, CommandContext& context,
                    const std::shared_ptr<DatasetOptions>& options) {
  CLI::App* const tag = dataset.add_subcommand("tag", "names that stay on one transaction");
  tag->require_subcommand(1);
  AddDatasetCommand(*tag, context, "list", "list tags", options, ListTags);
  CLI::App* const create =
      AddDatasetCommand(*tag, context, "create", "name a transaction for good", options, CreateTag);
  create->add_option("name", options->name, "name of the tag")->required();
  create->add_option("transaction", options->transaction, "RID")->required();
  CLI::App* const remove = AddDatasetCommand(
      *tag, context, "delete", "remove a tag (its transaction stays)", options, DeleteTag);
  remove->add_option("name", options->name, "name of the tag")->required();
}

}  // namespace

void AddDatasetBranchCommands(CLI::App& dataset, CommandContext& context,
                              const std::shared_ptr<DatasetOptions>& options) {
  CLI::App* const branch = dataset.add_subcommand("branch", "branches of a dataset");
  branch->require_subcommand(1);
  AddDatasetCommand(*branch, context, "list", "list branches", options, ListBranches);
  const auto add = [&](const char* name, const char* help, DatasetCommand command) {
    CLI::App* const sub = AddDatasetCommand(*branch, context, name, help, options, command);
    sub->add_option("name", options->name, "name of the branch")->required();
    return sub;
  };
  add("create", "create a branch", CreateBranch)
      ->add_option("--from", options->from, "branch or transaction to start at");
  add("delete", "delete a branch (its transactions stay)", DeleteBranch);
  add("reset", "point a branch at a committed transaction", ResetBranch)
      ->add_option("transaction", options->transaction, "RID")
      ->required();
  add("fast-forward", "move a branch to a descendant of its head", FastForwardBranch)
      ->add_option("to", options->transaction, "branch or transaction")
      ->required();
  add("protect", "keep a branch from being deleted and reset", ProtectBranch)
      ->add_flag("--off", options->off, "take the protection off");
  CLI::App* const merge =
      add("merge", "merge a branch or transaction into the branch", MergeBranch);
  merge->add_option("source", options->source, "branch or transaction")->required();
  merge->add_option("--choose", options->choices, "PATH=source or PATH=target, for conflicts");
  merge->add_option("--otherwise", options->otherwise, "source or target, for other conflicts");
  merge->add_flag("--dry-run", options->dry_run, "only say what would happen");
  AddTagCommands(dataset, context, options);
}

}  // namespace tarn::cli
