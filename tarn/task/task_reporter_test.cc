#include "tarn/task/task_reporter.h"

#include "test/support/matchers.h"
#include "test/support/metastore_fixture.h"

namespace tarn::task {
namespace {

class TaskReporterTest : public MetastoreFixture {
 protected:
  Result<TaskStatus> ReadOne() {
    return In<TaskStatus>([](metastore::SqlTransaction& sql) -> Result<TaskStatus> {
      TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> all, ReadTaskStatuses(sql, "p"));
      return all.size() == 1 ? Result<TaskStatus>(all.front()) : Status::Internal("not one");
    });
  }
};

TEST_F(TaskReporterTest, ExpectationsThatOnlyWarnAreSeenByName) {
  OpenWith({Migrations()});
  const pipeline::Variables variables;
  TaskReporter reporter("p", "t", TaskKind::kTransform, {*database_, clock_, variables});
  TransformProgress progress;
  progress.caught_up = true;
  progress.counts.rows_in = 5;
  progress.counts.filtered = 1;
  progress.counts.null_checks = 3;
  progress.counts.warned = {{"small", 2}, {"never", 0}};
  progress.counts.unchecked = {{"small", 3}};
  reporter.Report(progress, std::nullopt);
  const Timestamp first = clock_.Now();
  ASSERT_OK_AND_ASSIGN(TaskStatus status, ReadOne());
  EXPECT_EQ(status.totals.counts["expect.small.warned"], 2);
  EXPECT_EQ(status.totals.counts["expect.small.null_checks"], 3);
  EXPECT_EQ(status.totals.counts["null_checks"], 3);
  EXPECT_EQ(status.totals.filtered, 1);
  ASSERT_EQ(status.warnings.size(), 1U);
  EXPECT_EQ(status.warnings[0], (TaskWarning{"expectation_failed", "small", first}));
  // Only rows that are new warn again.
  clock_.Advance(std::chrono::seconds(1));
  reporter.Report(progress, std::nullopt);
  ASSERT_OK_AND_ASSIGN(status, ReadOne());
  EXPECT_EQ(status.warnings[0].at, first);
  progress.counts.warned["small"] = 3;
  reporter.Report(progress, std::nullopt);
  ASSERT_OK_AND_ASSIGN(status, ReadOne());
  ASSERT_EQ(status.warnings.size(), 1U);
  EXPECT_EQ(status.warnings[0].at, clock_.Now());
  EXPECT_EQ(status.totals.counts["expect.small.warned"], 3);
}

TEST_F(TaskReporterTest, WhatWaitsForALandingTaskIsInRowsAndBytes) {
  OpenWith({Migrations()});
  const pipeline::Variables variables;
  TaskReporter reporter("p", "t", TaskKind::kLanding, {*database_, clock_, variables});
  landing::LandingProgress progress;
  progress.counts.rows = 10;
  progress.counts.bytes = 1'000;
  progress.waiting_bytes = 500;
  reporter.Report(progress);
  ASSERT_OK_AND_ASSIGN(TaskStatus status, ReadOne());
  EXPECT_EQ(status.lag_bytes, 500);
  EXPECT_EQ(status.lag_rows, 5);
  progress.caught_up = true;
  progress.waiting_bytes = 0;
  reporter.Report(progress);
  ASSERT_OK_AND_ASSIGN(status, ReadOne());
  EXPECT_EQ(status.lag_bytes, 0);
  progress.lag_rows = 4;  // Over topics: counted in messages.
  progress.caught_up = false;
  reporter.Report(progress);
  reporter.Ended(TaskState::kStopped);
  ASSERT_OK_AND_ASSIGN(status, ReadOne());
  EXPECT_EQ(status.lag_bytes, 400);
}

TEST_F(TaskReporterTest, CountersAreWrittenWithTheCommitThatTheyCount) {
  OpenWith({Migrations()});
  const pipeline::Variables variables;
  TaskReporter reporter("p", "t", TaskKind::kLanding, {*database_, clock_, variables});
  reporter.Started();
  landing::LandingProgress counted;
  counted.counts.rows = 3;
  counted.newest_event = FromMicros(7);
  const auto commit = [&](const Status& outcome) {
    return database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_RETURN_IF_ERROR(reporter.OnCommit(sql, counted));
      return outcome;
    });
  };
  // One that fails counts nothing.
  EXPECT_FALSE(commit(Status::Conflict("no")).ok());
  ASSERT_OK_AND_ASSIGN(TaskStatus status, ReadOne());
  EXPECT_EQ(status.totals.rows_in, 0);
  ASSERT_OK(commit(Status::Ok()));
  ASSERT_OK_AND_ASSIGN(status, ReadOne());
  EXPECT_EQ(status.totals.rows_in, 3);
  EXPECT_EQ(status.data_updated_to, FromMicros(7));
  // The attempt fails before it comes to report what it committed.
  reporter.Failed(Status::Unavailable("away"));
  ASSERT_OK_AND_ASSIGN(status, ReadOne());
  EXPECT_EQ(status.totals.rows_in, 3);
  EXPECT_EQ(status.data_updated_to, FromMicros(7));
  // The next one counts on, and so does one whose counts start anew.
  counted.counts.rows = 2;
  ASSERT_OK(commit(Status::Ok()));
  ASSERT_OK_AND_ASSIGN(status, ReadOne());
  EXPECT_EQ(status.totals.rows_in, 5);
  reporter.Report(counted);
  counted.restarted = true;
  counted.counts.rows = 1;
  ASSERT_OK(commit(Status::Ok()));
  ASSERT_OK_AND_ASSIGN(status, ReadOne());
  EXPECT_EQ(status.totals.rows_in, 6);
  reporter.Report(counted);
  reporter.Ended(TaskState::kStopped);
  ASSERT_OK_AND_ASSIGN(status, ReadOne());
  EXPECT_EQ(status.totals.rows_in, 6);
}

