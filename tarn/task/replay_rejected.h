// ReplayRejected: dead letters of a landing task taken in once more, as its file has it now. Only
// for control.cc.
//
// The rows that letters give are landed as those of any other batch, at the end of the dataset;
// what was landed leaves the view of the dead letters in the same SQL transaction, so a letter is
// landed once. Earlier views keep it. Letters of transforms stay: their rows have landed, and a
// reload maps them again.
#pragma once

#include <cstdint>
#include <functional>

#include "tarn/base/status.h"
#include "tarn/landing/landing_task.h"
#include "tarn/metastore/database.h"
#include "tarn/task/control.h"

namespace tarn::task {

struct ReplayRequest {
  const landing::LandingSpec& spec;
  landing::LandingDatasets datasets;
  /// Checks that the task may still commit, and counts; in the SQL transaction of each commit.
  std::function<Status(metastore::SqlTransaction&, const ReplayReport&)> on_commit;
};

/// One commit for each file of letters; a failure leaves those of the files before. Nobody else may
/// land for the task meanwhile. Memory: a piece of rows.
/// Errors: kFailedPrecondition when the letters lack what the file asks for (keys of messages);
/// kUnimplemented for a task that has a dataset for each topic.
Result<ReplayReport> ReplayRejected(const ControlDeps& deps, const ReplayRequest& request);

}  // namespace tarn::task
