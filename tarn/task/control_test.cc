#include "tarn/task/control.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <stop_token>
#include <thread>

#include <arrow/api.h>

#include "tarn/format/parquet_reader.h"
#include "tarn/lakehouse/internal_schema.h"
#include "tarn/lakehouse/scan/snapshot_relation.h"
#include "tarn/lakehouse/table_files.h"
#include "tarn/task/pipeline_place.h"
#include "tarn/task/task_fixture.h"
#include "tarn/task/task_lease.h"

namespace tarn::task {
namespace {

class ControlTest : public TaskFixture {
 protected:
  void SetUp() override {
    TaskFixture::SetUp();
    // Grants belong to a room that this one does not know; dropping a table forgets its grants.
    ASSERT_OK(sqlite_->Migrate({{"access", 1, "CREATE TABLE access_grants (resource BLOB);"}}));
    control_ = std::make_unique<Control>(
        ControlDeps{.database = *database_,
                    .datasets = *datasets_,
                    .catalog = *catalog_,
                    .engine = *engine_,
                    .budget = budget_,
                    .is_source_allowed = [](std::string_view) { return true; }});
    const std::filesystem::path folder = directory_.path() / "in";
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "a.jsonl") << R"({"id": 1, "v": "a"})" << "\n";
    const std::string yaml = "pipeline: p\nsources:\n  in: {type: files, uri: \"file://" +
                             folder.string() +
                             "\"}\n"
                             "landing:\n  events: {source: in, content: {type: json}}\n"
                             "transform:\n  orders: {from: events, key: [id]}\n";
    ASSERT_OK(control_->ApplyPipeline({.yaml = yaml}, "user-1"));
    ASSERT_OK(control_->RunOnce("p").status);
  }

  Result<metastore::SqlFunction> TakeLease() {
    return TakeTaskLease(*database_, "p.orders", clock_.Now(), {});
  }

  MemoryBudget budget_{1ULL << 30};
  std::unique_ptr<Control> control_;
};

// An attempt that somebody gave up, and that still works, can commit nothing any more.
TEST_F(ControlTest, ApplyTaskTakesTheLease) {
  ASSERT_OK_AND_ASSIGN(const metastore::SqlFunction given_up, TakeLease());
  ASSERT_OK(database_->Write(given_up));
  ASSERT_OK(control_->ApplyTask("p", "orders"));
  EXPECT_THAT(database_->Write(given_up), Fails(ErrorCode::kFailedPrecondition));
}

TEST_F(ControlTest, RecreateTaskTakesTheLease) {
  ASSERT_OK_AND_ASSIGN(const metastore::SqlFunction given_up, TakeLease());
  ASSERT_OK(control_->RecreateTask("p", "orders"));
  EXPECT_THAT(database_->Write(given_up), Fails(ErrorCode::kFailedPrecondition));
}

// Nothing of the old table is left in the warehouse, and nobody can register it.
TEST_F(ControlTest, RecreateTaskDeletesTheFilesOfTheOldTable) {
  const auto objects = [&] {
    std::map<std::string, catalog::CatalogObject> found;
    EXPECT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
      for (const auto& [schema, name] :
           {std::pair("orders_internal", "orders_internal"), std::pair("orders", "orders"),
            std::pair("orders", "orders__applied")}) {
        TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> folder,
                              tree::FindChild(sql, project_, schema));
        TARN_ASSIGN_OR_RETURN(const auto object, catalog::FindObject(sql, folder->rid, name));
        if (object) {
          found[name] = *object;
        }
      }
      return Status::Ok();
    }));
    return found;
  };
  const auto files_of = [](const catalog::CatalogObject& object) {
    const std::filesystem::path folder = object.location.substr(std::string("file://").size());
    std::vector<std::string> files;
    std::error_code gone;  // Empty folders are removed, too.
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder, gone)) {
      if (file.is_regular_file()) {
        files.push_back(file.path().string());
      }
    }
    return files;
  };
  const std::map<std::string, catalog::CatalogObject> old = objects();
  ASSERT_EQ(old.size(), 3U);
  for (const auto& [name, object] : old) {
    ASSERT_THAT(files_of(object), ::testing::Not(::testing::IsEmpty())) << name;
  }
  ASSERT_OK(control_->RecreateTask("p", "orders"));
  EXPECT_THAT(objects(), ::testing::IsEmpty());
  for (const auto& [name, object] : old) {
    EXPECT_THAT(files_of(object), ::testing::IsEmpty()) << name;
  }
  ASSERT_OK(control_->RunOnce("p").status);
  EXPECT_EQ(objects().size(), 3U);
}

