#include "tarn/task/task_reporter.h"

#include <algorithm>

#include "tarn/base/log.h"

namespace tarn::task {

namespace {

constexpr std::chrono::milliseconds kReportEvery{500};
constexpr std::chrono::seconds kRateOver{2};
// How many there are, which each attempt counts anew: not added up.
constexpr const char* kBadNames = "bad_names";

TaskTotals TotalsOf(const landing::LandingProgress& progress) {
  const landing::LandingCounts& counts = progress.counts;
  TaskTotals totals{.rows_in = counts.rows + counts.rejected + counts.skipped + counts.filtered,
                    .rows_out = counts.rows,
                    .rejected = counts.rejected,
                    .filtered = counts.filtered + counts.skipped,
                    .counts = {}};
  totals.counts["files"] = counts.files;
  totals.counts["bytes"] = counts.bytes;
  totals.counts["truncates"] = counts.truncates;
  totals.counts["repeated_members"] = static_cast<int64_t>(progress.json_counters.repeated_members);
  totals.counts["renamed_columns"] = static_cast<int64_t>(progress.json_counters.renamed_columns);
  totals.counts["nulled_values"] = static_cast<int64_t>(progress.json_counters.nulled_values);
  totals.counts["ignored_members"] = static_cast<int64_t>(progress.json_counters.ignored_members);
  totals.counts[kBadNames] = progress.bad_names;
  return totals;
}

// Names of counts of one expectation.
std::string WarnedName(const std::string& expectation) {
  return "expect." + expectation + ".warned";
}
std::string UncheckedName(const std::string& expectation) {
  return "expect." + expectation + ".null_checks";
}

TaskTotals TotalsOf(const TransformCounts& counts) {
  TaskTotals totals{.rows_in = counts.rows_in,
                    .rows_out = counts.rows_out,
                    .rejected = counts.rejected,
                    .filtered = counts.filtered,
                    .counts = {}};
  totals.counts["noop_deletes"] = counts.noop_deletes;
  totals.counts["null_checks"] = counts.null_checks;
  totals.counts["null_casts"] = counts.null_casts;
  totals.counts["truncates"] = counts.truncates;
  totals.counts["applies"] = counts.applies;
  for (const auto& [name, count] : counts.warned) {
    totals.counts[WarnedName(name)] = count;
  }
  for (const auto& [name, count] : counts.unchecked) {
    totals.counts[UncheckedName(name)] = count;
  }
  return totals;
}

// Bytes of so many rows, by what has been read so far.
int64_t EstimateBytes(int64_t rows, const TaskTotals& totals) {
  const auto read = totals.counts.find("bytes");
  if (read == totals.counts.end() || totals.rows_in <= 0) {
    return 0;
  }
  const double bytes = static_cast<double>(rows) * static_cast<double>(read->second) /
                       static_cast<double>(totals.rows_in);
  return static_cast<int64_t>(std::min(bytes, 9e18));
}

// Rows in so many bytes, by what has been read so far; at least one where there are bytes.
int64_t EstimateRows(uint64_t bytes, const TaskTotals& totals) {
  const auto read = totals.counts.find("bytes");
  if (bytes == 0 || read == totals.counts.end() || read->second <= 0) {
    return bytes == 0 ? 0 : 1;
  }
  const double rows = static_cast<double>(bytes) * static_cast<double>(totals.rows_in) /
                      static_cast<double>(read->second);
  return std::max<int64_t>(1, static_cast<int64_t>(std::min(rows, 9e18)));
}

int64_t CountOf(const TaskTotals& totals, const std::string& name) {
  const auto found = totals.counts.find(name);
  return found == totals.counts.end() ? 0 : found->second;
}

}  // namespace

TaskReporter::TaskReporter(std::string pipeline, std::string task, TaskKind kind, Deps deps)
    : deps_(std::move(deps)) {
  status_.pipeline = std::move(pipeline);
  status_.task = std::move(task);
  status_.kind = kind;
  Result<std::optional<TaskStatus>> kept = ReadKept();
  if (!kept.ok()) {
    Log(LogLevel::kWarning, "task", kept.status().ToString());
  } else if (*kept) {
    status_ = **std::move(kept);
    CountFrom(status_.totals);
  }
  status_.kind = kind;
  status_.state = TaskState::kRunning;
}

void TaskReporter::WriteUnder(metastore::SqlFunction lease) { deps_.may_write = std::move(lease); }

Result<std::optional<TaskStatus>> TaskReporter::ReadKept() const {
  std::optional<TaskStatus> kept;
  TARN_RETURN_IF_ERROR(deps_.database.Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(std::vector<TaskStatus> known, ReadTaskStatuses(sql, status_.pipeline));
    for (TaskStatus& one : known) {
      if (one.task == status_.task) {
        kept = std::move(one);
      }
    }
    return Status::Ok();
  }));
  return kept;
}

