#include "tarn/landing/landing_task.h"

#include <algorithm>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/landing/landing_run.h"

namespace tarn::landing {

std::optional<Timestamp> NewestEvent(const arrow::RecordBatch& rows) {
  const auto times = std::dynamic_pointer_cast<arrow::TimestampArray>(
      rows.GetColumnByName("hdr__event_timestamp"));
  std::optional<Timestamp> newest;
  for (int64_t i = 0; times != nullptr && i < times->length(); ++i) {
    if (times->IsValid(i)) {
      newest = std::max(newest, std::optional(FromMicros(times->Value(i))));
    }
  }
  return newest;
}

Status BranchMovedAhead(const LandingSpec& spec, int64_t found, int64_t known) {
  return Status::FailedPrecondition(fmt::format(
      "the newest transaction of {}.{} is number {} of this task, which knows of {} only: its "
      "branch was moved to transactions that were taken back before; land into another name",
      spec.schema, spec.name, found, known));
}

LandingTask::LandingTask(std::string name, std::unique_ptr<LandingRun> run)
    : name_(std::move(name)), run_(std::move(run)) {}
LandingTask::~LandingTask() = default;

Result<std::unique_ptr<LandingTask>> LandingTask::Open(LandingSpec spec, LandingDatasets datasets,
                                                       LandingDeps deps) {
  const std::string name = spec.name;
  const bool kafka = spec.kafka.has_value();
  const auto make = kafka ? &MakeKafkaLanding : &MakeFilesLanding;
  std::unique_ptr<LandingRun> run = make(std::move(spec), std::move(datasets), std::move(deps));
  const Status opened = run->Open();
  if (!opened.ok()) {
    return opened.WithContext("landing " + name);
  }
  return std::unique_ptr<LandingTask>(new LandingTask(name, std::move(run)));
}

Result<LandingProgress> LandingTask::Step() {
  Result<LandingProgress> progress = run_->Step();
  if (!progress.ok()) {
    return progress.status().WithContext("landing " + name_);
  }
  return progress;
}

Result<LandingProgress> LandingTask::RunUntilIdle() {
  LandingProgress total;
  while (!total.caught_up) {
    TARN_ASSIGN_OR_RETURN(LandingProgress step, Step());
    step.commits += total.commits;
    if (!step.newest) {
      step.newest = total.newest;
    }
    step.warnings.insert(step.warnings.begin(), total.warnings.begin(), total.warnings.end());
    total = std::move(step);
  }
  return total;
}

void LandingTask::Cancel() { run_->Cancel(); }

}  // namespace tarn::landing
