#include "tarn/task/transform_task.h"

#include <algorithm>
#include <random>

#include <arrow/api.h>
#include <arrow/json/from_string.h>

#include "tarn/dataset/physical_name.h"
#include "tarn/format/parquet_reader.h"
#include "tarn/format/parquet_writer.h"
#include "tarn/lakehouse/file_rows.h"
#include "tarn/lakehouse/internal_schema.h"
#include "tarn/lakehouse/table_files.h"
#include "tarn/task/task_fixture.h"

namespace tarn::task {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::shared_ptr<arrow::Field> kId = arrow::field("id", arrow::int64());
const std::shared_ptr<arrow::Field> kValue = arrow::field("v", arrow::utf8());
const std::shared_ptr<arrow::Field> kMore = arrow::field("w", arrow::utf8());
const std::shared_ptr<arrow::Field> kFileName = arrow::field("hdr__file_name", arrow::utf8());
const std::shared_ptr<arrow::Field> kFileRow = arrow::field("hdr__file_row", arrow::int64());

// Two landing datasets, whose rows tests land themselves.
class TransformTaskTest : public TaskFixture {
 protected:
  void SetUp() override {
    TaskFixture::SetUp();
    a_ = MakeInput("a", {kId, kValue});
    b_ = MakeInput("b", {kId, kValue, kMore});
  }

