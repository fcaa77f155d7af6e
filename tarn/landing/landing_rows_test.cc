#include "tarn/landing/landing_rows.h"

#include <arrow/api.h>

#include "tarn/base/arrow_status.h"
#include "test/support/matchers.h"

namespace tarn::landing {
namespace {

source::files::FilePosition File(const std::string& name) {
  source::files::FilePosition position;
  position.key = name;
  position.name = "/in/" + name;
  position.version = {.etag = {}, .size_bytes = 77, .modified = FromMillis(5000)};
  return position;
}

class LandingRowsTest : public ::testing::Test {
 protected:
  void Open() {
    Result<std::unique_ptr<LandingRows>> made = LandingRows::Make(spec_, {});
    ASSERT_OK(made);
    rows_ = std::move(made).value();
  }
  void Feed(const std::string& name, std::string_view text) {
    rows_->StartFile(File(name));
    ASSERT_OK(rows_->Feed(text));
    ASSERT_OK(rows_->FinishFile());
  }
  std::shared_ptr<arrow::RecordBatch> Take() {
    Result<std::shared_ptr<arrow::RecordBatch>> batch = rows_->TakeRows(FromMillis(9000));
    EXPECT_OK(batch);
    return batch.ok() ? *batch : nullptr;
  }

  LandingSpec spec_;
  std::unique_ptr<LandingRows> rows_;
};

std::string Text(const arrow::RecordBatch& batch, const char* column, int64_t row) {
  return (*batch.GetColumnByName(column)->GetScalar(row))->ToString();
}

TEST_F(LandingRowsTest, RowsCarryTheirFileAndNumber) {
  Open();
  Feed("a", "{\"id\": 1}\n{\"id\": 2}\n");
  Feed("b", "{\"id\": 3}\n");
  const std::shared_ptr<arrow::RecordBatch> batch = Take();
  ASSERT_EQ(batch->num_rows(), 3);
  EXPECT_EQ(Text(*batch, "hdr__file_name", 1), "/in/a");
  EXPECT_EQ(Text(*batch, "hdr__file_row", 1), "1");
  EXPECT_EQ(Text(*batch, "hdr__file_name", 2), "/in/b");
  EXPECT_EQ(Text(*batch, "hdr__file_row", 2), "0");
  EXPECT_EQ(Text(*batch, "hdr__file_size", 0), "77");
  EXPECT_EQ(Text(*batch, "id", 2), "3");
  EXPECT_EQ(Take(), nullptr);
}

TEST_F(LandingRowsTest, BadRecordsBecomeDeadLettersWithTheirPlace) {
  Open();
  Feed("a", "{\"id\": 1}\nnonsense\n{\"id\": 3}\n");
  EXPECT_EQ(Take()->num_rows(), 2);
  const std::vector<DeadLetter> letters = rows_->TakeDeadLetters();
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters[0].raw, "nonsense");
  EXPECT_EQ(letters[0].source, "/in/a");
  EXPECT_EQ(letters[0].position, "1");
  EXPECT_EQ(letters[0].error_code, "bad_json");
  EXPECT_EQ(rows_->counts().rejected, 1);
  EXPECT_TRUE(rows_->TakeDeadLetters().empty());
}

TEST_F(LandingRowsTest, StopNamesFileAndRow) {
  spec_.on_bad_record = OnBadRecord::kStop;
  Open();
  rows_->StartFile(File("a"));
  EXPECT_THAT(rows_->Feed("{\"id\": 1}\nx\n{\"id\": 2}\n"),
              FailsWith(ErrorCode::kFailedPrecondition, "/in/a: row 1"));
}

TEST_F(LandingRowsTest, AFileThatDoesNotCountIsTakenBack) {
  Open();
  Feed("a", "{\"id\": 1}\n");
  rows_->StartFile(File("b"));
  ASSERT_OK(rows_->Feed("{\"id\": 2}\nx\n{\"id\": 3}\n"));
  EXPECT_EQ(rows_->DropFile(), 0);
  Feed("c", "{\"id\": 4}\n");
  const std::shared_ptr<arrow::RecordBatch> batch = Take();
  ASSERT_EQ(batch->num_rows(), 2);
  EXPECT_EQ(Text(*batch, "id", 0), "1");
  EXPECT_EQ(Text(*batch, "id", 1), "4");
  EXPECT_EQ(Text(*batch, "hdr__file_name", 1), "/in/c");
  EXPECT_TRUE(rows_->TakeDeadLetters().empty());
  EXPECT_EQ(rows_->counts().rows, 2);
}

TEST_F(LandingRowsTest, RowsThatWereHandedOverAreReported) {
  Open();
  rows_->StartFile(File("a"));
  ASSERT_OK(rows_->Feed("{\"id\": 1}\n{\"id\": 2}\n"));
  ASSERT_EQ(Take()->num_rows(), 2);
  EXPECT_EQ(rows_->DropFile(), 2);
}

// Whoever hands letters over knows that they cannot be taken back, and memory stays bounded.
TEST_F(LandingRowsTest, DeadLettersThatWereHandedOverAreReported) {
  Open();
  rows_->StartFile(File("a"));
  ASSERT_OK(rows_->Feed("x\n{\"id\": 1}\ny\n"));
  EXPECT_EQ(rows_->TakeDeadLetters().size(), 2U);
  EXPECT_EQ(rows_->DropFile(), 2);
  rows_->StartFile(File("b"));
  EXPECT_FALSE(rows_->IsPieceFull());
  const std::string line(1 << 20, 'x');
  for (int i = 0; i < 9; ++i) {
    ASSERT_OK(rows_->Feed(line + "\n"));
  }
  EXPECT_TRUE(rows_->IsPieceFull());
  EXPECT_EQ(rows_->TakeDeadLetters().size(), 9U);
  EXPECT_FALSE(rows_->IsPieceFull());
  rows_->KeepFile();
  EXPECT_EQ(rows_->DropFile(), 0);
}

constexpr std::string_view kUpdate =
    R"({"before":{"id":1,"v":"a"},"after":{"id":2,"v":"b"},"op":"u","ts_ms":1,)"
    R"("source":{"schema":"s","table":"t","lsn":7,"ts_ms":3}})";

TEST_F(LandingRowsTest, ChangeEventsAreUnwrapped) {
  spec_.envelope = Envelope::kDebezium;
  Open();
  const std::string keyed = R"({"key":{"id":2},"value":)" + std::string(kUpdate) + "}";
  Feed("a", keyed + "\nnull\n" + R"({"key":{"id":2},"value":null})" + "\n");
  const std::shared_ptr<arrow::RecordBatch> batch = Take();
  ASSERT_EQ(batch->num_rows(), 1);
  EXPECT_EQ(Text(*batch, "id", 0), "2");
  EXPECT_EQ(Text(*batch, "hdr__cdc_operation", 0), "U");
  EXPECT_EQ(Text(*batch, "hdr__cdc_table", 0), "s.t");
  EXPECT_EQ(Text(*batch, "hdr__cdc_before", 0), R"({"id":1})");
  EXPECT_TRUE(rows_->TakeDeadLetters().empty());
  EXPECT_EQ(rows_->counts().filtered, 2);
  EXPECT_EQ(rows_->source_keys().Encode(), R"({"s.t":["id"]})");
}

TEST_F(LandingRowsTest, WithoutAKeyTheWholeImageBeforeIsKept) {
  spec_.envelope = Envelope::kDebezium;
  Open();
  Feed("a", kUpdate);
  EXPECT_EQ(Text(*Take(), "hdr__cdc_before", 0), R"({"id":1,"v":"a"})");
}

// An update of a table whose key is a date, a decimal, bytes and a timestamp, with its schema.
std::string TypedUpdate(const std::string& before, const std::string& after) {
  const std::string fields =
      R"([{"type":"int32","name":"io.debezium.time.Date","field":"d"},)"
      R"({"type":"bytes","name":"org.apache.kafka.connect.data.Decimal",)"
      R"("parameters":{"scale":"2"},"field":"p"},{"type":"bytes","field":"b"},)"
      R"({"type":"int64","name":"io.debezium.time.MicroTimestamp","field":"t"},)"
      R"({"type":"double","field":"v"}])";
  return R"({"key":{"d":2,"p":"","b":"","t":1},"value":{"schema":{"type":"struct","fields":[)"
         R"({"type":"struct","field":"before","fields":)" +
         fields + R"(},{"type":"struct","field":"after","fields":)" + fields +
         R"(}]},"payload":{"op":"u","ts_ms":1,"source":{"lsn":7},"before":)" + before +
         R"(,"after":)" + after + "}}}";
}

TEST_F(LandingRowsTest, TheImageBeforeReadsLikeTheRow) {
  spec_.envelope = Envelope::kDebezium;
  Open();
  Feed("a", TypedUpdate(R"({"d":20484,"p":"Dzw=","b":"AP8=","t":1500000,"v":0.5})",
                        R"({"d":20485,"p":"Dzw=","b":"AP8=","t":1500000,"v":0.5})"));
  const std::shared_ptr<arrow::RecordBatch> batch = Take();
  EXPECT_EQ(Text(*batch, "d", 0), "2026-02-01");
  EXPECT_EQ(Text(*batch, "hdr__cdc_before", 0),
            R"({"d":"2026-01-31","p":"39.00","b":"00FF","t":"1970-01-01T00:00:01.5"})");
}

TEST_F(LandingRowsTest, NumbersOfTheImageBeforeAreNotLeftToBeRounded) {
  spec_.envelope = Envelope::kDebezium;
  spec_.cdc_before = CdcBefore::kFull;
  spec_.columns.declared = {{.name = "D", .type = {.kind = format::FieldKind::kDate}}};
  Open();
  Feed("a", R"({"op":"u","source":{},"before":{"n":12345678901.1234567890,"i":7,"d":"2026-01-31",)"
            R"("o":{"x":1.5},"z":null},"after":{"n":1}})");
  EXPECT_EQ(Text(*Take(), "hdr__cdc_before", 0),
            R"({"n":"12345678901.1234567890","i":7,"d":"2026-01-31","o":{"x":1.5},"z":null})");
}

TEST_F(LandingRowsTest, EachRowHasItsOwnEventTime) {
  spec_.envelope = Envelope::kDebezium;
  Open();
  Feed("a", R"({"op":"c","after":{"id":1},"source":{"ts_ms":3}})"
            "\n"
            R"({"op":"c","after":{"id":2},"source":{}})"
            "\n");
  const std::shared_ptr<arrow::RecordBatch> batch = Take();
  EXPECT_EQ(Text(*batch, "hdr__event_timestamp", 0), "1970-01-01 00:00:00.003000Z");
  EXPECT_EQ(Text(*batch, "hdr__event_timestamp", 1), "1970-01-01 00:00:05.000000Z");
  EXPECT_EQ(Text(*batch, "hdr__cdc_timestamp", 1), "null");
}

TEST_F(LandingRowsTest, ATruncateIsARowWithoutValues) {
  spec_.envelope = Envelope::kDebezium;
  Open();
  Feed("a", R"({"op":"c","after":{"id":1},"source":{"schema":"s","table":"t"}})"
            "\n"
            R"({"op":"t","before":null,"after":null,"source":{"schema":"s","table":"t"}})"
            "\n");
  const std::shared_ptr<arrow::RecordBatch> batch = Take();
  ASSERT_EQ(batch->num_rows(), 2);
  EXPECT_EQ(Text(*batch, "id", 1), "null");
  EXPECT_EQ(Text(*batch, "hdr__cdc_operation", 1), "T");
  EXPECT_EQ(Text(*batch, "hdr__cdc_table", 1), "s.t");
  EXPECT_EQ(Text(*batch, "hdr__cdc_before", 1), "null");
  EXPECT_EQ(rows_->counts().truncates, 1);
}

TEST_F(LandingRowsTest, TablesThatAreNotWantedAreCounted) {
  spec_.envelope = Envelope::kDebezium;
  spec_.tables = {"other.%"};
  Open();
  Feed("a", kUpdate);
  EXPECT_EQ(Take(), nullptr);
  EXPECT_EQ(rows_->counts().filtered, 1);
}

}  // namespace
}  // namespace tarn::landing