// A run that was lost to another server has not come to its end, and says nothing of the tasks.
TEST_F(ControlTest, ARunThatAnotherServerTookIsNoSuccess) {
  int checks_left = 1000;
  Control other(ControlDeps{
      .database = *database_,
      .datasets = *datasets_,
      .catalog = *catalog_,
      .engine = *engine_,
      .budget = budget_,
      .is_source_allowed = [](std::string_view) { return true; },
      .may_run =
          [&](metastore::SqlTransaction&) {
            return --checks_left >= 0
                       ? Status::Ok()
                       : Status::FailedPrecondition("B has them").WithReason("LeaseLost");
          }});
  ASSERT_OK(other.RunOnce("p").status);
  // Before anything is said of the tasks, and after they were queued.
  for (const auto& [checks, state] :
       {std::pair(0, TaskState::kStopped), std::pair(1, TaskState::kQueued)}) {
    checks_left = checks;
    EXPECT_THAT(other.RunOnce("p").status, FailsWith(ErrorCode::kUnavailable, "another server"));
    ASSERT_OK_AND_ASSIGN(const std::vector<TaskStatus> all, other.ReadStatus());
    EXPECT_EQ(all.size(), 2U);
    for (const TaskStatus& status : all) {
      EXPECT_EQ(status.state, state) << status.full_name();
      EXPECT_EQ(status.last_error, "") << status.full_name();
    }
  }
}

// A metastore that is away for a moment leaves no task in ERROR that nobody starts again.
TEST_F(ControlTest, WhatPassesByItselfDoesNotKeepTasksFromGoingOn) {
  ASSERT_OK(control_->Start("p"));
  control_->Shutdown();
  const int64_t before = database_->operation_count();
  ASSERT_OK(control_->Resume());
  control_->Shutdown();
  const int64_t calls = database_->operation_count() - before;
  for (const metastore::Fault fault : {metastore::Fault::kBefore, metastore::Fault::kAfter}) {
    for (int64_t at = 1; at <= calls; ++at) {
      SCOPED_TRACE("operation " + std::to_string(at) + " of " + std::to_string(calls));
      database_->FailAt(at, fault);
      const Status resumed = control_->Resume();
      if (!resumed.ok()) {
        EXPECT_TRUE(IsRetryable(resumed.code()) || resumed.code() == ErrorCode::kCommitStateUnknown)
            << resumed.ToString();
        ASSERT_OK(control_->Resume());
      }
      database_->FailAt(0, fault);
      ASSERT_OK_AND_ASSIGN(const std::vector<TaskStatus> all, control_->ReadStatus());
      for (const TaskStatus& status : all) {
        EXPECT_NE(status.state, TaskState::kError) << status.last_error;
        EXPECT_TRUE(status.wanted);
      }
      control_->Shutdown();
    }
  }
}

// What has landed and was not read is counted in rows and bytes.
TEST_F(ControlTest, LagOfATransformIsInRowsAndBytes) {
  const auto lag = [&]() -> Result<TaskStatus> {
    TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> all, control_->ReadStatus());
    for (const TaskStatus& status : all) {
      if (status.task == "orders") {
        return status;
      }
    }
    return Status::NotFound("orders");
  };
  ASSERT_OK_AND_ASSIGN(TaskStatus status, lag());
  EXPECT_EQ(status.lag_rows, 0);
  EXPECT_EQ(status.lag_bytes, 0);
  ASSERT_OK(control_->RecreateTask("p", "orders"));
  ASSERT_OK_AND_ASSIGN(status, lag());
  EXPECT_EQ(status.lag_rows, 1);
  EXPECT_GT(status.lag_bytes, 100);
}