  TransformInput MakeInput(const std::string& name, const arrow::FieldVector& columns) {
    TransformInput input;
    input.landing.name = name;
    input.dataset = {.uuid = uuids_.NextV4()};
    input.rejected = {.uuid = uuids_.NextV4()};
    landing::LandingStateChange change;
    change.columns = format::ColumnSetOf(format::FromArrowSchema(arrow::Schema(columns)).value());
    EXPECT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_RETURN_IF_ERROR(datasets_->InitializeDataset(sql, input.dataset, "", "me"));
      TARN_RETURN_IF_ERROR(datasets_->InitializeDataset(sql, input.rejected, "", "me"));
      TARN_RETURN_IF_ERROR(landing::StartState(sql, input.dataset.ToString(), {}));
      return landing::WriteState(sql, input.dataset.ToString(), change);
    }));
    return input;
  }

  // One landing transaction with one file.
  void Land(const TransformInput& input, const arrow::FieldVector& columns,
            const std::string& json) {
    const auto rows =
        arrow::RecordBatch::FromStructArray(
            arrow::json::ArrayFromJSONString(arrow::struct_(columns), json).ValueOrDie())
            .ValueOrDie();
    const Uuid uuid = uuids_.NextV7();
    dataset::StoredFile file;
    file.path = uuid.ToString() + ".parquet";
    file.location = dataset::PhysicalName(input.dataset, uuid, file.path);
    ASSERT_OK_AND_ASSIGN(auto object,
                         warehouse_->OpenWriter(file.location, storage::WriteMode::kPutIfAbsent));
    ASSERT_OK_AND_ASSIGN(const auto writer,
                         format::ParquetWriter::Open(std::move(object), rows->schema()));
    ASSERT_OK(writer->Write(*rows));
    ASSERT_OK_AND_ASSIGN(const format::FileStatistics statistics, writer->Close());
    file.size_bytes = statistics.size_bytes;
    file.row_count = statistics.row_count;
    clock_.Advance(std::chrono::seconds(1));
    ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      dataset::CommitFilesRequest request;
      request.dataset = input.dataset;
      request.files = {file};
      return StatusOf(datasets_->CommitFiles(sql, request));
    }));
  }

  static pipeline::TransformSpec Spec(const std::string& name) {
    pipeline::TransformSpec spec;
    spec.name = name;
    spec.mapping = {.target = name, .key = {"id"}};
    spec.table.owner = "p." + name;
    spec.table.name = name;
    spec.table.external_schema = name;
    spec.table.internal_schema = name + "_internal";
    spec.table.key = {"id"};
    return spec;
  }

  Result<std::unique_ptr<TransformTask>> Open(const pipeline::TransformSpec& spec,
                                              metastore::SqlFunction fence = {}) {
    return TransformTask::Open(spec, {a_, b_}, {.project = project_, .by = "user-1"},
                               {*database_, *datasets_, *catalog_, *engine_, std::move(fence)});
  }

  // Steps until nothing is left.
  Status Drain(TransformTask& task) {
    while (true) {
      TARN_ASSIGN_OR_RETURN(const TransformProgress progress, task.Step());
      if (progress.caught_up) {
        return Status::Ok();
      }
    }
  }

  // Identifier and value of the table's changes, in the order of their identifiers.
  std::vector<std::pair<std::string, std::string>> Changes(TransformTask& task) {
    std::vector<std::pair<std::string, std::string>> changes;
    const catalog::LoadedTable loaded = std::move(task.table().Load()).value();
    const lakehouse::TableFiles files =
        lakehouse::ListTableFiles(*warehouse_, catalog_->manifest_cache(), *loaded.metadata,
                                  std::nullopt)
            .value();
    for (const iceberg::FileScanTask& file : files.changes) {
      const auto reader = std::move(lakehouse::FileRows::Open(
                                        *warehouse_, {.file_path = file.file.file_path,
                                                      .schema = &loaded.metadata->CurrentSchema(),
                                                      .columns = {"hdr__change_identifier", "v"}}))
                              .value();
      while (true) {
        const lakehouse::FileRowsBatch batch = reader->Next().value();
        if (batch.rows == nullptr) {
          break;
        }
        for (int64_t row = 0; row < batch.rows->num_rows(); ++row) {
          changes.emplace_back(batch.rows->column(0)->GetScalar(row).ValueOrDie()->ToString(),
                               batch.rows->column(1)->GetScalar(row).ValueOrDie()->ToString());
        }
      }
    }
    std::sort(changes.begin(), changes.end());
    return changes;
  }

  static std::vector<std::string> Values(
      const std::vector<std::pair<std::string, std::string>>& changes) {
    std::vector<std::string> values;
    for (const auto& [identifier, value] : changes) {
      values.push_back(value);
    }
    return values;
  }

  // Column of the dead letters of an input, over all its transactions.
  std::vector<std::string> Letters(const TransformInput& input, const std::string& column) {
    std::vector<std::string> values;
    const dataset::FilePage files = datasets_->ListFiles(input.rejected, {}, {}).value();
    for (const dataset::File& file : files.files) {
      const auto reader =
          std::move(format::ParquetReader::Open(*warehouse_, file.location)).value();
      const std::shared_ptr<arrow::Table> rows = reader->ReadAll().value();
      for (int64_t row = 0; row < rows->num_rows(); ++row) {
        const auto scalar = rows->GetColumnByName(column)->GetScalar(row).ValueOrDie();
        values.push_back(static_cast<const arrow::BaseBinaryScalar&>(*scalar).value->ToString());
      }
    }
    return values;
  }

  TransformInput a_;
  TransformInput b_;
};

TEST_F(TransformTaskTest, InputsAreTakenInTheOrderOfTheirCommits) {
  Land(a_, {kId, kValue}, R"([[1, "1"]])");
  Land(b_, {kId, kValue, kMore}, R"([[1, "2", "x"]])");
  clock_.Advance(-std::chrono::hours(1));  // The order is not that of the clock.
  Land(a_, {kId, kValue}, R"([[1, "3"], [2, "4"]])");
  Land(b_, {kId, kValue, kMore}, R"([[1, "5", "y"]])");
  ASSERT_OK_AND_ASSIGN(const auto task, Open(Spec("t")));
  ASSERT_OK_AND_ASSIGN(const TransformProgress progress, task->Step());
  EXPECT_FALSE(progress.caught_up);
  EXPECT_EQ(progress.counts.rows_in, 5);
  EXPECT_EQ(progress.counts.rows_out, 5);
  EXPECT_THAT(Values(Changes(*task)), ElementsAre("1", "2", "3", "4", "5"));
  // One commit took in both inputs.
  ASSERT_OK_AND_ASSIGN(const catalog::LoadedTable loaded, task->table().Load());
  EXPECT_THAT(loaded.metadata->snapshots, SizeIs(1));
  ASSERT_OK_AND_ASSIGN(const TransformProgress after, task->Step());
  EXPECT_TRUE(after.caught_up);
}

