// TableReload: a merged table compared with what has landed, and made equal to it. Only for
// control.cc.
//
// Everything that has landed is mapped once more, as the pipeline file has it now, into a table of
// its own beside the internal one. Its rows are compared with Current by the engine, null-safe, and
// what differs is applied in one commit: readers see the table before it or after it. The other
// table is dropped; one that a crash left is dropped when the next reload begins.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/lakehouse/target_table.h"
#include "tarn/pipeline/pipeline_spec.h"
#include "tarn/task/transform_task.h"

namespace tarn::task {

enum class ReloadType : uint8_t {
  kCompareAndApply,
  kCompareAndApplyWithoutDeletes,
  kDropAndCreate,
};

/// As in the pipeline file, "compare_and_apply" and so on. Errors: kInvalidArgument.
Result<ReloadType> ParseReloadType(std::string_view text);

/// Landing transactions of one input, both included; an empty end is open.
struct ReloadRange {
  std::string from;
  std::string to;
  [[nodiscard]] bool whole() const { return from.empty() && to.empty(); }
};

/// Rows by what happened to them.
struct ReloadCounts {
  int64_t inserted = 0;
  int64_t updated = 0;
  int64_t deleted = 0;
  int64_t loaded = 0;  // Of kDropAndCreate.
};

struct ReloadRequest {
  const pipeline::TransformSpec& spec;
  const std::vector<TransformInput>& inputs;
  lakehouse::TargetPlace place;
  ReloadType type = ReloadType::kCompareAndApply;
  ReloadRange range{};     // Only with kCompareAndApplyWithoutDeletes.
  std::stop_token stop{};  // Ends it with kCancelled, before its commit or not at all.
};

/// Takes in what has landed, applies what is unapplied, and reloads. Nobody else may append or
/// apply meanwhile: `deps.fence` says so in each commit.
/// With a range only its transactions are mapped once more, and rows of keys that changed behind it
/// are left alone: what they have now is newer.
/// Errors: kFailedPrecondition in append mode; kInvalidArgument for a range with another type, or
/// whose ends are no committed transactions of one input, in their order; kCancelled when it was
/// stopped; those of TransformTask.
/// The table is as it was but for what was taken in and applied.
Result<ReloadCounts> ReloadTable(const ReloadRequest& request, const TransformDeps& deps);

}  // namespace tarn::task
