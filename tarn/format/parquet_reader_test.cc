#include "tarn/format/parquet_reader.h"

#include <arrow/api.h>

#include "tarn/format/parquet_writer.h"
#include "tarn/storage/faulty_store.h"
#include "tarn/storage/memory_store.h"
#include "test/support/matchers.h"

namespace tarn::format {
namespace {

class ParquetReaderTest : public testing::Test {
 protected:
  // Three row groups of 1000 rows: a = 0.., s = "v<a>", l = [a].
  void SetUp() override {
    arrow::Int64Builder a;
    arrow::StringBuilder s;
    for (int64_t i = 0; i < 3000; ++i) {
      ASSERT_TRUE(a.Append(i).ok());
      ASSERT_TRUE(s.Append("v" + std::to_string(i)).ok());
    }
    const auto schema =
        arrow::schema({arrow::field("a", arrow::int64()), arrow::field("s", arrow::utf8())});
    const auto batch = arrow::RecordBatch::Make(schema, 3000, {*a.Finish(), *s.Finish()});
    ASSERT_OK_AND_ASSIGN(auto object, store_.OpenWriter("f", storage::WriteMode::kOverwrite));
    ASSERT_OK_AND_ASSIGN(auto writer,
                         ParquetWriter::Open(std::move(object), schema, {.row_group_rows = 1000}));
    ASSERT_OK(writer->Write(*batch));
    ASSERT_OK(writer->Close());
  }

  Result<std::unique_ptr<ParquetReader>> Open(std::string_view key = "f") {
    TARN_ASSIGN_OR_RETURN(std::unique_ptr<storage::ObjectReader> object, store_.OpenReader(key));
    return ParquetReader::Open(std::move(object));
  }

  // Opens and reads everything.
  Status ReadWhole(std::string_view key) {
    TARN_ASSIGN_OR_RETURN(const auto reader, Open(key));
    return reader->ReadAll().status();
  }

  SystemClock clock_;
  storage::MemoryStore store_{clock_};
};

TEST_F(ParquetReaderTest, ScansColumnsRowGroupsAndBatches) {
  ASSERT_OK_AND_ASSIGN(const auto reader, Open());
  EXPECT_EQ(reader->row_count(), 3000);
  EXPECT_EQ(reader->row_group_count(), 3);
  EXPECT_EQ(reader->row_group_rows(2), 1000);
  ASSERT_OK(reader->Scan({.columns = {{1, 0}}, .row_groups = {{2}}, .batch_rows = 400}));
  std::vector<int64_t> sizes;
  for (;;) {
    ASSERT_OK_AND_ASSIGN(const auto batch, reader->Next());
    if (batch == nullptr) {
      break;
    }
    EXPECT_EQ(batch->schema()->field(0)->name(), "s");
    EXPECT_EQ((*batch->column(1)->GetScalar(0))->ToString(),
              std::to_string(2000 + 400 * static_cast<int>(sizes.size())));
    sizes.push_back(batch->num_rows());
  }
  EXPECT_THAT(sizes, testing::ElementsAre(400, 400, 200));
}

TEST_F(ParquetReaderTest, NoColumnsStillCountRows) {
  ASSERT_OK_AND_ASSIGN(const auto reader, Open());
  ASSERT_OK(reader->Scan({.columns = std::vector<int>{}, .batch_rows = 2000}));
  ASSERT_OK_AND_ASSIGN(const auto first, reader->Next());
  EXPECT_EQ(first->num_rows(), 2000);
  ASSERT_OK_AND_ASSIGN(const auto second, reader->Next());
  EXPECT_EQ(second->num_rows(), 1000);
  ASSERT_OK_AND_ASSIGN(const auto end, reader->Next());
  EXPECT_EQ(end, nullptr);
}

TEST_F(ParquetReaderTest, BadScansAreRefused) {
  ASSERT_OK_AND_ASSIGN(const auto reader, Open());
  EXPECT_THAT(reader->Scan({.columns = {{2}}}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(reader->Scan({.row_groups = {{-1}}}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(reader->ReadAll(2999), Fails(ErrorCode::kResourceExhausted));
}

TEST_F(ParquetReaderTest, CorruptFilesAreNamed) {
  ASSERT_OK_AND_ASSIGN(const std::string bytes, storage::ReadObject(store_, "f"));
  const auto put = [&](const std::string& content) {
    ASSERT_OK(storage::WriteObject(store_, "bad", content, storage::WriteMode::kOverwrite));
  };
  for (const std::string& content :
       {std::string(), std::string("PAR1"), std::string(1000, 'x'), bytes.substr(0, 200),
        bytes.substr(0, bytes.size() - 1), bytes.substr(1),
        bytes.substr(0, bytes.size() - 8) + "\xff\xff\xff\x7fPAR1"}) {
    put(content);
    EXPECT_THAT(ReadWhole("bad"), FailsWith(ErrorCode::kCorruption, "bad"));
  }
}

// Every flipped byte gives the same rows or an error, never a crash.
TEST_F(ParquetReaderTest, FlippedBytesNeverCrash) {
  ASSERT_OK_AND_ASSIGN(const std::string bytes, storage::ReadObject(store_, "f"));
  int failures = 0;
  for (size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 400) {
    std::string content = bytes;
    content[at] = static_cast<char>(content[at] ^ 0x5a);
    ASSERT_OK(storage::WriteObject(store_, "bad", content, storage::WriteMode::kOverwrite));
    const Status status = ReadWhole("bad");
    if (!status.ok()) {
      ++failures;
      EXPECT_NE(status.message().find("bad"), std::string::npos) << status.ToString();
    }
  }
  EXPECT_GT(failures, 10);
}

}  // namespace
}  // namespace tarn::format
