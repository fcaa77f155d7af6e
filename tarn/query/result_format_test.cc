#include "tarn/query/result_format.h"

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>

#include "tarn/base/arrow_status.h"
#include "test/support/matchers.h"

namespace tarn::query {

namespace {

// Gives the same batch `count` times, then perhaps fails.
class FixedQuery final : public RunningQuery {
 public:
  FixedQuery(int count, Status end) : left_(count), end_(std::move(end)) {
    arrow::Int64Builder builder;
    EXPECT_TRUE(builder.AppendValues({1, 9007199254740993}).ok());
    batch_ = arrow::RecordBatch::Make(arrow::schema({arrow::field("id", arrow::int64())}), 2,
                                      {builder.Finish().ValueOrDie()});
    schema_ = batch_->schema();
  }
  [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const override { return schema_; }
  Result<std::shared_ptr<arrow::RecordBatch>> Next() override {
    if (left_-- > 0) {
      return batch_;
    }
    return end_.ok() ? Result<std::shared_ptr<arrow::RecordBatch>>(nullptr) : end_;
  }
  void Interrupt() override {}

 private:
  int left_;
  Status end_;
  std::shared_ptr<arrow::RecordBatch> batch_;
  std::shared_ptr<arrow::Schema> schema_;
};

Result<std::string> Write(ResultFormat format, int count, const Status& end = {}) {
  FixedQuery query(count, end);
  std::string text;
  TARN_RETURN_IF_ERROR(WriteResult(query, format, [&](std::string_view piece) {
    text += piece;
    return Status::Ok();
  }));
  return text;
}

TEST(ResultFormatTest, TextIsExact) {
  ASSERT_OK_AND_ASSIGN(const std::string csv, Write(ResultFormat::kCsv, 2));
  EXPECT_THAT(csv, ::testing::StartsWith("id\r\n1\r\n9007199254740993\r\n"));
  ASSERT_OK_AND_ASSIGN(const std::string json, Write(ResultFormat::kJson, 1));
  EXPECT_THAT(json, ::testing::HasSubstr("9007199254740993"));
  ASSERT_OK_AND_ASSIGN(const std::string empty, Write(ResultFormat::kJson, 0));
  EXPECT_THAT(empty, ::testing::MatchesRegex("\\[[[:space:]]*\\][[:space:]]*"));
}

TEST(ResultFormatTest, ArrowStreamReadsBack) {
  ASSERT_OK_AND_ASSIGN(const std::string bytes, Write(ResultFormat::kArrow, 2));
  auto input = std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(bytes));
  ASSERT_OK_AND_ASSIGN(const auto reader, arrow::ipc::RecordBatchStreamReader::Open(input));
  ASSERT_OK_AND_ASSIGN(const auto table, reader->ToTable());
  EXPECT_EQ(table->num_rows(), 4);
}

TEST(ResultFormatTest, FailuresOfRowsAndOfTheSinkAreReturned) {
  for (const ResultFormat format :
       {ResultFormat::kJson, ResultFormat::kCsv, ResultFormat::kArrow}) {
    EXPECT_THAT(Write(format, 1, Status::Corruption("bad file")),
                FailsWith(ErrorCode::kCorruption, "bad file"));
    FixedQuery query(1, {});
    EXPECT_THAT(
        WriteResult(query, format, [](std::string_view) { return Status::Unavailable("gone"); }),
        FailsWith(ErrorCode::kUnavailable, "gone"));
  }
}

TEST(ResultFormatTest, NamesAreRead) {
  EXPECT_THAT(ParseResultFormat("csv"), IsOkAndHolds(ResultFormat::kCsv));
  EXPECT_THAT(ParseResultFormat("json"), IsOkAndHolds(ResultFormat::kJson));
  EXPECT_THAT(ParseResultFormat("arrow"), IsOkAndHolds(ResultFormat::kArrow));
  EXPECT_THAT(ParseResultFormat("xml"), FailsWith(ErrorCode::kInvalidArgument, "xml"));
}

}  // namespace

}  // namespace tarn::query