// A gap of a topic is recorded by one, maybe before anything landed.
TEST_F(TransformTaskTest, TransactionsWithoutFilesArePassedOver) {
  const auto land_nothing = [&](const TransformInput& input) {
    dataset::CommitFilesRequest request;
    request.dataset = input.dataset;
    ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) {
      return StatusOf(datasets_->CommitFiles(sql, request));
    }));
  };
  a_ = MakeInput("empty", {});
  ASSERT_OK_AND_ASSIGN(const auto task, Open(Spec("t")));
  land_nothing(a_);
  ASSERT_OK_AND_ASSIGN(const TransformProgress nothing, task->Step());
  EXPECT_TRUE(nothing.caught_up);
  EXPECT_FALSE(task->table().exists());
  Land(b_, {kId, kValue, kMore}, R"([[1, "2", "x"]])");
  ASSERT_OK(Drain(*task));
  EXPECT_THAT(Values(Changes(*task)), ElementsAre("2"));
  land_nothing(a_);
  land_nothing(b_);
  ASSERT_OK(Drain(*task));
  ASSERT_OK_AND_ASSIGN(const TransformProgress after, task->Step());
  EXPECT_TRUE(after.caught_up);
  EXPECT_EQ(after.counts.rows_out, 1);
}

TEST_F(TransformTaskTest, WhileSourcesAreBehindAppliesWait) {
  pipeline::TransformSpec spec = Spec("t");
  spec.table.apply.rows_min = 1;
  ASSERT_OK_AND_ASSIGN(const auto task, Open(spec));
  Land(a_, {kId, kValue}, R"([[1, "1"], [2, "2"]])");
  ASSERT_OK_AND_ASSIGN(const TransformProgress behind, task->Step(Sources::kBehind));
  EXPECT_EQ(behind.counts.applies, 0);
  EXPECT_EQ(behind.unapplied, 2);
  ASSERT_OK_AND_ASSIGN(const TransformProgress idle, task->Step(Sources::kBehind));
  EXPECT_TRUE(idle.caught_up);
  EXPECT_EQ(idle.counts.applies, 0);
  ASSERT_OK_AND_ASSIGN(const TransformProgress caught_up, task->Step(Sources::kCaughtUp));
  EXPECT_EQ(caught_up.counts.applies, 1);
  EXPECT_EQ(caught_up.unapplied, 0);
}

TEST_F(TransformTaskTest, AReplayGivesTheSameIdentifiersWhereverBatchesAreCut) {
  pipeline::TransformSpec piecewise = Spec("piecewise");
  piecewise.batch.rows = 1;
  ASSERT_OK_AND_ASSIGN(const auto live, Open(piecewise));
  for (int i = 0; i < 12; ++i) {
    const std::string value = std::to_string(i);
    if (i % 3 == 0) {
      Land(b_, {kId, kValue, kMore}, "[[1, \"" + value + R"(", "x"]])");
    } else {
      Land(a_, {kId, kValue}, "[[1, \"" + value + "\"], [2, \"" + value + "\"]]");
    }
    if (i == 4) {
      clock_.Advance(-std::chrono::minutes(5));
    }
    if (i % 4 == 2) {
      ASSERT_OK(Drain(*live));
    } else if (i % 4 == 3) {
      ASSERT_OK(live->Step());
    }
  }
  ASSERT_OK(Drain(*live));
  ASSERT_OK_AND_ASSIGN(const auto replay, Open(Spec("replay")));
  ASSERT_OK(Drain(*replay));
  EXPECT_THAT(Changes(*live), SizeIs(20));
  EXPECT_EQ(Changes(*live), Changes(*replay));
}