// Whoever lost the lease leaves the row to the one that has it.
TEST_F(TaskReporterTest, WithoutItsLeaseItWritesNothing) {
  OpenWith({Migrations()});
  const pipeline::Variables variables;
  bool lost = false;
  const metastore::SqlFunction lease = [&](metastore::SqlTransaction&) {
    return lost ? Status::FailedPrecondition("epoch 2").WithReason("LeaseLost") : Status::Ok();
  };
  TaskReporter reporter("p", "t", TaskKind::kLanding,
                        {*database_, clock_, variables, [](metastore::SqlTransaction&) {
                           return Status::FailedPrecondition("not here").WithReason("LeaseLost");
                         }});
  reporter.Started();
  EXPECT_THAT(ReadOne(), Fails(ErrorCode::kInternal));  // There is no row.
  reporter.WriteUnder(lease);
  reporter.Started();
  ASSERT_OK_AND_ASSIGN(TaskStatus status, ReadOne());
  EXPECT_EQ(status.state, TaskState::kRunning);
  lost = true;
  landing::LandingProgress progress;
  progress.caught_up = true;
  progress.counts.rows = 5;
  reporter.Report(progress);
  EXPECT_THAT(reporter.Failed(Status::Internal("odd")), ::testing::HasSubstr("odd"));
  reporter.Ended(TaskState::kError);
  ASSERT_OK_AND_ASSIGN(status, ReadOne());
  EXPECT_EQ(status.state, TaskState::kRunning);
  EXPECT_EQ(status.last_error, "");
  EXPECT_EQ(status.totals.rows_in, 0);
  lost = false;
  reporter.Ended(TaskState::kError);
  ASSERT_OK_AND_ASSIGN(status, ReadOne());
  EXPECT_EQ(status.state, TaskState::kError);
}

TEST_F(TaskReporterTest, FilesWithBadNamesAreNamedAndNotAddedUp) {
  OpenWith({Migrations()});
  const pipeline::Variables variables;
  landing::LandingProgress progress;
  progress.caught_up = true;
  progress.counts.rows = 1;
  progress.bad_names = 2;
  progress.warnings = {{.code = "bad_name", .object = "/in/a\\xFF"}};
  for (int run = 1; run <= 2; ++run) {
    TaskReporter reporter("p", "t", TaskKind::kLanding, {*database_, clock_, variables});
    reporter.Report(progress);
    reporter.Failed(Status::Unavailable("away"));
    reporter.Report(progress);
    ASSERT_OK_AND_ASSIGN(TaskStatus status, ReadOne());
    EXPECT_EQ(status.totals.counts["bad_names"], 2);
    EXPECT_EQ(status.totals.rows_in, 2 * run);
    ASSERT_EQ(status.warnings.size(), 1U);
    EXPECT_EQ(status.warnings[0].object, "/in/a\\xFF");
  }
}

}  // namespace
}  // namespace tarn::task