// Nothing lands in a dataset that is in the trash, and no new one quietly takes its place.
TEST_F(ControlTest, APreviewOfAllTasksIsOfThoseThatReadFiles) {
  std::ofstream(directory_.path() / "in" / "new.jsonl") << R"({"id": 2})" << "\n";
  const std::string yaml = "pipeline: p\nsources:\n  in: {type: files, uri: \"file://" +
                           (directory_.path() / "in").string() +
                           "\"}\n  bus: {type: kafka, brokers: [\"127.0.0.1:1\"]}\n"
                           "landing:\n  events: {source: in, content: {type: json}}\n"
                           "  topics: {source: bus, topics: [t], content: {type: json}}\n";
  ASSERT_OK_AND_ASSIGN(std::vector<PreviewedFile> files,
                       control_->PreviewFiles({.yaml = yaml}, ""));
  std::erase_if(files, [](const PreviewedFile& file) { return !file.excluded_because.empty(); });
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].path, "new.jsonl");
  EXPECT_THAT(control_->PreviewFiles({.yaml = yaml}, "topics"),
              FailsWith(ErrorCode::kInvalidArgument, "see sample"));
}

TEST_F(ControlTest, ADatasetInTheTrashStopsItsTask) {
  Rid landed;
  ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> folder,
                          tree::FindChild(sql, project_, "landing"));
    TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> node,
                          tree::FindChild(sql, folder->rid, "events"));
    landed = node->rid;
    return Status::Ok();
  }));
  const auto trash = [&](const Rid& rid) {
    return database_->Write(
        [&](metastore::SqlTransaction& sql) { return tree_.Trash(sql, rid, "me"); });
  };
  const auto restore = [&](const Rid& rid) {
    return database_->Write(
        [&](metastore::SqlTransaction& sql) { return tree_.Restore(sql, rid, "me"); });
  };
  ASSERT_OK(trash(landed));
  EXPECT_THAT(control_->RunOnce("p").status, FailsWith(ErrorCode::kFailedPrecondition,
                                                       "landing/events of this task is in the "
                                                       "trash: restore it"));
  ASSERT_OK(restore(landed));
  ASSERT_OK(control_->RunOnce("p").status);
  // While a task runs, each of its commits looks.
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const dataset::DatasetRid dataset,
                          dataset::DatasetRid::Parse(landed.ToString()));
    EXPECT_OK(CheckNotInTrash(sql, dataset));
    TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> folder,
                          tree::FindChild(sql, project_, "landing"));
    TARN_RETURN_IF_ERROR(tree_.Trash(sql, folder->rid, "me"));
    EXPECT_THAT(CheckNotInTrash(sql, dataset), Fails(ErrorCode::kFailedPrecondition));
    return tree_.Restore(sql, folder->rid, "me");
  }));
}

// The table after a reload is as the file wants it, in one commit, whatever it was before.
class ReloadTest : public ControlTest {
 protected:
  void SetUp() override {
    ControlTest::SetUp();
    Land("b.jsonl", R"({"id": 2, "v": "b"})");
    Land("c.jsonl", R"({"id": 3, "v": "c"})");
    ASSERT_OK(Apply(""));
    ASSERT_OK(control_->RunOnce("p").status);
  }

  void Land(const std::string& name, const std::string& line) {
    std::ofstream(directory_.path() / "in" / name) << line << "\n";
  }

  // The pipeline with more keys of its transform.
  Status Apply(const std::string& more) {
    return StatusOf(control_->ApplyPipeline(
        {.yaml = "pipeline: p\nsources:\n  in: {type: files, uri: \"file://" +
                 (directory_.path() / "in").string() +
                 "\"}\nlanding:\n  events: {source: in, content: {type: json}}\n"
                 "transform:\n  orders: {from: events, key: [id]" +
                 more + "}\n"},
        "user-1"));
  }

