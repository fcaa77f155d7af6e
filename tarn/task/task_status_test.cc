#include "tarn/task/task_status.h"

#include "test/support/matchers.h"
#include "test/support/metastore_fixture.h"

namespace tarn::task {
namespace {

const Timestamp kTime = FromMicros(1'700'000'000'000'000);

TEST(TaskStatusTest, LagCountsFromWhenSomethingWaits) {
  TaskStatus status;
  EXPECT_EQ(status.LagSeconds(kTime), 0);
  status.behind_since = kTime;
  EXPECT_EQ(status.LagSeconds(kTime), 0);
  EXPECT_DOUBLE_EQ(status.LagSeconds(kTime + std::chrono::milliseconds(1500)), 1.5);
  EXPECT_EQ(status.LagSeconds(kTime - std::chrono::seconds(1)), 0);
}

TEST(TaskStatusTest, WarningsAreTheNewestAndOncePerObject) {
  TaskStatus status;
  for (int i = 0; i < 30; ++i) {
    status.Warn({.code = "overwritten", .object = std::to_string(i), .at = kTime});
  }
  ASSERT_EQ(status.warnings.size(), kWarningsMax);
  EXPECT_EQ(status.warnings.front().object, "10");
  status.Warn({.code = "overwritten", .object = "10", .at = kTime + std::chrono::seconds(1)});
  ASSERT_EQ(status.warnings.size(), kWarningsMax);
  EXPECT_EQ(status.warnings.front().object, "11");
  EXPECT_EQ(status.warnings.back().at, kTime + std::chrono::seconds(1));
}

class TaskStatusStoreTest : public MetastoreFixture {
 protected:
  Result<TaskStatus> ReadOne() {
    return In<TaskStatus>([](metastore::SqlTransaction& sql) -> Result<TaskStatus> {
      TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> all, ReadTaskStatuses(sql, "p"));
      return all.size() == 1 ? Result<TaskStatus>(all.front()) : Status::Internal("not one");
    });
  }
  Result<StoredPipeline> ReadP() {
    return In<StoredPipeline>(
        [](metastore::SqlTransaction& sql) { return ReadPipeline(sql, "p"); });
  }
};

TEST_F(TaskStatusStoreTest, StatusesAreKeptButForWhatAPersonWants) {
  OpenWith({Migrations()});
  TaskStatus status{.pipeline = "p", .task = "t", .kind = TaskKind::kTransform, .wanted = true};
  status.totals.counts["applies"] = 3;
  status.behind_since = kTime;
  status.last_commit = kTime;
  status.data_updated_to = kTime;
  status.last_error = "bad";
  status.lag_bytes = 1LL << 40;
  status.state = TaskState::kError;
  status.Warn({.code = "overwritten", .object = "a\xff", .at = kTime});
  status.partitions = {{"orders", 3, 5, 9, 4, kTime, "no permission"},
                       {"orders", 0, 1, 1, 0, {}, ""}};
  status.rows_per_second = 1.5;
  ASSERT_OK(Do([&](metastore::SqlTransaction& sql) { return WriteTaskStatus(sql, status); }));
  ASSERT_OK_AND_ASSIGN(TaskStatus read, ReadOne());
  EXPECT_TRUE(read.wanted);
  EXPECT_EQ(read.totals, status.totals);
  EXPECT_EQ(read.lag_bytes, status.lag_bytes);
  EXPECT_EQ(read.partitions, status.partitions);
  EXPECT_EQ(read.rows_per_second, 1.5);
  EXPECT_EQ(read.behind_since, status.behind_since);
  EXPECT_EQ(read.last_commit, status.last_commit);
  EXPECT_EQ(read.last_apply, std::nullopt);
  ASSERT_EQ(read.warnings.size(), 1U);
  EXPECT_EQ(read.warnings[0].at, kTime);
  // A task that reports does not take back that it was stopped.
  ASSERT_OK(Do([](metastore::SqlTransaction& sql) { return SetWanted(sql, "p", "t", false); }));
  ASSERT_OK(Do([&](metastore::SqlTransaction& sql) { return WriteTaskStatus(sql, status); }));
  ASSERT_OK_AND_ASSIGN(read, ReadOne());
  EXPECT_FALSE(read.wanted);
  ASSERT_OK(Do([](metastore::SqlTransaction& sql) { return QueueTask(sql, "p", "t"); }));
  ASSERT_OK_AND_ASSIGN(read, ReadOne());
  EXPECT_EQ(read.state, TaskState::kQueued);
  EXPECT_EQ(read.last_error, "");
}

TEST_F(TaskStatusStoreTest, APipelineRunsWhileATaskIsWanted) {
  OpenWith({Migrations()});
  const StoredPipeline stored{.name = "p",
                              .project = "default",
                              .yaml = "y",
                              .by = "me",
                              .applied = kTime,
                              .variables = {{"A", "\"x\""}}};
  ASSERT_OK(Do([&](metastore::SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(WritePipeline(sql, stored));
    TARN_RETURN_IF_ERROR(WriteTaskStatus(sql, {.pipeline = "p", .task = "a"}));
    return WriteTaskStatus(sql, {.pipeline = "p", .task = "b"});
  }));
  ASSERT_OK_AND_ASSIGN(StoredPipeline read, ReadP());
  EXPECT_EQ(read.variables, stored.variables);
  EXPECT_FALSE(read.running);
  ASSERT_OK(Do([](metastore::SqlTransaction& sql) { return SetWanted(sql, "p", "b", true); }));
  ASSERT_OK_AND_ASSIGN(read, ReadP());
  EXPECT_TRUE(read.running);
  ASSERT_OK(Do([](metastore::SqlTransaction& sql) { return SetWanted(sql, "p", "", false); }));
  ASSERT_OK_AND_ASSIGN(read, ReadP());
  EXPECT_FALSE(read.running);
}

TEST_F(TaskStatusStoreTest, ARunningPipelineOfAnOlderVersionGoesOn) {
  OpenWith({{Migrations().front()}});
  ASSERT_OK(Do([](metastore::SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(
        sql.Execute("INSERT INTO task_pipeline VALUES ('p', 'default', 'y', 'me', 0, 1)", {}));
    TARN_RETURN_IF_ERROR(sql.Execute(
        "INSERT INTO task_status VALUES ('p', 't', 0, 1, '{}', 0, 0, 0.0, NULL, '')", {}));
    return Status::Ok();
  }));
  ASSERT_OK(database_->Migrate(Migrations()));
  ASSERT_OK_AND_ASSIGN(const TaskStatus read, ReadOne());
  EXPECT_TRUE(read.wanted);
  ASSERT_OK_AND_ASSIGN(const StoredPipeline pipeline, ReadP());
  EXPECT_TRUE(pipeline.running);
}

TEST_F(TaskStatusStoreTest, ANewServerEndsWhatTheLastOneLeftRunning) {
  OpenWith({Migrations()});
  const auto write = [&](const std::string& task, TaskState state, bool wanted) {
    return Do([&](metastore::SqlTransaction& sql) {
      return WriteTaskStatus(sql,
                             {.pipeline = "p", .task = task, .state = state, .wanted = wanted});
    });
  };
  ASSERT_OK(write("a_running", TaskState::kRunning, false));
  ASSERT_OK(write("b_queued", TaskState::kQueued, false));
  ASSERT_OK(write("c_wanted", TaskState::kRunning, true));
  ASSERT_OK(write("d_failed", TaskState::kError, false));
  ASSERT_OK(Do(&StopAbandonedTasks));
  const auto states = [&] {
    return In<std::vector<TaskStatus>>(
        [](metastore::SqlTransaction& sql) { return ReadTaskStatuses(sql, "p"); });
  };
  ASSERT_OK_AND_ASSIGN(std::vector<TaskStatus> tasks, states());
  ASSERT_EQ(tasks.size(), 4U);
  EXPECT_EQ(tasks[0].state, TaskState::kStopped);
  EXPECT_NE(tasks[0].last_error, "");
  EXPECT_EQ(tasks[1].state, TaskState::kStopped);
  EXPECT_EQ(tasks[2].state, TaskState::kRunning);
  EXPECT_EQ(tasks[2].last_error, "");
  EXPECT_EQ(tasks[3].state, TaskState::kError);
  EXPECT_EQ(tasks[3].last_error, "");
  ASSERT_OK(Do([](metastore::SqlTransaction& sql) { return FailWantedTasks(sql, "p", "gone"); }));
  ASSERT_OK_AND_ASSIGN(tasks, states());
  EXPECT_EQ(tasks[2].state, TaskState::kError);
  EXPECT_EQ(tasks[2].last_error, "gone");
  EXPECT_EQ(tasks[3].last_error, "");
}

}  // namespace
}  // namespace tarn::task
