// PipelineSpec: a parsed and validated pipeline file. Value.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/lakehouse/table_spec.h"
#include "tarn/landing/landing_spec.h"
#include "tarn/pipeline/variables.h"
#include "tarn/transform/mapping_spec.h"
#include "tarn/transform/schema_plan.h"

namespace tarn::pipeline {

/// How many landed rows make one batch of a transform.
struct BatchLimits {
  int64_t rows = 5'000'000;
  int64_t bytes = 512LL << 20;
};

/// A streaming transform with one target.
struct TransformSpec {
  std::string name;               // Of the task.
  std::vector<std::string> from;  // Names of landing tasks.
  transform::MappingSpec mapping;
  lakehouse::TableSpec table;
  transform::SchemaPolicies schema_policies;
  BatchLimits batch;
  bool case_sensitive = false;
};

/// A dataset that transforms read, and the landing task that fills it.
struct LandingInput {
  const landing::LandingSpec* task = nullptr;
  landing::LandingSpec landing;  // Of the task; its name is that of the dataset.
};

struct PipelineSpec {
  std::string name;
  std::string project = "default";
  std::vector<landing::LandingSpec> landings;
  std::vector<TransformSpec> transforms;

  [[nodiscard]] const landing::LandingSpec* FindLanding(std::string_view task) const;
  /// What `from` of a transform names: a landing task, or the dataset of a topic where a task has
  /// one for each.
  [[nodiscard]] std::optional<LandingInput> FindInput(std::string_view from) const;
};

/// A name of the project that a task needs for itself.
struct ClaimedName {
  std::string schema;
  std::string name;
  std::string task;  // "landing.NAME" or "transform.NAME".
};
std::vector<ClaimedName> ListClaims(const PipelineSpec& pipeline);

/// Reads a pipeline file and checks everything that can be checked without data. `${NAME}` under
/// sources stands for a value of `variables`.
/// Errors: kInvalidArgument "line 7, column 3: transform.orders.key: …"; no value is shown. Keys of
/// the format that this version does not offer are errors, never ignored.
Result<PipelineSpec> ParsePipeline(std::string_view yaml, const Variables& variables = {});

/// What a file says of each task, in one form whatever the writing: by "landing.NAME" (its source
/// included) and "transform.NAME". Equal texts mean equal tasks. Errors: kInvalidArgument.
Result<std::map<std::string, std::string>> DescribeTasks(std::string_view yaml);

}  // namespace tarn::pipeline