  // Of the landing dataset, newest first.
  std::vector<std::string> Transactions() {
    std::vector<std::string> rids;
    EXPECT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const std::optional<dataset::DatasetRid> landing,
                            FindLandingDataset(sql, project_, {.name = "events"}));
      return datasets_->VisitCommitted(
          sql, *landing, dataset::kDefaultBranch,
          [&](const dataset::Transaction& transaction) -> Result<metastore::RowAction> {
            rids.push_back(transaction.rid.ToString());
            return metastore::RowAction::kContinue;
          });
    }));
    return rids;
  }

  // "OPERATION id v" of the rows in a partition of the table that are alive.
  std::vector<std::string> Rows(const std::vector<iceberg::FileScanTask>& files,
                                const iceberg::TableMetadata& metadata) {
    std::vector<std::string> rows;
    const auto session = std::move(engine_->OpenSession()).value();
    lakehouse::SnapshotRelation relation{
        .name = "rows", .metadata = &metadata, .columns = {}, .files = files};
    for (const char* column : {"hdr__operation", "id", "v"}) {
      relation.columns.push_back(*lakehouse::FindColumn(metadata.CurrentSchema().fields, column));
    }
    EXPECT_OK(lakehouse::MakeSnapshotRelation(*session, *warehouse_, relation));
    const auto stream =
        session->Query("SELECT concat_ws(' ', hdr__operation, id, v) FROM rows ORDER BY ALL");
    EXPECT_OK(stream);
    const auto table = engine::ReadAll(**stream).value();
    for (const auto& chunk : table->column(0)->chunks()) {
      for (int64_t i = 0; i < chunk->length(); ++i) {
        rows.push_back((*chunk->GetScalar(i))->ToString());
      }
    }
    return rows;
  }

  struct Found {
    std::vector<std::string> current;
    std::vector<std::string> prior;
    int64_t snapshots = 0;
    std::string change_count;
    friend bool operator==(const Found&, const Found&) = default;
  };
  Found Look() {
    Found found;
    catalog::CatalogObject object;
    EXPECT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> folder,
                            tree::FindChild(sql, project_, "orders_internal"));
      TARN_ASSIGN_OR_RETURN(const auto node,
                            catalog::FindObject(sql, folder->rid, "orders_internal"));
      object = *node;
      TARN_ASSIGN_OR_RETURN(const auto left,
                            catalog::FindObject(sql, folder->rid, "orders__reload_internal"));
      EXPECT_FALSE(left.has_value());
      return Status::Ok();
    }));
    const catalog::LoadedTable loaded = catalog_->LoadTable(object.rid).value();
    const lakehouse::TableFiles files =
        lakehouse::ListTableFiles(*warehouse_, catalog_->manifest_cache(), *loaded.metadata,
                                  std::nullopt)
            .value();
    EXPECT_TRUE(files.changes.empty());
    found.current = Rows(files.current, *loaded.metadata);
    found.prior = Rows(files.prior, *loaded.metadata);
    found.snapshots = static_cast<int64_t>(loaded.metadata->snapshots.size());
    found.change_count = loaded.metadata->CurrentSnapshot()->summary.at("tarn.change-count");
    return found;
  }
};

TEST_F(ReloadTest, RowsThatDifferAreInsertedUpdatedAndDeleted) {
  const Found before = Look();
  EXPECT_THAT(before.current, ::testing::ElementsAre("I 1 a", "I 2 b", "I 3 c"));
  ASSERT_OK(control_->ReloadTask("p", "orders", {}));
  EXPECT_EQ(Look(), before);  // Equal rows are not touched.
  // Rows 2 and 3 go by the new filter, 1 is written otherwise, and 9 was left out before.
  ASSERT_OK(Apply(", where: \"id <> 9\""));
  Land("d.jsonl", R"({"id": 9, "v": "z"})");
  ASSERT_OK(control_->RunOnce("p").status);
  ASSERT_OK(Apply(", where: \"id NOT IN (2, 3)\", columns: {v: \"upper(v)\"}"));
  const Found changed = Look();
  ASSERT_OK(control_->ReloadTask("p", "orders", {.type = "compare_and_apply_without_deletes"}));
  const Found kept = Look();
  EXPECT_THAT(kept.current, ::testing::ElementsAre("I 2 b", "I 3 c", "i 9 Z", "u 1 A"));
  EXPECT_EQ(kept.snapshots, changed.snapshots + 1);
  EXPECT_EQ(std::stoll(kept.change_count), std::stoll(changed.change_count) + 2);
  ASSERT_OK(control_->ReloadTask("p", "orders", {.type = "compare_and_apply"}));
  EXPECT_THAT(Look().current, ::testing::ElementsAre("i 9 Z", "u 1 A"));
  // What lands afterwards goes on from there.
  Land("e.jsonl", R"({"id": 1, "v": "later"})");
  ASSERT_OK(control_->RunOnce("p").status);
  EXPECT_THAT(Look().current, ::testing::ElementsAre("U 1 LATER", "i 9 Z"));
}

