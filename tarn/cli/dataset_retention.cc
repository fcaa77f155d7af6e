// tarn dataset retention …, sweep.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tarn/cli/dataset_options.h"
#include "tarn/cli/exit_code.h"

namespace tarn::cli {

namespace {

using nlohmann::json;

const std::string kPolicies = "/tarn/v1/retention/policies";

Status ListPolicies(CommandContext& context, const DatasetOptions& options) {
  std::string target = kPolicies;
  if (!options.dataset.empty()) {
    TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
    target = NativeDatasetTarget(rid) + "/retention";
  }
  return CallAndShow(context, "GET", target, json(),
                     {"name", "datasets", "transactions", "grace", "latestView"});
}

Status PutPolicy(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string text, ReadLocalFile(options.file));
  const json policy = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!policy.is_object()) {
    return UsageError(options.file + ": no JSON object");
  }
  const std::string name = options.name.empty() ? policy.value("name", "") : options.name;
  if (name.empty()) {
    return UsageError(options.file + ": the policy has no name; give --name");
  }
  return CallAndShow(context, "PUT", kPolicies + "/" + EncodeUrl(name), policy, {});
}

Status DeletePolicy(CommandContext& context, const DatasetOptions& options) {
  return CallAndShow(context, "DELETE", kPolicies + "/" + EncodeUrl(options.name), json(), {});
}

Status Run(CommandContext& context, const DatasetOptions& options) {
  return CallAndShow(context, "POST", "/tarn/v1/retention:run", {{"dryRun", options.dry_run}}, {});
}

Status Sweep(CommandContext& context, const DatasetOptions& options) {
  return CallAndShow(context, "POST", "/tarn/v1/sweep:run", {{"dryRun", options.dry_run}}, {});
}

Status Explain(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  return CallAndShow(
      context, "GET",
      WithQuery(
          NativeDatasetTarget(rid) + "/retention:explain",
          {{"path", options.name}, {"transactionRid", options.at}, {"branch", options.branch}}),
      json(), {});
}

Status Unmark(CommandContext& context, const DatasetOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.dataset));
  return CallAndShow(context, "POST", NativeDatasetTarget(rid) + "/retention:unmark",
                     {{"transactionRid", options.transaction}}, {});
}

// A subcommand that names no dataset.
CLI::App* Add(CLI::App& parent, CommandContext& context, const std::string& name,
              const std::string& help, const std::shared_ptr<DatasetOptions>& options,
              DatasetCommand command) {
  CLI::App* const sub = parent.add_subcommand(name, help);
  sub->callback([&context, options, command] {
    context.action = [&context, options, command] { return command(context, *options); };
  });
  return sub;
}

}  // namespace

void AddDatasetRetentionCommands(CLI::App& dataset, CommandContext& context,
                                 const std::shared_ptr<DatasetOptions>& options) {
  CLI::App* const retention =
      dataset.add_subcommand("retention", "which transactions lose their data, and when");
  retention->require_subcommand(1);
  Add(*retention, context, "list", "policies; of a dataset: those that apply to it", options,
      ListPolicies)
      ->add_option("dataset", options->dataset, "PROJECT/NAME or RID");
  CLI::App* const put =
      Add(*retention, context, "put", "make or replace a policy", options, PutPolicy);
  put->add_option("file", options->file, "JSON file; - for standard input")->required();
  put->add_option("--name", options->name, "name, if the file has none");
  Add(*retention, context, "delete", "remove a policy and its marks", options, DeletePolicy)
      ->add_option("name", options->name, "name of the policy")
      ->required();
  CLI::App* const run = Add(*retention, context, "run", "mark what policies select", options, Run);
  CLI::App* const explain = AddDatasetCommand(
      *retention, context, "explain", "why a file is kept, or when it goes", options, Explain);
  explain->add_option("path", options->name, "exact path")->required();
  explain->add_option("--at", options->at, "transaction RID in whose view it is meant");
  explain->add_option("--branch", options->branch, "branch, default master");
  AddDatasetCommand(*retention, context, "unmark", "keep a transaction for good", options, Unmark)
      ->add_option("transaction", options->transaction, "RID")
      ->required();
  CLI::App* const sweep =
      Add(dataset, context, "sweep", "remove bytes that no readable view shows", options, Sweep);
  for (CLI::App* const command : {run, sweep}) {
    command->add_flag("--dry-run", options->dry_run, "only say what would happen");
  }
}

}  // namespace tarn::cli