// Values that do not fit are dead letters of their own input, in the name of the user.
TEST_F(TransformTaskTest, DeadLettersGoToTheInputOfTheirRow) {
  pipeline::TransformSpec spec = Spec("t");
  spec.mapping.columns = {{.name = "v", .expression = "v", .type = "int"}};
  Land(a_, {kId, kValue, kFileName, kFileRow}, R"([[1, "1", "f", 0], [2, "bad", "f", 1]])");
  Land(b_, {kId, kValue, kFileName, kFileRow}, R"([[3, "worse", "g", 7], [null, "4", "g", 8]])");
  Land(a_, {kId, kValue, kFileName, kFileRow}, R"([[5, "5", "h", 0], [6, "worst", "h", 1]])");
  ASSERT_OK_AND_ASSIGN(const auto task, Open(spec));
  ASSERT_OK_AND_ASSIGN(const TransformProgress progress, task->Step());
  EXPECT_EQ(progress.counts.rejected, 4);
  EXPECT_EQ(progress.counts.rows_out, 2);
  EXPECT_THAT(Values(Changes(*task)), ElementsAre("1", "5"));
  EXPECT_THAT(Letters(a_, "error_code"), ElementsAre("cast_failed", "cast_failed"));
  EXPECT_THAT(Letters(a_, "source"), ElementsAre("f", "h"));
  EXPECT_THAT(Letters(b_, "error_code"), ElementsAre("cast_failed", "null_key"));
  EXPECT_THAT(Letters(b_, "position"), ElementsAre("7", "8"));
  EXPECT_THAT(Letters(b_, "raw"), ElementsAre(HasSubstr(R"("id":3,"v":"worse","w":null)"),
                                              HasSubstr(R"("id":null,"v":"4","w":null)")));
  for (const TransformInput* input : {&a_, &b_}) {
    ASSERT_OK_AND_ASSIGN(const dataset::TransactionPage page,
                         datasets_->ListTransactions(input->rejected, 10, ""));
    ASSERT_THAT(page.transactions, SizeIs(1));
    EXPECT_EQ(page.transactions[0].created_by, "user-1");
    EXPECT_THAT(datasets_->GetSchema(input->rejected, {}), IsOk());
  }
}

// Rows are rejected in all batches of the statement's result, the first and the last rows too.
TEST_F(TransformTaskTest, ManyRejectedRowsComeInOrder) {
  pipeline::TransformSpec spec = Spec("t");
  spec.mapping.columns = {{.name = "v", .expression = "v", .type = "int"}};
  spec.table.apply.rows_min = 1'000'000;  // Changes stay to be looked at.
  constexpr int kRows = 150'000;
  std::string json = "[";
  for (int i = 0; i < kRows; ++i) {
    const bool bad = i < 70'000 || i % 3 == 0 || i > kRows - 10;
    json += (i > 0 ? ",[" : "[") + std::to_string(i) + (bad ? ",\"x\"]" : ",\"1\"]");
  }
  Land(a_, {kId, kValue}, json + "]");
  ASSERT_OK_AND_ASSIGN(const auto task, Open(spec));
  ASSERT_OK(Drain(*task));
  const std::vector<std::string> raw = Letters(a_, "raw");
  std::vector<std::string> expected;
  for (int i = 0; i < kRows; ++i) {
    if (i < 70'000 || i % 3 == 0 || i > kRows - 10) {
      expected.push_back(std::to_string(i));
    }
  }
  ASSERT_EQ(raw.size(), expected.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    ASSERT_THAT(raw[i], HasSubstr("\"id\":" + expected[i] + ",")) << i;
  }
  EXPECT_EQ(Changes(*task).size(), kRows - expected.size());
}

// A task whose lease was taken makes no table and changes none.
TEST_F(TransformTaskTest, ALostLeaseChangesNothing) {
  bool lost = true;
  const auto fence = [&](metastore::SqlTransaction&) {
    return lost ? Status::FailedPrecondition("lease lost") : Status::Ok();
  };
  Land(a_, {kId, kValue}, R"([[1, "1"]])");
  ASSERT_OK_AND_ASSIGN(const auto task, Open(Spec("t"), fence));
  EXPECT_THAT(task->Step(), FailsWith(ErrorCode::kFailedPrecondition, "lease lost"));
  EXPECT_FALSE(task->table().exists());
  lost = false;
  ASSERT_OK(Drain(*task));
  ASSERT_OK_AND_ASSIGN(const lakehouse::TableProgress before, task->table().ReadProgress());
  lost = true;
  Land(b_, {kId, kValue, kMore}, R"([[1, "2", "x"]])");
  EXPECT_THAT(task->Step(), FailsWith(ErrorCode::kFailedPrecondition, "lease lost"));
  ASSERT_OK_AND_ASSIGN(const lakehouse::TableProgress after, task->table().ReadProgress());
  EXPECT_EQ(after.schema_id, before.schema_id);
  EXPECT_EQ(after.snapshot_id, before.snapshot_id);
}

