// LandingRun: what LandingTask runs, one kind for each kind of source. Only for this room.
#pragma once

#include <memory>
#include <optional>

#include "tarn/landing/landing_task.h"

namespace arrow {
class RecordBatch;
}

namespace tarn::landing {

/// One owner thread; Cancel from any.
class LandingRun {
 public:
  LandingRun() = default;
  virtual ~LandingRun() = default;
  LandingRun(const LandingRun&) = delete;
  LandingRun& operator=(const LandingRun&) = delete;

  /// As LandingTask::Open.
  virtual Status Open() = 0;
  /// As LandingTask::Step.
  virtual Result<LandingProgress> Step() = 0;
  virtual void Cancel() = 0;
};

std::unique_ptr<LandingRun> MakeFilesLanding(LandingSpec spec, LandingDatasets datasets,
                                             LandingDeps deps);
std::unique_ptr<LandingRun> MakeKafkaLanding(LandingSpec spec, LandingDatasets datasets,
                                             LandingDeps deps);

/// Newest hdr__event_timestamp of some rows.
std::optional<Timestamp> NewestEvent(const arrow::RecordBatch& rows);
/// The failure that a branch gives which was moved ahead of what its task knows.
Status BranchMovedAhead(const LandingSpec& spec, int64_t found, int64_t known);

}  // namespace tarn::landing
