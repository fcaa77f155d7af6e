#include "tarn/format/parquet_writer.h"

#include <arrow/api.h>
#include <arrow/json/from_string.h>

#include "tarn/base/arrow_status.h"
#include "tarn/format/field_type.h"
#include "tarn/format/parquet_reader.h"
#include "tarn/storage/memory_store.h"
#include "test/support/matchers.h"

namespace tarn::format {
namespace {

std::shared_ptr<arrow::RecordBatch> Batch(const std::shared_ptr<arrow::Schema>& schema,
                                          const std::vector<std::string>& columns) {
  arrow::ArrayVector arrays;
  for (int i = 0; i < schema->num_fields(); ++i) {
    arrays.push_back(*arrow::json::ArrayFromJSONString(schema->field(i)->type(),
                                                       columns[static_cast<size_t>(i)]));
  }
  const int64_t rows = arrays.empty() ? 0 : arrays[0]->length();
  return arrow::RecordBatch::Make(schema, rows, std::move(arrays));
}

std::shared_ptr<arrow::Field> WithId(const std::string& name,
                                     const std::shared_ptr<arrow::DataType>& type, int id) {
  return arrow::field(name, type)
      ->WithMetadata(arrow::key_value_metadata({"PARQUET:field_id"}, {std::to_string(id)}));
}

class ParquetWriterTest : public testing::Test {
 protected:
  std::unique_ptr<ParquetWriter> Open(const std::shared_ptr<arrow::Schema>& schema,
                                      ParquetWriterOptions options = {}) {
    auto object = store_.OpenWriter("f.parquet", storage::WriteMode::kOverwrite);
    EXPECT_TRUE(object.ok());
    auto writer = ParquetWriter::Open(std::move(*object), schema, std::move(options));
    EXPECT_TRUE(writer.ok()) << writer.status().ToString();
    return std::move(*writer);
  }

  std::unique_ptr<ParquetReader> Read() {
    auto object = store_.OpenReader("f.parquet");
    EXPECT_TRUE(object.ok());
    auto reader = ParquetReader::Open(std::move(*object));
    EXPECT_TRUE(reader.ok()) << reader.status().ToString();
    return std::move(*reader);
  }

  SystemClock clock_;
  storage::MemoryStore store_{clock_};
};

std::string Bound(const std::shared_ptr<arrow::Scalar>& scalar) {
  return scalar == nullptr ? "none" : scalar->ToString();
}

TEST_F(ParquetWriterTest, WritesEveryTypeAndReadsItBack) {
  std::vector<Field> fields;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"boolean", "[true,null,false]"},
      {"byte", "[1,null,-2]"},
      {"short", "[1,null,-2]"},
      {"int", "[1,null,-2]"},
      {"long", "[1,null,-9223372036854775808]"},
      {"float", "[0.5,null,-1]"},
      {"double", "[0.5,null,-1e300]"},
      {"decimal(5,2)", R"(["1.50",null,"-999.99"])"},
      {"decimal(18,3)", R"(["1.500",null,"-0.001"])"},
      {"decimal(38,10)", R"(["1.5000000000",null,"300.0000000000"])"},
      {"string", R"(["b",null,""])"},
      {"binary", R"(["b",null,"a"])"},
      {"date", "[0,null,-719162]"},
      {"time", "[0,null,86399999999]"},
      {"timestamp", "[0,null,-1]"},
      {"timestamptz", "[0,null,-1]"},
      {"array<int>", "[[1,null],null,[]]"},
      {"struct<a:int,b:array<string>>", R"([{"a":1,"b":["x"]},null,{"a":null,"b":[]}])"},
      {"map<string,long>", R"([[["k",1]],null,[]])"}};
  std::vector<std::string> columns;
  for (const auto& [type, values] : cases) {
    fields.push_back({.name = type, .type = *ParseTypeName(type)});
    columns.push_back(values);
  }
  const auto batch = Batch(ToArrowSchema(fields), columns);
  auto writer = Open(batch->schema());
  ASSERT_OK(writer->Write(*batch));
  ASSERT_OK(writer->Write(*batch));
  ASSERT_OK_AND_ASSIGN(const FileStatistics statistics, writer->Close());
  EXPECT_EQ(statistics.row_count, 6);
  EXPECT_EQ(statistics.split_offsets, std::vector<int64_t>{4});
  ASSERT_OK_AND_ASSIGN(const auto meta, store_.Head("f.parquet"));
  EXPECT_EQ(statistics.size_bytes, static_cast<int64_t>(meta.size_bytes));

