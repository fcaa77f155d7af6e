#include "tarn/landing/dead_letter_file.h"

#include <arrow/api.h>
#include <nlohmann/json.hpp>

#include "tarn/dataset/dataset_fixture.h"
#include "tarn/format/parquet_reader.h"
#include "tarn/storage/memory_store.h"

namespace tarn::landing {
namespace {

DeadLetter Letter(int number, size_t raw_bytes) {
  return {.raw = std::string(raw_bytes, static_cast<char>('a' + number % 26)),
          .source = "orders.json",
          .position = std::to_string(number),
          .error_code = "not_json",
          .error_text = "no value",
          .rejected_by = "orders"};
}

class DeadLetterFileTest : public dataset::DatasetFixture {
 protected:
  Status Commit(const dataset::StoredFile& file) {
    return database_->Write([&](metastore::SqlTransaction& sql) {
      return CommitDeadLetters(sql, *store_, {.rejected = rid_, .file = file, .by = "user-1"});
    });
  }

  size_t ObjectCount() { return objects_.List({.prefix = ""})->objects.size(); }

  storage::MemoryStore objects_{clock_};
};

TEST_F(DeadLetterFileTest, PiecesAreWrittenWhileLettersCome) {
  DeadLetterFile letters({.rejected = rid_, .piece_bytes = 10'000, .group_bytes = 40'000}, objects_,
                         uuids_);
  constexpr int kLetters = 400;
  for (int i = 0; i < kLetters; ++i) {
    ASSERT_OK(letters.Add(Letter(i, 1'000)));
  }
  EXPECT_EQ(letters.row_count(), kLetters);
  EXPECT_EQ(ObjectCount(), 0U) << "seen before it was finished";
  ASSERT_OK_AND_ASSIGN(const std::optional<dataset::StoredFile> file, letters.Close());
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->row_count, kLetters);
  ASSERT_OK_AND_ASSIGN(const auto reader, format::ParquetReader::Open(objects_, file->location));
  EXPECT_GT(reader->row_group_count(), 5) << "kept in memory until the end";
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<arrow::Table> rows, reader->ReadAll());
  for (int i = 0; i < kLetters; ++i) {
    EXPECT_EQ(rows->GetColumnByName("position")->GetScalar(i).ValueOrDie()->ToString(),
              std::to_string(i));
  }
}

TEST_F(DeadLetterFileTest, WithoutLettersThereIsNoObject) {
  DeadLetterFile letters({.rejected = rid_}, objects_, uuids_);
  ASSERT_OK_AND_ASSIGN(const std::optional<dataset::StoredFile> file, letters.Close());
  EXPECT_FALSE(file.has_value());
  EXPECT_EQ(ObjectCount(), 0U);
}

TEST_F(DeadLetterFileTest, AnAbandonedFileLeavesNothing) {
  {
    DeadLetterFile letters({.rejected = rid_, .piece_bytes = 1'000}, objects_, uuids_);
    for (int i = 0; i < 10; ++i) {
      ASSERT_OK(letters.Add(Letter(i, 1'000)));
    }
  }
  EXPECT_EQ(ObjectCount(), 0U);
}

TEST_F(DeadLetterFileTest, TheFirstCommitBringsTheSchemaAndTheUser) {
  for (int commit = 0; commit < 2; ++commit) {
    DeadLetterFile letters({.rejected = rid_}, objects_, uuids_);
    ASSERT_OK(letters.Add(Letter(commit, 10)));
    ASSERT_OK_AND_ASSIGN(const std::optional<dataset::StoredFile> file, letters.Close());
    ASSERT_OK(Commit(*file));
  }
  ASSERT_OK_AND_ASSIGN(const dataset::StoredSchema schema, store_->GetSchema(rid_, {}));
  std::vector<std::string> columns;
  for (const dataset::Field& field : schema.schema.fields) {
    columns.push_back(field.name + " " + std::string(dataset::FieldTypeName(field.type)));
  }
  EXPECT_THAT(columns,
              ::testing::ElementsAre("raw BINARY", "source STRING", "position STRING",
                                     "error_code STRING", "error_text STRING", "rejected_by STRING",
                                     "hdr__landed_timestamp TIMESTAMP"));
  EXPECT_EQ(schema.put_by, "user-1");
  ASSERT_OK_AND_ASSIGN(const dataset::TransactionPage page, store_->ListTransactions(rid_, 10, ""));
  ASSERT_EQ(page.transactions.size(), 2U);
  for (const dataset::Transaction& transaction : page.transactions) {
    EXPECT_EQ(transaction.created_by, "user-1");
  }
}

TEST_F(DeadLetterFileTest, ASchemaThatSomebodyPutStays) {
  const auto commit = [&](int number) -> Status {
    DeadLetterFile letters({.rejected = rid_}, objects_, uuids_);
    TARN_RETURN_IF_ERROR(letters.Add(Letter(number, 10)));
    TARN_ASSIGN_OR_RETURN(const std::optional<dataset::StoredFile> file, letters.Close());
    return Commit(*file);
  };
  ASSERT_OK(commit(1));
  ASSERT_OK(store_->PutSchema(
      rid_, R"({"fieldSchemaList":[{"name":"raw","type":"BINARY","nullable":true}]})",
      {.by = "somebody"}));
  ASSERT_OK(commit(2));
  ASSERT_OK_AND_ASSIGN(const dataset::StoredSchema schema, store_->GetSchema(rid_, {}));
  EXPECT_EQ(schema.put_by, "somebody");
}

// A database call fails at each place in turn: the letters are there whole, or not at all.
TEST_F(DeadLetterFileTest, EveryFailureLeavesAllOrNothing) {
  DeadLetterFile letters({.rejected = rid_}, objects_, uuids_);
  ASSERT_OK(letters.Add(Letter(1, 10)));
  ASSERT_OK_AND_ASSIGN(const std::optional<dataset::StoredFile> file, letters.Close());
  for (int64_t n = 1;; ++n) {
    database_->FailAt(n, metastore::Fault::kBefore);
    const Status committed = Commit(*file);
    const bool fired = database_->fired();
    database_->FailAt(0, metastore::Fault::kBefore);
    ASSERT_OK_AND_ASSIGN(const dataset::TransactionPage page,
                         store_->ListTransactions(rid_, 10, ""));
    ASSERT_EQ(page.transactions.size(), committed.ok() ? 1U : 0U) << n;
    if (committed.ok()) {
      EXPECT_FALSE(fired);
      EXPECT_GT(n, 5);
      break;
    }
  }
  EXPECT_THAT(store_->GetSchema(rid_, {}), IsOk());
}

}  // namespace
}  // namespace tarn::landing