TEST_F(ReloadTest, WithHistoryOldVersionsAreKeptUntilAllIsMadeAnew) {
  ASSERT_OK(Apply(", history: true"));
  ASSERT_OK(control_->RecreateTask("p", "orders"));
  ASSERT_OK(control_->RunOnce("p").status);
  ASSERT_OK(Apply(", history: true, where: \"id <> 3\", columns: {v: \"upper(v)\"}"));
  ASSERT_OK(control_->ReloadTask("p", "orders", {.type = "compare_and_apply"}));
  Found found = Look();
  EXPECT_THAT(found.current, ::testing::ElementsAre("u 1 A", "u 2 B"));
  EXPECT_THAT(found.prior, ::testing::ElementsAre("I 1 a", "I 2 b", "I 3 c", "d 3 c"));
  ASSERT_OK(control_->ReloadTask("p", "orders", {.type = "drop_and_create"}));
  found = Look();
  EXPECT_THAT(found.current, ::testing::ElementsAre("L 1 A", "L 2 B"));
  EXPECT_THAT(found.prior, ::testing::IsEmpty());
}

TEST_F(ReloadTest, WhatItCannotDoItSays) {
  EXPECT_THAT(control_->ReloadTask("p", "orders", {.type = "all"}),
              FailsWith(ErrorCode::kInvalidArgument, "compare_and_apply"));
  EXPECT_THAT(control_->ReloadTask("p", "nothing", {}), Fails(ErrorCode::kNotFound));
  const Found before = Look();
  ASSERT_OK(Apply(", columns: {v: \"nothing\"}"));
  EXPECT_THAT(control_->ReloadTask("p", "orders", {}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_EQ(Look(), before);
}

TEST_F(ReloadTest, NoneBeginsWhileTheServerStops) {
  ASSERT_OK(Apply(", columns: {v: \"upper(v)\"}"));
  const Found before = Look();
  control_->Shutdown();
  EXPECT_THAT(control_->ReloadTask("p", "orders", {}), Fails(ErrorCode::kUnavailable));
  EXPECT_EQ(Look(), before);
  ASSERT_OK(control_->Resume());
  ASSERT_OK(control_->ReloadTask("p", "orders", {}));
  EXPECT_THAT(Look().current, ::testing::ElementsAre("u 1 A", "u 2 B", "u 3 C"));
}

TEST_F(ReloadTest, ARangeIsMappedOnceMoreAndNothingNewerReverts) {
  // Landed so far: 1 and, in one transaction, 2 and 3. Then 2 changes, 3 goes, 4 comes.
  Land("d.jsonl", R"({"id": 2, "v": "newer"})");
  ASSERT_OK(Apply(", delete_when: \"upper(v) = 'GONE'\""));
  ASSERT_OK(control_->RunOnce("p").status);
  Land("e.jsonl", R"({"id": 3, "v": "gone"})");
  Land("f.jsonl", R"({"id": 4, "v": "d"})");
  ASSERT_OK(control_->RunOnce("p").status);
  const std::vector<std::string> landed = Transactions();  // Newest first.
  ASSERT_EQ(landed.size(), 4U);
  ASSERT_OK(Apply(", delete_when: \"upper(v) = 'GONE'\", columns: {v: \"upper(v)\"}"));
  const auto reload = [&](const std::string& from, const std::string& to,
                          const std::string& type = "") {
    std::jthread time([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        clock_.Advance(std::chrono::milliseconds(1));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    return control_->ReloadTask("p", "orders", {.type = type, .from = from, .to = to});
  };
  const Found before = Look();
  EXPECT_THAT(reload(landed[1], "", "compare_and_apply"),
              FailsWith(ErrorCode::kInvalidArgument, "without_deletes"));
  EXPECT_THAT(reload(landed[1], landed[2]), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(reload("x", ""), FailsWith(ErrorCode::kInvalidArgument, "no RID"));
  EXPECT_EQ(Look(), before);
  // In the transaction of 2 and 3 neither is the newest of its key any more.
  ASSERT_OK(reload(landed[2], landed[2]));
  EXPECT_EQ(Look().current, before.current);
  ASSERT_OK(reload("", landed[2]));
  EXPECT_THAT(Look().current, ::testing::ElementsAre("I 4 d", "U 2 newer", "u 1 A"));
  ASSERT_OK(reload(landed[1], landed[1]));
  EXPECT_THAT(Look().current, ::testing::ElementsAre("I 4 d", "u 1 A", "u 2 NEWER"));
  ASSERT_OK(reload(landed[0], ""));
  EXPECT_THAT(Look().current, ::testing::ElementsAre("u 1 A", "u 2 NEWER", "u 4 D"));
}

// Wherever the metastore fails, the next reload makes the table what it is to be.
TEST_F(ReloadTest, FailuresOfTheMetastoreLoseNothing) {
  bool upper = false;
  // A reload that has something to do each time.
  const auto reload = [&](int64_t at, metastore::Fault fault) -> Status {
    upper = !upper;
    TARN_RETURN_IF_ERROR(Apply(upper ? ", columns: {v: \"upper(v)\"}" : ""));
    database_->FailAt(at, fault);
    const Status done = control_->ReloadTask("p", "orders", {});
    database_->FailAt(0, fault);
    return done;
  };
  ASSERT_OK(reload(0, metastore::Fault::kBefore));
  const int64_t before = database_->operation_count();
  ASSERT_OK(control_->ReloadTask("p", "orders", {}));
  const int64_t calls = database_->operation_count() - before;
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr int64_t kTrials = 8;
  for (const metastore::Fault fault : {metastore::Fault::kBefore, metastore::Fault::kAfter}) {
    for (int64_t trial = 0; trial < kTrials; ++trial) {
      const int64_t step = calls / kTrials;
      const int64_t at = trial * step + 1 + static_cast<int64_t>(random() % step);
      SCOPED_TRACE("operation " + std::to_string(at) + " of " + std::to_string(calls));
      const Status disturbed = reload(at, fault);
      EXPECT_TRUE(disturbed.ok() || IsRetryable(disturbed.code()) ||
                  disturbed.code() == ErrorCode::kCommitStateUnknown)
          << disturbed.ToString();
      ASSERT_OK(control_->ReloadTask("p", "orders", {}));
      const std::vector<std::string> rows = Look().current;
      EXPECT_THAT(rows, upper ? ::testing::ElementsAre("u 1 A", "u 2 B", "u 3 C")
                              : ::testing::ElementsAre("u 1 a", "u 2 b", "u 3 c"));
    }
  }
}

// Dead letters of a file that declares `v` as a number, and one that takes any text.
class ReplayTest : public ControlTest {
 protected:
  void SetUp() override {
    ControlTest::SetUp();
    std::ofstream(directory_.path() / "in" / "bad.jsonl") << R"({"id": 2, "w": "x"})" << "\n"
                                                          << R"({"id": 3, "w": 3})" << "\n";
    ASSERT_OK(Apply("int"));
    ASSERT_OK(control_->RunOnce("p").status);
    ASSERT_THAT(Ids("events"), ::testing::ElementsAre(1, 3));
    ASSERT_OK(Apply("string"));
  }

  std::string Yaml(const std::string& type) {
    return "pipeline: p\nsources:\n  in: {type: files, uri: \"file://" +
           (directory_.path() / "in").string() +
           "\"}\nlanding:\n  events: {source: in, content: {type: json}, columns: {" + column_ +
           ": " + type +
           "}}\ntransform:\n"
           "  orders: {from: events, key: [id], only: true, columns: {id: id}}\n";
  }
  Status Apply(const std::string& type) {
    return StatusOf(control_->ApplyPipeline({.yaml = Yaml(type)}, "user-1"));
  }

  dataset::DatasetRid Find(const std::string& name) {
    dataset::DatasetRid rid;
    EXPECT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const std::optional<dataset::DatasetRid> found,
                            FindLandingDataset(sql, project_, {.name = name}));
      rid = *found;
      return Status::Ok();
    }));
    return rid;
  }

  // Column `id` of a dataset, sorted; of the dead letters the number of rows.
  std::vector<int64_t> Ids(const std::string& name) {
    std::vector<int64_t> ids;
    const Result<dataset::FilePage> page = datasets_->ListFiles(Find(name), {}, {});
    EXPECT_OK(page);
    for (const dataset::File& file : page->files) {
      const auto reader = format::ParquetReader::Open(*warehouse_, file.location);
      EXPECT_OK(reader);
      const std::shared_ptr<arrow::Table> table = *(*reader)->ReadAll();
      const auto column = table->GetColumnByName("id");
      for (int64_t i = 0; i < table->num_rows(); ++i) {
        ids.push_back(column == nullptr ? 0 : std::stoll((*column->GetScalar(i))->ToString()));
      }
    }
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  std::string column_ = "w";  // Whose type the file declares.

  Result<ReplayReport> Replay() { return control_->ReplayRejected({.yaml = Yaml("string")}, ""); }
};

TEST_F(ReplayTest, WhatTheFileTakesNowLandsOnce) {
  EXPECT_THAT(control_->ReplayRejected({.yaml = Yaml("int")}, ""),
              FailsWith(ErrorCode::kFailedPrecondition, "apply it first"));
  EXPECT_THAT(control_->ReplayRejected({.yaml = Yaml("string")}, "none"),
              Fails(ErrorCode::kNotFound));
  EXPECT_THAT(Replay(), IsOkAndHolds(ReplayReport{.replayed = 1, .rows = 1}));
  EXPECT_THAT(Ids("events"), ::testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(Ids("events__rejected"), ::testing::IsEmpty());
  EXPECT_THAT(Replay(), IsOkAndHolds(ReplayReport{}));
  ASSERT_OK(control_->RunOnce("p").status);
  EXPECT_THAT(Ids("events"), ::testing::ElementsAre(1, 2, 3));
  ASSERT_OK_AND_ASSIGN(const std::vector<TaskStatus> status, control_->ReadStatus());
  EXPECT_EQ(status[0].totals.counts.at("replayed"), 1);
  EXPECT_EQ(status[0].totals.rows_out, 3);
}

TEST_F(ReplayTest, FailuresOfTheMetastoreLoseAndDoubleNothing) {
  const int64_t before = database_->operation_count();
  ASSERT_OK(Replay());
  const int64_t calls = database_->operation_count() - before;
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr int64_t kTrials = 10;
  for (const metastore::Fault fault : {metastore::Fault::kBefore, metastore::Fault::kAfter}) {
    for (int64_t trial = 0; trial < kTrials; ++trial) {
      const int64_t step = calls / kTrials;
      const int64_t at = trial * step + 1 + static_cast<int64_t>(random() % step);
      SCOPED_TRACE("operation " + std::to_string(at) + " of " + std::to_string(calls));
      // A column that no earlier trial had, so that its type may still be found too narrow.
      column_ = "w" + std::to_string(static_cast<int>(fault) * 1000 + trial);
      ASSERT_OK(Apply("int"));
      std::ofstream(directory_.path() / "in" / (column_ + ".jsonl"))
          << R"({"id": 9, ")" << column_ << R"(": "y"})" << "\n";
      ASSERT_OK(control_->RunOnce("p").status);
      ASSERT_THAT(Ids("events__rejected"), ::testing::SizeIs(1));
      ASSERT_OK(Apply("string"));
      const size_t landed = Ids("events").size();
      database_->FailAt(at, fault);
      const Result<ReplayReport> disturbed = Replay();
      database_->FailAt(0, fault);
      EXPECT_TRUE(disturbed.ok() || IsRetryable(disturbed.status().code()) ||
                  disturbed.status().code() == ErrorCode::kCommitStateUnknown)
          << disturbed.status().ToString();
      ASSERT_OK(Replay());
      EXPECT_EQ(Ids("events").size(), landed + 1);
      EXPECT_THAT(Ids("events__rejected"), ::testing::IsEmpty());
    }
  }
}

}  // namespace
}  // namespace tarn::task