// Calls of the metastore fail, before or after they have had their effect; the task is opened again
// as its supervisor does. Each landed row comes out once, at its place.
TEST_F(TransformTaskTest, FailuresOfTheMetastoreAreOvercome) {
  pipeline::TransformSpec spec = Spec("t");
  spec.mapping.columns = {{.name = "v", .expression = "v", .type = "int"}};
  spec.table.apply.files = 1'000'000;
  std::vector<std::string> expected;
  size_t letters = 0;
  const auto land = [&] {
    const std::string value = std::to_string(letters);
    Land(a_, {kId, kValue}, "[[1, \"1" + value + "\"], [2, \"bad\"]]");
    Land(b_, {kId, kValue, kMore}, "[[1, \"2" + value + R"(", "x"], [1, "worse", "x"]])");
    Land(a_, {kId, kValue}, "[[1, \"3" + value + "\"]]");
    ++letters;
    for (const char* first : {"1", "2", "3"}) {
      expected.push_back(first + value);
    }
  };
  // Opens and drains as often as it takes.
  const auto drain = [&]() -> Result<std::unique_ptr<TransformTask>> {
    Status last;
    for (int attempt = 0; attempt < 3; ++attempt) {
      Result<std::unique_ptr<TransformTask>> opened = Open(spec);
      last = opened.ok() ? Drain(**opened) : opened.status();
      if (last.ok()) {
        return opened;
      }
      EXPECT_TRUE(IsRetryable(last.code()) || last.code() == ErrorCode::kCommitStateUnknown)
          << last.ToString();
    }
    return last;
  };
  land();
  ASSERT_OK(drain());
  land();
  const int64_t before = database_->operation_count();
  ASSERT_OK(drain());
  const int64_t calls = database_->operation_count() - before;
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 40; ++round) {
    const auto fault = round % 2 == 0 ? metastore::Fault::kBefore : metastore::Fault::kAfter;
    const auto n = std::uniform_int_distribution<int64_t>(1, calls)(random);
    SCOPED_TRACE("call " + std::to_string(n) + " of " + std::to_string(calls));
    land();
    database_->FailAt(n, fault);
    Result<std::unique_ptr<TransformTask>> task = drain();
    database_->FailAt(0, fault);
    ASSERT_OK(task);
    ASSERT_EQ(Values(Changes(**task)), expected);
    ASSERT_THAT(Letters(a_, "error_code"), SizeIs(letters));
    ASSERT_THAT(Letters(b_, "error_code"), SizeIs(letters));
  }
}

