#include "tarn/iceberg/data_file.h"

#include <cmath>

#include <arrow/api.h>

#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

Schema TestSchema() {
  Schema schema;
  schema.fields = {{.id = 1, .name = "id", .type = Type::Long()},
                   {.id = 2, .name = "text", .type = Type::String()},
                   {.id = 3, .name = "x", .type = Type::Double()},
                   {.id = 4, .name = "l", .type = Type::List(5, Type::Long(), false)}};
  return schema;
}

format::FileStatistics Statistics() {
  const std::string low = "a long text that is cut";
  const std::string high = "b long text that is cut";
  return {.row_count = 3,
          .size_bytes = 1000,
          .split_offsets = {4, 500},
          .columns = {{.field_id = 1,
                       .column_size_bytes = 10,
                       .value_count = 3,
                       .null_count = 1,
                       .min = arrow::MakeScalar(int64_t{5}),
                       .max = arrow::MakeScalar(int64_t{9})},
                      {.field_id = 2,
                       .column_size_bytes = 20,
                       .value_count = 3,
                       .null_count = 0,
                       .min = arrow::MakeScalar(low),
                       .max = arrow::MakeScalar(high)},
                      {.field_id = 3,
                       .column_size_bytes = 30,
                       .value_count = 3,
                       .null_count = 0,
                       .nan_count = 1,
                       .min = arrow::MakeScalar(0.0),
                       .max = arrow::MakeScalar(-0.0)},
                      {.field_id = 5,
                       .column_size_bytes = 40,
                       .value_count = 7,
                       .null_count = 0,
                       .min = arrow::MakeScalar(int64_t{1}),
                       .max = arrow::MakeScalar(int64_t{2})},
                      {.field_id = -1, .column_size_bytes = 50, .value_count = 3}}};
}

TEST(DataFileTest, StatisticsBecomeMetrics) {
  ASSERT_OK_AND_ASSIGN(const DataFile file,
                       MakeDataFile(TestSchema(), Statistics(), {.file_path = "f"}));
  EXPECT_EQ(file.record_count, 3);
  EXPECT_EQ(file.split_offsets, (std::vector<int64_t>{4, 500}));
  EXPECT_EQ(*file.column_sizes.Find(5), 40);
  EXPECT_EQ(*file.null_value_counts.Find(1), 1);
  EXPECT_EQ(*file.nan_value_counts.Find(3), 1);
  EXPECT_EQ(file.value_counts.Find(5), nullptr);  // Inside a list.
  EXPECT_EQ(file.lower_bounds.Find(5), nullptr);
  EXPECT_EQ(*file.lower_bounds.Find(2), "a long text that");
  EXPECT_EQ(*file.upper_bounds.Find(2), "b long text thau");
  EXPECT_TRUE(std::signbit(
      std::get<double>(DecodeLiteral(Type::Double(), *file.lower_bounds.Find(3))->value)));
  EXPECT_FALSE(std::signbit(
      std::get<double>(DecodeLiteral(Type::Double(), *file.upper_bounds.Find(3))->value)));
}

TEST(DataFileTest, ModesDecideWhatIsKept) {
  const auto config = MetricsConfig::From({{"write.metadata.metrics.default", "counts"},
                                           {"write.metadata.metrics.column.text", "full"},
                                           {"write.metadata.metrics.column.x", "none"},
                                           {"write.metadata.metrics.column.gone", "full"}},
                                          TestSchema(), {});
  ASSERT_OK_AND_ASSIGN(const DataFile file,
                       MakeDataFile(TestSchema(), Statistics(), {.metrics = config}));
  EXPECT_EQ(file.lower_bounds.Find(1), nullptr);
  EXPECT_EQ(*file.value_counts.Find(1), 3);
  EXPECT_EQ(*file.upper_bounds.Find(2), "b long text that is cut");
  EXPECT_EQ(file.value_counts.Find(3), nullptr);
  const auto sorted =
      MetricsConfig::From({{"write.metadata.metrics.default", "none"}}, TestSchema(), {1});
  EXPECT_EQ(sorted.ModeOf(1), MetricsMode{});
  EXPECT_EQ(sorted.ModeOf(2).kind, MetricsMode::Kind::kNone);
}

TEST(DataFileTest, WideTablesKeepBoundsOfTheFirstHundredColumns) {
  Schema wide;
  for (int32_t id = 1; id <= 150; ++id) {
    wide.fields.push_back({.id = id, .name = "c" + std::to_string(id), .type = Type::Long()});
  }
  const auto config = MetricsConfig::From({}, wide, {150});
  EXPECT_EQ(config.ModeOf(100), MetricsMode{});
  EXPECT_EQ(config.ModeOf(101).kind, MetricsMode::Kind::kNone);
  EXPECT_EQ(config.ModeOf(150), MetricsMode{});
}

TEST(DataFileTest, WrongModesAndValuesAreRefused) {
  EXPECT_THAT(ParseMetricsMode("TRUNCATE(8)"),
              IsOkAndHolds(MetricsMode{MetricsMode::Kind::kTruncate, 8}));
  EXPECT_THAT(ParseMetricsMode("truncate(0)"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(ParseMetricsMode("some"), Fails(ErrorCode::kInvalidArgument));
  format::FileStatistics wrong = Statistics();
  wrong.columns[0].min = arrow::MakeScalar("text");
  EXPECT_THAT(MakeDataFile(TestSchema(), wrong, {}),
              FailsWith(ErrorCode::kInvalidArgument, "'id'"));
}

}  // namespace
}  // namespace tarn::iceberg
