#include "tarn/query/text_relation.h"

#include <gtest/gtest.h>

#include "test/support/matchers.h"

namespace tarn::query {
namespace {

using ::testing::HasSubstr;

Result<std::optional<TextOptions>> OptionsOf(const std::string& rest) {
  const Result<dataset::DatasetSchema> schema = dataset::ParseDatasetSchema(
      R"({"fieldSchemaList":[{"type":"STRING","name":"a","nullable":true}])" + rest + "}");
  EXPECT_OK(schema);
  return ReadTextOptions(*schema);
}

TEST(TextRelationTest, OnlySchemasForTextHaveOptions) {
  EXPECT_THAT(OptionsOf(""), IsOkAndHolds(std::optional<TextOptions>()));
  EXPECT_THAT(OptionsOf(R"(,"dataframeReader":"PARQUET")"),
              IsOkAndHolds(std::optional<TextOptions>()));
  EXPECT_THAT(OptionsOf(R"(,"dataframeReader":"CSV")"),
              IsOkAndHolds(std::optional<TextOptions>(TextOptions())));
}

TEST(TextRelationTest, ParametersAreRead) {
  const std::string reader =
      R"(,"dataFrameReaderClass":"com.palantir.foundry.spark.input.TextDataFrameReader")";
  EXPECT_THAT(
      OptionsOf(reader +
                R"(,"customMetadata":{"textParserParams":{"parser":"CSV_PARSER","nullValues":["-"],
                "fieldDelimiter":";","quoteCharacter":"'","skipLines":2,
                "jaggedRowBehavior":"DROP_ROW","parseErrorBehavior":"REPLACE_WITH_NULL"}})"),
      IsOkAndHolds(std::optional<TextOptions>(TextOptions{.delimiter = ";",
                                                          .quote = "'",
                                                          .skip_lines = 2,
                                                          .null_values = {"-"},
                                                          .null_on_error = true,
                                                          .drop_jagged = true})));
  const auto with = [&](const std::string& params) {
    return OptionsOf(reader + R"(,"customMetadata":{"textParserParams":)" + params + "}");
  };
  EXPECT_THAT(with(R"({"parser":"SINGLE_COLUMN_PARSER"})"), Fails(ErrorCode::kUnimplemented));
  EXPECT_THAT(with(R"({"addFilePath":true})"), Fails(ErrorCode::kUnimplemented));
  EXPECT_THAT(with(R"({"fieldDelimiter":"ab"})"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(with(R"({"fieldDelimiter":1})"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(with(R"({"skipLines":-1})"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(with(R"({"jaggedRowBehavior":"SHRUG"})"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(with(R"({"nullValues":[1]})"), Fails(ErrorCode::kInvalidArgument));
}

TEST(TextRelationTest, NamesAreQuoted) {
  std::vector<format::Field> fields(1);
  fields[0].name = "it's \"x\"";
  ASSERT_OK_AND_ASSIGN(const std::string scan, BuildTextScan(fields, {"/f"}, {}));
  EXPECT_THAT(scan, HasSubstr("CAST(\"it's \"\"x\"\"\" AS VARCHAR)"));
  EXPECT_THAT(scan, HasSubstr("{'it''s \"x\"': 'VARCHAR'}"));
  ASSERT_OK_AND_ASSIGN(const std::string none, BuildTextScan(fields, {}, {}));
  EXPECT_THAT(none, HasSubstr("WHERE false"));
}

}  // namespace
}  // namespace tarn::query