  const auto reader = Read();
  EXPECT_EQ(reader->row_count(), 6);
  ASSERT_OK_AND_ASSIGN(const auto table, reader->ReadAll());
  ASSERT_OK_AND_ASSIGN(const auto combined, table->CombineChunksToBatch());
  EXPECT_TRUE(combined->Slice(0, 3)->Equals(*batch, false)) << combined->ToString();
  EXPECT_TRUE(combined->Slice(3)->Equals(*batch, false));

  std::vector<std::string> bounds;
  for (const auto& column : statistics.columns) {
    bounds.push_back(column.path + " " + Bound(column.min) + " " + Bound(column.max) + " " +
                     std::to_string(column.null_count.value_or(-1)) + "/" +
                     std::to_string(column.value_count));
  }
  EXPECT_THAT(
      bounds,
      testing::ElementsAre(
          "boolean false true 2/6", "byte -2 1 2/6", "short -2 1 2/6", "int -2 1 2/6",
          "long -9223372036854775808 1 2/6", "float -1 0.5 2/6", "double -1e+300 0.5 2/6",
          "decimal(5,2) -999.99 1.50 2/6", "decimal(18,3) -0.001 1.500 2/6",
          "decimal(38,10) 1.5000000000 300.0000000000 2/6", "string  b 2/6", testing::_,
          "date 0001-01-01 1970-01-01 2/6", "time 00:00:00.000000 23:59:59.999999 2/6",
          "timestamp 1969-12-31 23:59:59.999999 1970-01-01 00:00:00.000000 2/6",
          "timestamptz 1969-12-31 23:59:59.999999Z 1970-01-01 00:00:00.000000Z 2/6",
          "array<int>.list.element 1 1 6/8", testing::_, testing::_, testing::_, testing::_));
}

TEST_F(ParquetWriterTest, FieldIdsAreKeptAtEveryLevel) {
  const auto schema = arrow::schema(
      {WithId("a", arrow::int64(), 7),
       WithId("s",
              arrow::struct_({WithId("x", arrow::utf8(), 9),
                              WithId("l", arrow::list(WithId("element", arrow::int32(), 11)), 10)}),
              8)});
  auto writer = Open(schema, {.footer = {{"iceberg.schema", "{}"}, {"k", "v"}}});
  ASSERT_OK(writer->Write(*Batch(schema, {"[1]", R"([{"x":"q","l":[5]}])"})));
  ASSERT_OK_AND_ASSIGN(const FileStatistics statistics, writer->Close());
  ASSERT_EQ(statistics.columns.size(), 3U);
  EXPECT_EQ(statistics.columns[0].field_id, 7);
  EXPECT_EQ(statistics.columns[1].field_id, 9);
  EXPECT_EQ(statistics.columns[2].field_id, 11);
  EXPECT_EQ(statistics.columns[2].path, "s.l.list.element");
  const auto reader = Read();
  EXPECT_EQ(reader->footer("k"), "v");
  EXPECT_EQ(reader->footer("none"), std::nullopt);
  EXPECT_EQ(reader->schema()->field(0)->metadata()->Get("PARQUET:field_id").ValueOr(""), "7");
  ASSERT_OK_AND_ASSIGN(const FileStatistics again, reader->ReadStatistics());
  EXPECT_EQ(again.columns[1].min->ToString(), "q");
  EXPECT_EQ(again.split_offsets, statistics.split_offsets);
}

TEST_F(ParquetWriterTest, NanIsCountedAndNeverABound) {
  const auto schema =
      arrow::schema({arrow::field("d", arrow::float64()), arrow::field("n", arrow::float32())});
  auto writer = Open(schema, {.row_group_rows = 2});
  arrow::DoubleBuilder doubles;
  arrow::FloatBuilder floats;
  for (const double value : {std::nan(""), 1.0, 2.0, std::nan("")}) {
    ASSERT_TRUE(doubles.Append(value).ok());
    ASSERT_TRUE(floats.Append(std::nanf("")).ok());
  }
  const auto batch = arrow::RecordBatch::Make(schema, 4, {*doubles.Finish(), *floats.Finish()});
  ASSERT_OK(writer->Write(*batch));
  ASSERT_OK_AND_ASSIGN(const FileStatistics statistics, writer->Close());
  EXPECT_EQ(statistics.split_offsets.size(), 2U);
  EXPECT_EQ(statistics.columns[0].nan_count, 2);
  EXPECT_EQ(Bound(statistics.columns[0].min), "1");
  EXPECT_EQ(Bound(statistics.columns[0].max), "2");
  EXPECT_EQ(statistics.columns[1].nan_count, 4);
  EXPECT_EQ(Bound(statistics.columns[1].min), "none");
}