// A column goes when no input gives it any more; one of the same name is another one.
TEST_F(TransformTaskTest, ColumnsThatNoInputGivesGo) {
  pipeline::TransformSpec spec = Spec("t");
  const arrow::FieldVector wide = {kId, kValue, kMore};
  Land(a_, {kId, kValue}, R"([{"id": 1, "v": "x"}])");
  Land(b_, wide, R"([{"id": 2, "v": "y", "w": "z"}])");
  const auto columns = [](TransformTask& task) {
    return lakehouse::UserColumnNames(task.table().Load()->metadata->CurrentSchema());
  };
  int32_t old_id = 0;
  {
    ASSERT_OK_AND_ASSIGN(const auto task, Open(spec));
    ASSERT_OK(Drain(*task));
    EXPECT_THAT(columns(*task), ElementsAre("id", "v", "w"));
    old_id = task->table().Load()->metadata->CurrentSchema().FindField("w")->id;
  }
  spec.schema_policies.drop_column = transform::SchemaPolicy::kApply;
  Land(a_, {kId, kValue}, R"([{"id": 3, "v": "x"}])");
  {
    ASSERT_OK_AND_ASSIGN(const auto task, Open(spec));
    ASSERT_OK(Drain(*task));
    EXPECT_THAT(columns(*task), ElementsAre("id", "v", "w"));  // The other input gives it.
  }
  spec.mapping.drop = {"w%"};
  Land(a_, {kId, kValue}, R"([{"id": 4, "v": "x"}])");
  {
    ASSERT_OK_AND_ASSIGN(const auto task, Open(spec));
    ASSERT_OK(Drain(*task));
    EXPECT_THAT(columns(*task), ElementsAre("id", "v"));
    ASSERT_OK(task->ApplyNow());
    ASSERT_OK_AND_ASSIGN(const std::string sql,
                         task->table().CurrentSql(lakehouse::SqlDialect::kDuckDb));
    EXPECT_THAT(sql, ::testing::Not(HasSubstr("\"w\"")));
  }
  spec.mapping.drop = {};
  Land(b_, wide, R"([{"id": 5, "v": "y", "w": "new"}])");
  ASSERT_OK_AND_ASSIGN(const auto task, Open(spec));
  ASSERT_OK(Drain(*task));
  EXPECT_THAT(columns(*task), ElementsAre("id", "v", "w"));
  EXPECT_GT(task->table().Load()->metadata->CurrentSchema().FindField("w")->id, old_id);
  ASSERT_OK(task->ApplyNow());
}

// A policy that halts asks what apply asks: a column of one input is not missed in another.
TEST_F(TransformTaskTest, OnlyAColumnThatNoInputGivesHaltsTheTask) {
  pipeline::TransformSpec spec = Spec("t");
  const arrow::FieldVector wide = {kId, kValue, kMore};
  Land(a_, {kId, kValue}, R"([{"id": 1, "v": "x"}])");
  Land(b_, wide, R"([{"id": 2, "v": "y", "w": "z"}])");
  {
    ASSERT_OK_AND_ASSIGN(const auto task, Open(spec));
    ASSERT_OK(Drain(*task));
  }
  for (const auto& [policy, reason] :
       {std::pair(transform::SchemaPolicy::kSuspendTable, std::string(kTableSuspended)),
        std::pair(transform::SchemaPolicy::kStopTask, std::string())}) {
    spec.schema_policies.drop_column = policy;
    spec.mapping.drop = {};
    Land(a_, {kId, kValue}, R"([{"id": 3, "v": "x"}])");
    ASSERT_OK_AND_ASSIGN(auto task, Open(spec));
    ASSERT_OK(Drain(*task));
    ASSERT_OK(task->ApplyNow());
    // Of the other one, too, and no row of the batch is in the table then.
    spec.mapping.drop = {"w%"};
    Land(b_, wide, R"([{"id": 4, "v": "y", "w": "z"}])");
    ASSERT_OK_AND_ASSIGN(task, Open(spec));
    const Status halted = Drain(*task);
    EXPECT_THAT(halted, FailsWith(ErrorCode::kFailedPrecondition, "no longer gives \"w\""));
    EXPECT_EQ(halted.reason(), reason);
    EXPECT_THAT(Changes(*task), SizeIs(0));
  }
}

TEST_F(TransformTaskTest, AColumnThatPartitionsIsNotDropped) {
  pipeline::TransformSpec spec = Spec("t");
  spec.table.partition_by = {"v"};
  Land(a_, {kId, kValue}, R"([{"id": 1, "v": "x"}])");
  ASSERT_OK_AND_ASSIGN(auto task, Open(spec));
  ASSERT_OK(Drain(*task));
  spec.schema_policies.drop_column = transform::SchemaPolicy::kApply;
  spec.mapping.drop = {"v"};
  Land(a_, {kId, kValue}, R"([{"id": 2, "v": "x"}])");
  ASSERT_OK_AND_ASSIGN(task, Open(spec));
  EXPECT_THAT(Drain(*task), FailsWith(ErrorCode::kFailedPrecondition, "partitioned by it"));
}

}  // namespace
}  // namespace tarn::task