void TaskReporter::CountFrom(const TaskTotals& totals) {
  before_ = totals;
  before_.counts.erase(kBadNames);
  attempt_ = {};
}

Status TaskReporter::WriteTotals(metastore::SqlTransaction& sql, TaskTotals totals,
                                 std::optional<Timestamp> updated_to) const {
  return WriteTaskTotals(sql, {.pipeline = status_.pipeline,
                               .task = status_.task,
                               .totals = std::move(totals),
                               .data_updated_to = std::max(status_.data_updated_to, updated_to)});
}

Status TaskReporter::OnCommit(metastore::SqlTransaction& sql,
                              const landing::LandingProgress& counted) const {
  TaskTotals earlier = before_;
  if (counted.restarted) {
    earlier = Sum(before_, attempt_);
    earlier.counts.erase(kBadNames);
  }
  return WriteTotals(sql, Sum(earlier, TotalsOf(counted)), counted.newest_event);
}

Status TaskReporter::OnCommit(metastore::SqlTransaction& sql,
                              const TransformCounts& counted) const {
  return WriteTotals(sql, Sum(before_, TotalsOf(counted)), std::nullopt);
}

void TaskReporter::Started() {
  status_.last_error.clear();
  Write(/*now=*/true);
}

void TaskReporter::NextAttempt() { CountFrom(Sum(before_, attempt_)); }

void TaskReporter::TakeLags(const landing::LandingProgress& progress) {
  status_.lag_rows = *progress.lag_rows;
  status_.lag_bytes = EstimateBytes(status_.lag_rows, Sum(before_, attempt_));
  status_.behind_since = progress.lag_rows > 0 ? progress.behind_since : std::nullopt;
  if (progress.lags.empty()) {
    return;  // Not looked at this time.
  }
  status_.partitions.clear();
  for (const source::kafka::PartitionLag& lag : progress.lags) {
    status_.partitions.push_back({.topic = lag.where.topic,
                                  .partition = lag.where.partition,
                                  .next_offset = lag.next,
                                  .end_offset = lag.end,
                                  .lag_rows = lag.lag,
                                  .newest = {},
                                  .error = lag.failure});
    if (lag.time_ms >= 0) {
      status_.partitions.back().newest = FromMicros(lag.time_ms * 1000);
    }
  }
  std::stable_sort(status_.partitions.begin(), status_.partitions.end(),
                   [](const TaskPartition& a, const TaskPartition& b) {
                     return a.error.empty() != b.error.empty() ? !a.error.empty()
                                                               : a.lag_rows > b.lag_rows;
                   });
  if (status_.partitions.size() > kPartitionsMax) {
    status_.partitions.resize(kPartitionsMax);
  }
}

// A mean over some seconds, so that single batches do not make it jump.
void TaskReporter::TakeRate() {
  const auto now = std::chrono::steady_clock::now();
  const int64_t rows = attempt_.rows_in + before_.rows_in;
  const std::chrono::duration<double> since = now - rated_;
  if (rated_ != std::chrono::steady_clock::time_point{} && since < kRateOver) {
    return;
  }
  if (rated_ != std::chrono::steady_clock::time_point{}) {
    status_.rows_per_second = static_cast<double>(rows - rated_rows_) / since.count();
  }
  rated_ = now;
  rated_rows_ = rows;
}

