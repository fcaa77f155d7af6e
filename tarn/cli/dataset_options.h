// What the groups of dataset commands share: options, targets, and how a subcommand is added.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tarn/cli/commands.h"

namespace tarn::cli {

/// Options of all dataset commands; each uses its own.
struct DatasetOptions {
  std::string dataset;
  std::vector<std::string> paths;
  std::string branch;
  std::string at;
  std::string type = "UPDATE";
  std::string transaction;
  std::string to = ".";
  std::string as;
  std::string prefix;
  std::string from;
  std::string name;
  std::string project;
  std::string source;
  std::string file;
  std::string format = "csv";
  std::vector<std::string> choices;
  std::vector<std::string> columns;
  std::string otherwise;
  bool dry_run = false;
  bool graph = false;
  bool off = false;
  int wait_seconds = 10;
  int64_t limit = 100;
  int64_t row_limit = 0;  // 0 = all.
};

using DatasetCommand = Status (*)(CommandContext&, const DatasetOptions&);

/// A subcommand `name DATASET …` that runs `command`; the caller adds its options.
CLI::App* AddDatasetCommand(CLI::App& parent, CommandContext& context, const std::string& name,
                            const std::string& help, const std::shared_ptr<DatasetOptions>& options,
                            DatasetCommand command);

/// "/api/v2/datasets/<rid>".
std::string DatasetTarget(const std::string& rid);
/// "/tarn/v1/datasets/<rid>".
std::string NativeDatasetTarget(const std::string& rid);

/// The query that selects the view of --branch and --at ("" or "?…").
Result<std::string> ViewQuery(CommandContext& context, const std::string& rid,
                              const DatasetOptions& options);

void AddDatasetBranchCommands(CLI::App& dataset, CommandContext& context,
                              const std::shared_ptr<DatasetOptions>& options);
void AddDatasetHistoryCommands(CLI::App& dataset, CommandContext& context,
                               const std::shared_ptr<DatasetOptions>& options);
void AddDatasetRetentionCommands(CLI::App& dataset, CommandContext& context,
                                 const std::shared_ptr<DatasetOptions>& options);

}  // namespace tarn::cli
