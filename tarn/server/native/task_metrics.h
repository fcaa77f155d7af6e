// The numbers of tasks for Prometheus: the same that `tarn status` shows.
#pragma once

#include <vector>

#include "tarn/base/clock.h"
#include "tarn/server/metrics.h"
#include "tarn/task/control.h"

namespace tarn::server::native {

/// All tasks, labelled with pipeline, task and kind. Empty when they cannot be read (it is logged).
std::vector<MetricSample> CollectTaskMetrics(task::Control& control, Timestamp now);

}  // namespace tarn::server::native