void TaskReporter::Write(bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (!now && time - written_ < kReportEvery) {
    return;
  }
  written_ = time;
  status_.totals = Sum(before_, attempt_);
  const Status done = deps_.database.Write(
      [&](metastore::SqlTransaction& sql) -> Status {
        if (deps_.may_write) {
          TARN_RETURN_IF_ERROR(deps_.may_write(sql));
        }
        return WriteTaskStatus(sql, status_);
      },
      metastore::Durability::kLazy);
  if (!done.ok() && done.reason() != "LeaseLost") {
    Log(LogLevel::kWarning, "task", "status of " + name() + ": " + done.ToString());
  }
}

void TaskReporter::Report(const landing::LandingProgress& progress) {
  const Timestamp now = deps_.clock.Now();
  if (progress.restarted) {
    NextAttempt();
  }
  attempt_ = TotalsOf(progress);
  TakeRate();
  for (const landing::LandingWarning& warning : progress.warnings) {
    status_.Warn({.code = warning.code, .object = warning.object, .at = now});
  }
  if (progress.newest_event) {
    status_.data_updated_to = std::max(status_.data_updated_to, progress.newest_event);
  }
  if (progress.commits > 0) {
    status_.last_commit = now;
  }
  if (progress.lag_rows) {
    TakeLags(progress);
  } else if (progress.caught_up) {
    status_.behind_since.reset();
    status_.lag_rows = 0;
    status_.lag_bytes = 0;
  } else {
    status_.behind_since = status_.behind_since.value_or(now);
    status_.lag_rows = EstimateRows(progress.waiting_bytes, Sum(before_, attempt_));
    status_.lag_bytes = static_cast<int64_t>(progress.waiting_bytes);
  }
  const bool recovered = !status_.last_error.empty();
  status_.last_error.clear();
  // A task over topics that is caught up says so every second.
  const bool news = progress.caught_up && !progress.lag_rows;
  Write(news || recovered || !progress.warnings.empty());
}

void TaskReporter::Report(const TransformProgress& progress, std::optional<Timestamp> updated_to) {
  const Timestamp now = deps_.clock.Now();
  const TaskTotals totals = TotalsOf(progress.counts);
  if (totals.rows_in > attempt_.rows_in) {
    status_.last_commit = now;
  }
  if (CountOf(totals, "applies") > CountOf(attempt_, "applies")) {
    status_.last_apply = now;
  }
  for (const auto& [name, count] : progress.counts.warned) {
    if (count > CountOf(attempt_, WarnedName(name))) {
      status_.Warn({.code = "expectation_failed", .object = name, .at = now});
    }
  }
  attempt_ = totals;
  TakeRate();
  status_.unapplied = progress.unapplied;
  if (progress.caught_up && updated_to) {
    status_.data_updated_to = std::max(status_.data_updated_to, updated_to);
  }
  const bool recovered = !status_.last_error.empty();
  status_.last_error.clear();
  Write(progress.caught_up || recovered);
}

Status TaskReporter::Shown(const Status& failure) const {
  return Status(failure.code(), pipeline::HideValues(failure.message(), deps_.variables))
      .WithReason(failure.reason(), failure.details());
}

std::string TaskReporter::Failed(const Status& failure) {
  status_.last_error = Shown(failure).ToString();
  status_.behind_since = status_.behind_since.value_or(deps_.clock.Now());
  // The attempt may have committed more than it came to report.
  const Result<std::optional<TaskStatus>> kept = ReadKept();
  if (kept.ok() && *kept) {
    status_.data_updated_to = std::max(status_.data_updated_to, (*kept)->data_updated_to);
    CountFrom((*kept)->totals);
  } else {
    NextAttempt();
  }
  Write(/*now=*/true);
  return status_.last_error;
}

void TaskReporter::Ended(TaskState state) {
  status_.state = state;
  status_.rows_per_second = 0;
  Write(/*now=*/true);
}

}  // namespace tarn::task