TEST_F(ParquetWriterTest, RowGroupsEndByRowsAndBytes) {
  const auto schema = arrow::schema({arrow::field("s", arrow::utf8())});
  const std::string long_text(1000, 'x');
  auto writer = Open(schema, {.row_group_rows = 5, .row_group_bytes = 3000});
  for (int i = 0; i < 12; ++i) {
    ASSERT_OK(writer->Write(*Batch(schema, {"[\"a\"]"})));
  }
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(writer->Write(*Batch(schema, {"[\"" + long_text + "\"]"})));
  }
  EXPECT_EQ(writer->row_count(), 17);
  ASSERT_OK_AND_ASSIGN(const FileStatistics statistics, writer->Close());
  EXPECT_EQ(statistics.row_count, 17);
  const auto reader = Read();
  std::vector<int64_t> rows;
  for (int group = 0; group < reader->row_group_count(); ++group) {
    rows.push_back(reader->row_group_rows(group));
  }
  EXPECT_THAT(rows, testing::ElementsAre(5, 5, 4, 2, 1));
  EXPECT_EQ(statistics.split_offsets.size(), 5U);
  EXPECT_TRUE(std::is_sorted(statistics.split_offsets.begin(), statistics.split_offsets.end()));
}

TEST_F(ParquetWriterTest, LongBoundsAreLeftOut) {
  const auto schema = arrow::schema({arrow::field("s", arrow::utf8())});
  auto writer = Open(schema);
  ASSERT_OK(writer->Write(*Batch(schema, {"[\"a\",\"" + std::string(5000, 'z') + "\"]"})));
  ASSERT_OK_AND_ASSIGN(const FileStatistics statistics, writer->Close());
  EXPECT_EQ(Bound(statistics.columns[0].max), "none");
  EXPECT_EQ(statistics.columns[0].null_count, 0);
}

TEST_F(ParquetWriterTest, AFileWithoutRowsIsValid) {
  const auto schema = arrow::schema({arrow::field("s", arrow::utf8())});
  ASSERT_OK_AND_ASSIGN(const FileStatistics statistics, Open(schema)->Close());
  EXPECT_EQ(statistics.row_count, 0);
  EXPECT_EQ(Read()->row_count(), 0);
}

TEST_F(ParquetWriterTest, AnotherSchemaIsRefused) {
  const auto schema = arrow::schema({arrow::field("s", arrow::utf8())});
  auto writer = Open(schema);
  const auto other = arrow::schema({arrow::field("s", arrow::int64())});
  EXPECT_THAT(writer->Write(*Batch(other, {"[1]"})), Fails(ErrorCode::kInvalidArgument));
}

TEST_F(ParquetWriterTest, WithoutCloseNothingIsVisible) {
  const auto schema = arrow::schema({arrow::field("s", arrow::utf8())});
  {
    auto writer = Open(schema);
    ASSERT_OK(writer->Write(*Batch(schema, {"[\"a\"]"})));
  }
  Open(schema)->Abort();
  EXPECT_EQ(store_.object_count(), 0U);
}

TEST_F(ParquetWriterTest, ThreadsAndCodecsGiveTheSameRows) {
  std::vector<Field> fields;
  std::vector<std::string> columns;
  for (int i = 0; i < 8; ++i) {
    fields.push_back({.name = "c" + std::to_string(i), .type = *ParseTypeName("long")});
    columns.push_back("[" + std::to_string(i) + ",2,3]");
  }
  const auto batch = Batch(ToArrowSchema(fields), columns);
  for (const auto compression :
       {ParquetCompression::kZstd, ParquetCompression::kSnappy, ParquetCompression::kNone}) {
    auto writer =
        Open(batch->schema(),
             {.compression = compression, .bloom_filter_columns = {"c0"}, .use_threads = true});
    ASSERT_OK(writer->Write(*batch));
    ASSERT_OK(writer->Close());
    ASSERT_OK_AND_ASSIGN(const auto table, Read()->ReadAll());
    ASSERT_OK_AND_ASSIGN(const auto combined, table->CombineChunksToBatch());
    EXPECT_TRUE(combined->Equals(*batch, false));
  }
}

}  // namespace
}  // namespace tarn::format
