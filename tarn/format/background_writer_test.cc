#include "tarn/format/background_writer.h"

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "tarn/base/arrow_status.h"
#include "tarn/format/parquet_reader.h"
#include "tarn/storage/memory_store.h"
#include "test/support/matchers.h"

namespace tarn::format {
namespace {

class BackgroundWriterTest : public ::testing::Test {
 protected:
  std::unique_ptr<BackgroundWriter> Open() {
    auto object = std::move(store_.OpenWriter("f", storage::WriteMode::kPutIfAbsent)).value();
    return std::make_unique<BackgroundWriter>(
        std::move(ParquetWriter::Open(std::move(object), schema_)).value());
  }
  std::shared_ptr<arrow::RecordBatch> Batch(int64_t first, int64_t count) {
    arrow::Int64Builder builder;
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_TRUE(builder.Append(first + i).ok());
    }
    return arrow::RecordBatch::Make(schema_, count, {builder.Finish().ValueOrDie()});
  }

  ManualClock clock_{FromMicros(0)};
  storage::MemoryStore store_{clock_};
  std::shared_ptr<arrow::Schema> schema_ = arrow::schema({arrow::field("n", arrow::int64())});
};

TEST_F(BackgroundWriterTest, WritesAllBatchesInOrder) {
  const auto writer = Open();
  constexpr int64_t kBatches = 20;
  for (int64_t i = 0; i < kBatches; ++i) {
    ASSERT_OK(writer->Write(Batch(i * 100, 100)));
  }
  ASSERT_OK_AND_ASSIGN(const FileStatistics statistics, writer->Close());
  EXPECT_EQ(statistics.row_count, kBatches * 100);
  EXPECT_GT(statistics.size_bytes, 0);
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<storage::ObjectReader> object, store_.OpenReader("f"));
  ASSERT_OK_AND_ASSIGN(const auto reader, ParquetReader::Open(std::move(object)));
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<arrow::Table> table, reader->ReadAll());
  int64_t expected = 0;
  for (const auto& chunk : table->column(0)->chunks()) {
    for (int64_t i = 0; i < chunk->length(); ++i) {
      ASSERT_EQ(static_cast<const arrow::Int64Array&>(*chunk).Value(i), expected++);
    }
  }
}

TEST_F(BackgroundWriterTest, TellsTheFirstErrorAndLeavesNothing) {
  auto writer = Open();
  const auto other = arrow::RecordBatch::Make(
      arrow::schema({arrow::field("other", arrow::int64())}), 1, Batch(0, 1)->columns());
  ASSERT_OK(writer->Write(Batch(0, 1)));
  ASSERT_OK(writer->Write(other));
  Status status;
  for (int i = 0; i < 10 && status.ok(); ++i) {
    status = writer->Write(Batch(0, 1));  // Earlier or later the error comes back.
  }
  EXPECT_THAT(writer->Close(), Fails(ErrorCode::kInvalidArgument));
  writer.reset();
  EXPECT_THAT(store_.OpenReader("f"), Fails(ErrorCode::kNotFound));
}

TEST_F(BackgroundWriterTest, ClosedOrAbandonedItTakesNoMore) {
  auto writer = Open();
  ASSERT_OK(writer->Write(Batch(0, 1)));
  ASSERT_OK(StatusOf(writer->Close()));
  EXPECT_THAT(writer->Write(Batch(0, 1)), Fails(ErrorCode::kInternal));
  writer.reset();
  ASSERT_OK(store_.Delete("f"));
  writer = Open();
  ASSERT_OK(writer->Write(Batch(0, 1)));
  writer.reset();
  EXPECT_THAT(store_.OpenReader("f"), Fails(ErrorCode::kNotFound));
}

}  // namespace
}  // namespace tarn::format
