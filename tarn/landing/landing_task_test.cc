#include "tarn/landing/landing_task.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include <arrow/api.h>

#include "tarn/format/field_type.h"
#include "tarn/format/parquet_reader.h"
#include "tarn/landing/landing_state.h"
#include "tarn/metastore/faulty_database.h"
#include "tarn/storage/local_store.h"
#include "test/support/compressed_text.h"
#include "test/support/metastore_fixture.h"

namespace tarn::landing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "id@row" of lines that number themselves.
std::string Lines(int first, int end) {
  std::string text;
  for (int i = first; i < end; ++i) {
    text += "{\"id\": " + std::to_string(i) + "}\n";
  }
  return text;
}

// Rows 0 to `end`, behind `lines` others in the file.
std::vector<std::string> Expected(int end, int64_t lines = 0) {
  std::vector<std::string> rows;
  for (int i = 0; i < end; ++i) {
    rows.push_back(std::to_string(i) + "@" + std::to_string(lines + i));
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

class LandingTaskTest : public MetastoreFixture {
 protected:
  void SetUp() override {
    OpenWith({dataset::Migrations(), Migrations()});
    faulty_ = std::make_unique<metastore::FaultyDatabase>(*database_);
    ASSERT_OK_AND_ASSIGN(warehouse_, storage::LocalStore::Open({.root = folder_.path() / "lake"}));
    std::filesystem::create_directory(in());
    datasets_ = std::make_unique<dataset::DatasetStore>(*faulty_, clock_, ids_);
    StartOver();
    spec_.name = "events";
    spec_.source_uri = "file://" + in().string();
    spec_.files.piece_bytes = 64;
    spec_.commit.bytes = 200;
  }

  std::filesystem::path in() const { return folder_.path() / "in"; }

  // Empty datasets of a task that never ran.
  void StartOver() {
    task_.reset();
    made_ = {.landing = {.uuid = ids_.NextV4()}, .rejected = {.uuid = ids_.NextV4()}, .by = "me"};
    ASSERT_OK(faulty_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_RETURN_IF_ERROR(datasets_->InitializeDataset(sql, made_.landing, "", "me"));
      TARN_RETURN_IF_ERROR(datasets_->InitializeDataset(sql, made_.rejected, "", "me"));
      return Status::Ok();
    }));
  }

  void Put(const std::string& name, const std::string& text,
           std::ios::openmode mode = std::ios::trunc) {
    std::ofstream(in() / name, std::ios::binary | mode) << text;
    // A time that no earlier state had.
    std::filesystem::last_write_time(in() / name, std::filesystem::file_time_type::clock::now() +
                                                      std::chrono::seconds(++changes_));
  }

  Status Open() {
    task_.reset();
    LandingDeps deps{*faulty_, *datasets_, *warehouse_, ids_, clock_, budget_, {}};
    deps.on_commit = on_commit_;
    Result<std::unique_ptr<LandingTask>> opened = LandingTask::Open(spec_, made_, std::move(deps));
    if (opened.ok()) {
      task_ = std::move(opened).value();
    }
    return opened.status();
  }

  Result<LandingProgress> Run() {
    TARN_RETURN_IF_ERROR(Open());
    return task_->RunUntilIdle();
  }

  // "id@hdr__file_row" of all rows, sorted.
  std::vector<std::string> Landed() {
    std::vector<std::string> rows;
    const Result<dataset::FilePage> page = datasets_->ListFiles(made_.landing, {}, {});
    EXPECT_OK(page);
    for (const dataset::File& file : page->files) {
      auto reader = format::ParquetReader::Open(*warehouse_->OpenReader(file.location));
      EXPECT_OK(reader);
      const std::shared_ptr<arrow::Table> table = *(*reader)->ReadAll();
      for (int64_t i = 0; i < table->num_rows(); ++i) {
        rows.push_back((*table->GetColumnByName("id")->GetScalar(i))->ToString() + "@" +
                       (*table->GetColumnByName("hdr__file_row")->GetScalar(i))->ToString());
      }
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  // Rows of the dataset of dead letters.
  int64_t Rejected() {
    int64_t rows = 0;
    const Result<dataset::FilePage> page = datasets_->ListFiles(made_.rejected, {}, {});
    EXPECT_OK(page);
    for (const dataset::File& file : page->files) {
      rows += file.row_count.value_or(0);
    }
    return rows;
  }

  std::vector<dataset::Transaction> Transactions() {
    return datasets_->ListTransactions(made_.landing, 100, "")->transactions;
  }

  int changes_ = 0;
  std::unique_ptr<metastore::FaultyDatabase> faulty_;
  std::unique_ptr<storage::LocalStore> warehouse_;
  std::unique_ptr<dataset::DatasetStore> datasets_;
  MemoryBudget budget_{64 << 20};
  LandingDatasets made_;
  LandingSpec spec_;
  std::function<Status(metastore::SqlTransaction&, const LandingProgress&)> on_commit_;
  std::unique_ptr<LandingTask> task_;
};

TEST_F(LandingTaskTest, WhatIsCountedIsPartOfEachCommit) {
  Put("a", Lines(0, 100));
  std::vector<int64_t> rows;
  on_commit_ = [&](metastore::SqlTransaction&, const LandingProgress& counted) {
    rows.push_back(counted.counts.rows);
    return Status::Ok();
  };
  ASSERT_OK_AND_ASSIGN(const LandingProgress progress, Run());
  ASSERT_GE(static_cast<int64_t>(rows.size()), progress.commits);  // Some without rows.
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
  EXPECT_EQ(rows.back(), 100);
  // What cannot be counted is not committed.
  on_commit_ = [](metastore::SqlTransaction&, const LandingProgress&) {
    return Status::Unavailable("no counters");
  };
  Put("b", Lines(0, 3));
  EXPECT_EQ(Run().status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(Landed().size(), 100U);
  on_commit_ = {};
  ASSERT_OK(Run());
  EXPECT_EQ(Landed().size(), 103U);
}

TEST_F(LandingTaskTest, ALargeFileIsCommittedInParts) {
  Put("a", Lines(0, 100));
  ASSERT_OK_AND_ASSIGN(const LandingProgress progress, Run());
  EXPECT_GT(progress.commits, 1);
  EXPECT_EQ(progress.counts.rows, 100);
  EXPECT_EQ(Landed(), Expected(100));
  EXPECT_THAT(Transactions().front().record_json.value(), HasSubstr("\"positions\""));
}

TEST_F(LandingTaskTest, AnotherLifeGoesOnAtTheRowBehindTheLastCommit) {
  Put("a", Lines(0, 100));
  for (bool caught_up = false; !caught_up;) {
    ASSERT_OK(Open());
    ASSERT_OK_AND_ASSIGN(const LandingProgress step, task_->Step());
    caught_up = step.caught_up;
  }
  EXPECT_EQ(Landed(), Expected(100));
  EXPECT_GT(Transactions().size(), 3U);
}

TEST_F(LandingTaskTest, AnEarlierFileDoesNotLoseThePlaceInAnother) {
  Put("b", Lines(0, 50));
  ASSERT_OK(Open());
  ASSERT_OK(task_->Step());
  Put("a", Lines(50, 100));
  ASSERT_OK(Open());
  ASSERT_OK(task_->Step());
  ASSERT_OK(Run());
  std::vector<std::string> expected = Expected(50);
  for (int i = 50; i < 100; ++i) {
    expected.push_back(std::to_string(i) + "@" + std::to_string(i - 50));
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(Landed(), expected);
}

TEST_F(LandingTaskTest, AFileThatGrewWhileItWasReadGoesOn) {
  spec_.files.piece_bytes = 64 << 10;
  spec_.commit.bytes = 100'000;
  Put("a", Lines(0, 40'000));
  ASSERT_OK(Open());
  ASSERT_OK_AND_ASSIGN(const LandingProgress step, task_->Step());
  ASSERT_EQ(step.commits, 1);
  Put("a", Lines(40'000, 40'100), std::ios::app);
  ASSERT_OK(task_->RunUntilIdle());
  ASSERT_OK(task_->RunUntilIdle());
  EXPECT_TRUE(Landed() == Expected(40'100));
}

TEST_F(LandingTaskTest, AFileThatGrewBetweenTwoLivesGoesOn) {
  Put("a", Lines(0, 60));
  ASSERT_OK(Open());
  ASSERT_OK(task_->Step());
  Put("a", Lines(60, 100), std::ios::app);
  ASSERT_OK(Run());
  EXPECT_EQ(Landed(), Expected(100));
}

TEST_F(LandingTaskTest, AFileThatWasReplacedFollowsThePolicy) {
  Put("a", Lines(0, 60));
  ASSERT_OK(Open());
  ASSERT_OK(task_->Step());
  const std::vector<std::string> part = Landed();
  ASSERT_LT(part.size(), 60U);
  Put("a", Lines(500, 600));
  ASSERT_OK_AND_ASSIGN(const LandingProgress progress, Run());
  ASSERT_EQ(progress.warnings.size(), 1U);
  EXPECT_EQ(progress.warnings[0].code, "overwritten");
  EXPECT_EQ(Landed(), part);
  spec_.files.decide.on_changed = source::files::OnChanged::kReload;
  ASSERT_OK(Run());
  EXPECT_EQ(Landed().size(), part.size() + 100);
}

TEST_F(LandingTaskTest, TheKeysOfTheSourceAreRemembered) {
  spec_.envelope = Envelope::kDebezium;
  const auto keys = [&] {
    std::string text;
    EXPECT_OK(faulty_->Read([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const SourceKeys read, ReadKeys(sql, made_.landing.ToString()));
      text = read.Encode();
      return Status::Ok();
    }));
    return text;
  };
  const auto change = [](const std::string& table, const std::string& key) {
    return R"({"key":)" + key + R"(,"value":{"op":"c","after":{"id":1},"source":{"table":")" +
           table + "\"}}}\n";
  };
  ASSERT_OK(Run());
  EXPECT_EQ(keys(), "{}");
  Put("a", change("t", R"({"schema":{"type":"struct"},"payload":{"id":1}})"));
  ASSERT_OK(Run());
  EXPECT_EQ(keys(), R"({"t":["id"]})");
  Put("b", change("u", "null"));
  ASSERT_OK(Run());
  EXPECT_EQ(keys(), R"({"t":["id"],"u":[]})");
}

TEST_F(LandingTaskTest, DeclaredColumnsAreKnownToLaterLives) {
  const auto declare = [&](const char* type) {
    spec_.columns.declared = {{.name = "id", .type = *format::ParseTypeName(type)}};
  };
  const auto type_of_id = [&] {
    format::ColumnSet columns;
    EXPECT_OK(faulty_->Read([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(columns, ReadColumns(sql, made_.landing.ToString()));
      return Status::Ok();
    }));
    return format::FormatTypeName(format::FieldsOf(columns).at(0).type);
  };
  declare("int");
  Put("a", Lines(0, 30));
  ASSERT_OK(Open());
  ASSERT_OK(task_->Step());  // A part of the file.
  ASSERT_OK(Run());
  EXPECT_EQ(Landed(), Expected(30));
  EXPECT_EQ(type_of_id(), "int");
  declare("long");
  Put("b", Lines(30, 31));
  ASSERT_OK(Run());
  EXPECT_EQ(type_of_id(), "long");
  declare("int");
  Put("c", Lines(31, 32));
  EXPECT_THAT(Run(), FailsWith(ErrorCode::kInvalidArgument,
                               "column id is declared int, but the rows landed so far have it as "
                               "long"));
  EXPECT_EQ(Landed().size(), 31U);
  declare("long");
  ASSERT_OK(Run());
  EXPECT_EQ(Landed().size(), 32U);
  EXPECT_EQ(type_of_id(), "long");
}

TEST_F(LandingTaskTest, ACompressedFileIsLandedWholeAndThenRemoved) {
  spec_.after_load = AfterLoad::kDelete;
  Put("a", Compress(arrow::Compression::GZIP, Lines(0, 60)) +
               Compress(arrow::Compression::GZIP, Lines(60, 100)));
  ASSERT_OK_AND_ASSIGN(const LandingProgress progress, Run());
  EXPECT_EQ(progress.commits, 1);  // Nothing leads into its middle.
  EXPECT_EQ(progress.counts.rejected, 0);
  EXPECT_EQ(Landed(), Expected(100));
  EXPECT_FALSE(std::filesystem::exists(in() / "a"));
}

TEST_F(LandingTaskTest, ADamagedFileLeavesNoRowAndIsNotRemoved) {
  spec_.after_load = AfterLoad::kDelete;
  const std::string packed = Compress(arrow::Compression::ZSTD, Lines(0, 200'000));
  // Larger than what is handed over at once, so that rows have to be taken back from files, too.
  Put("a", packed.substr(0, packed.size() - 10));
  Put("b", Lines(0, 3));
  Put("c", "PK\x03\x04 an archive");
  spec_.files.piece_bytes = 256 << 10;
  Result<LandingProgress> progress = Run();
  ASSERT_OK(progress);
  EXPECT_EQ(Landed(), Expected(3));
  EXPECT_EQ(progress->counts.rejected, 2);
  EXPECT_TRUE(std::filesystem::exists(in() / "a"));
  EXPECT_FALSE(std::filesystem::exists(in() / "b"));
  EXPECT_TRUE(std::filesystem::exists(in() / "c"));
  Put("a", packed);
  std::filesystem::remove(in() / "c");
  ASSERT_OK(Run());
  EXPECT_EQ(Landed().size(), 200'003U);
  EXPECT_FALSE(std::filesystem::exists(in() / "a"));
}

// More than waits in memory at once, in a file that is committed whole or not at all.
TEST_F(LandingTaskTest, DeadLettersOfACompressedFileComeWholeOrNotAtAll) {
  constexpr int64_t kLines = 45'000;
  std::string text;
  for (int64_t i = 0; i < kLines; ++i) {
    text += "no JSON, number " + std::to_string(i) + " of many lines like this one\n";
  }
  text += Lines(0, 3);
  const std::string packed = Compress(arrow::Compression::ZSTD, text);
  spec_.files.piece_bytes = 256 << 10;
  Put("a", packed.substr(0, packed.size() - 10));
  ASSERT_OK(Run());
  EXPECT_EQ(Rejected(), 1) << "that of the damaged file";
  Put("a", packed);
  ASSERT_OK_AND_ASSIGN(const LandingProgress progress, Run());
  EXPECT_EQ(progress.commits, 1);
  EXPECT_EQ(progress.counts.rejected, kLines);
  EXPECT_EQ(Rejected(), 1 + kLines);
  EXPECT_EQ(Landed(), Expected(3, kLines));
  EXPECT_THAT(datasets_->GetSchema(made_.rejected, {}), IsOk());
}

TEST_F(LandingTaskTest, AFailureInsideACompressedFileLosesAndRepeatsNothing) {
  const std::string packed = Compress(arrow::Compression::BZ2, Lines(0, 40));
  Put("a", packed);
  for (int64_t n = 1;; ++n) {
    StartOver();
    faulty_->FailAt(n, metastore::Fault::kBefore);
    const bool passed = Run().ok();
    faulty_->FailAt(0, metastore::Fault::kBefore);
    ASSERT_OK(Run());
    ASSERT_EQ(Landed(), Expected(40)) << "failure at operation " << n;
    if (passed) {
      EXPECT_GT(n, 5);
      break;
    }
  }
}

TEST_F(LandingTaskTest, AnArrayOfRecordsIsOnePart) {
  std::string text = "[";
  for (int i = 0; i < 60; ++i) {
    text += (i == 0 ? "" : ",\n") + std::string("{\"id\": ") + std::to_string(i) + "}";
  }
  Put("a", text + "]");
  ASSERT_OK_AND_ASSIGN(const LandingProgress progress, Run());
  EXPECT_EQ(progress.commits, 1);
  EXPECT_EQ(Landed(), Expected(60));
}

TEST_F(LandingTaskTest, AFailureOfTheMetastoreAnywhereLosesAndRepeatsNothing) {
  Put("a", Lines(0, 40));
  for (int64_t n = 1;; ++n) {
    StartOver();
    faulty_->FailAt(n, metastore::Fault::kBefore);
    const bool passed = Run().ok();
    faulty_->FailAt(0, metastore::Fault::kBefore);
    ASSERT_OK(Run());
    ASSERT_EQ(Landed(), Expected(40)) << "failure at operation " << n;
    if (passed) {
      EXPECT_GT(n, 10);
      break;
    }
  }
}

TEST_F(LandingTaskTest, ABranchThatWasSetBackIsLandedAgain) {
  Put("a", Lines(0, 5));
  ASSERT_OK(Run());
  const dataset::TransactionRid first = Transactions().front().rid;
  Put("b", Lines(5, 10));
  ASSERT_OK(Run());
  const dataset::TransactionRid second = Transactions().front().rid;
  const auto reset = [&](const dataset::TransactionRid& to) {
    return faulty_->Write([&](metastore::SqlTransaction& sql) {
      return StatusOf(
          datasets_->ResetBranch(sql, made_.landing, dataset::kDefaultBranch, to, "me"));
    });
  };
  ASSERT_OK(reset(first));
  EXPECT_EQ(Landed().size(), 5U);
  ASSERT_OK(Open());
  ASSERT_OK(reset(second));
  EXPECT_THAT(Open(), FailsWith(ErrorCode::kFailedPrecondition, "taken back before"));
  ASSERT_OK(reset(first));
  ASSERT_OK(Run());
  EXPECT_THAT(Landed(),
              ElementsAre("0@0", "1@1", "2@2", "3@3", "4@4", "5@0", "6@1", "7@2", "8@3", "9@4"));
}

TEST_F(LandingTaskTest, AllFilesOfALargeCommitAreRemoved) {
  spec_.after_load = AfterLoad::kDelete;
  spec_.commit.bytes = 1 << 20;
  for (int i = 0; i < 2100; ++i) {
    Put("f" + std::to_string(i), Lines(i, i + 1));
  }
  ASSERT_OK_AND_ASSIGN(const LandingProgress progress, Run());
  EXPECT_EQ(progress.commits, 1);
  EXPECT_EQ(progress.counts.rows, 2100);
  EXPECT_TRUE(std::filesystem::is_empty(in()));
}

TEST_F(LandingTaskTest, FilesLeftOutForTheirNamesAreNamed) {
  Put("good", Lines(0, 1));
  Put("bad\xFF", Lines(1, 2));
  ASSERT_OK_AND_ASSIGN(const LandingProgress progress, Run());
  EXPECT_EQ(progress.counts.rows, 1);
  EXPECT_EQ(progress.bad_names, 1);
  ASSERT_EQ(progress.warnings.size(), 1U);
  EXPECT_EQ(progress.warnings[0].code, "bad_name");
  EXPECT_THAT(progress.warnings[0].object, ::testing::EndsWith("in/bad\\xFF"));
}

}  // namespace
}  // namespace tarn::landing
