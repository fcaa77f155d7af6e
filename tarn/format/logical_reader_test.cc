// Values whose types a record's own schema states, through JsonColumns.
#include <arrow/api.h>

#include "tarn/format/base64.h"
#include "tarn/format/json_columns.h"
#include "test/support/matchers.h"

namespace tarn::format {
namespace {

class LogicalReaderTest : public testing::Test {
 protected:
  // Reads values under one Connect schema (JSON of the field without its name).
  std::string Values(std::string schema, const std::vector<std::string>& values) {
    auto columns = JsonColumns::Make({});
    EXPECT_TRUE(columns.ok());
    Add(**columns, std::move(schema), values);
    return Show(**columns);
  }

  void Add(JsonColumns& columns, std::string schema, const std::vector<std::string>& values) {
    schema.insert(1, "\"field\":\"v\",");
    JsonTape tape;
    const std::string text = "{\"type\":\"struct\",\"fields\":[" + schema + "]}";
    ASSERT_TRUE(tape.Parse(text).ok()) << text;
    const auto logical = ParseConnectSchema(tape.root());
    ASSERT_NE(logical, nullptr);
    for (const std::string& value : values) {
      const std::string row = "{\"v\":" + value + "}";
      ASSERT_TRUE(tape.Parse(row).ok()) << row;
      EXPECT_TRUE(columns.Append(tape.root(), {.schema = logical.get()}).ok());
    }
  }

  std::string Show(JsonColumns& columns) {
    auto batch = columns.Finish();
    EXPECT_TRUE(batch.ok());
    EXPECT_TRUE(batch->batch->ValidateFull().ok());
    nulled_ = columns.counters().nulled_values;
    const auto array = batch->batch->column(0);
    std::string text = array->type()->ToString() + ":";
    for (int64_t i = 0; i < array->length(); ++i) {
      const auto scalar = *array->GetScalar(i);
      text += i == 0 ? " " : " | ";
      if (!scalar->is_valid) {
        text += "null";
      } else if (array->type_id() == arrow::Type::BINARY) {
        text += EncodeBase64(static_cast<const arrow::BaseBinaryScalar&>(*scalar).view());
      } else {
        text += scalar->ToString();
      }
    }
    return text;
  }

  uint64_t nulled_ = 0;
};

std::string Named(const std::string& type, const std::string& name,
                  const std::string& parameters = "{}") {
  return R"({"type":")" + type + R"(","name":")" + name + R"(","parameters":)" + parameters + "}";
}

std::string DecimalSchema(int scale, const std::string& more = "") {
  return Named("bytes", "org.apache.kafka.connect.data.Decimal",
               "{\"scale\":\"" + std::to_string(scale) + "\"" + more + "}");
}

TEST_F(LogicalReaderTest, PlainTypes) {
  EXPECT_EQ(Values(R"({"type":"int16"})", {"1", "null", "-2"}), "int32: 1 | null | -2");
  EXPECT_EQ(Values(R"({"type":"int64"})", {"9223372036854775807"}), "int64: 9223372036854775807");
  EXPECT_EQ(Values(R"({"type":"float"})", {"0.5"}), "float: 0.5");
  EXPECT_EQ(Values(R"({"type":"double"})", {"1", "0.1", "\"NaN\"", "\"-Infinity\""}),
            "double: 1 | 0.1 | nan | -inf");
  EXPECT_EQ(Values(R"({"type":"boolean"})", {"true"}), "bool: true");
  EXPECT_EQ(Values(R"({"type":"string"})", {"\"1\""}), "string: 1");
  EXPECT_EQ(Values(R"({"type":"bytes"})", {"\"3q2+7w==\"", "\"\""}), "binary: 3q2+7w== | ");
  EXPECT_EQ(Values(Named("bytes", "io.debezium.data.Bits"), {"\"Cg==\""}), "binary: Cg==");
  EXPECT_EQ(Values(Named("string", "io.debezium.data.Uuid"), {"\"ab\""}), "string: ab");
  EXPECT_EQ(Values(Named("string", "io.debezium.data.Enum"), {"\"b\""}), "string: b");
}

TEST_F(LogicalReaderTest, DecimalsAreExact) {
  EXPECT_EQ(Values(DecimalSchema(2), {"\"Dzw=\"", "\"/w==\"", "null", "\"AJw=\""}),
            "decimal128(38, 2): 39.00 | -0.01 | null | 1.56");
  EXPECT_EQ(Values(DecimalSchema(4), {"\"BAg=\""}), "decimal128(38, 4): 0.1032");
  EXPECT_EQ(Values(DecimalSchema(3, R"(,"connect.decimal.precision":"12")"), {"\"HL6ZGoM=\""}),
            "decimal128(12, 3): 123456789.123");
  // 10^100 has no DECIMAL.
  EXPECT_EQ(Values(DecimalSchema(0), {"\"AQ==\"",
                                      "\"EklUrSWUw3zrCydBxM5AAAAAAAAAAAAAAAAAAAAAAAAA"
                                      "AAAAAAAAAAAA\""})
                .substr(0, 10),
            "string: 1 ");
  EXPECT_EQ(Values(Named("struct", "io.debezium.data.VariableScaleDecimal"),
                   {R"({"scale":22,"value":"7t3vC4IWfus="})", R"({"scale":2,"value":"AJw="})"}),
            "decimal128(38, 22): -0.0001234567890123456789 | 1.5600000000000000000000");
}

TEST_F(LogicalReaderTest, DecimalsOfOtherSizesWiden) {
  auto columns = JsonColumns::Make({});
  ASSERT_TRUE(columns.ok());
  Add(**columns, DecimalSchema(2, R"(,"connect.decimal.precision":"5")"), {"\"Dzw=\""});
  Add(**columns, DecimalSchema(4, R"(,"connect.decimal.precision":"9")"), {"\"BAg=\""});
  Add(**columns, R"({"type":"int32"})", {"7"});
  EXPECT_EQ(Show(**columns), "decimal128(38, 4): 39.0000 | 0.1032 | 7.0000");
}

TEST_F(LogicalReaderTest, DatesAndTimes) {
  EXPECT_EQ(Values(Named("int32", "io.debezium.time.Date"), {"151", "20512", "-719162"}),
            "date32[day]: 1970-06-01 | 2026-02-28 | 0001-01-01");
  EXPECT_EQ(Values(Named("int32", "org.apache.kafka.connect.data.Time"), {"45296789"}),
            "time64[us]: 12:34:56.789000");
  EXPECT_EQ(Values(Named("int64", "io.debezium.time.MicroTime"), {"1"}),
            "time64[us]: 00:00:00.000001");
  EXPECT_EQ(Values(Named("int64", "io.debezium.time.NanoTime"), {"1000", "1001"}),
            "string: 00:00:00.000001 | 00:00:00.000001001");
  EXPECT_EQ(Values(Named("int64", "io.debezium.time.MicroTime"), {"0", "-3020399000000"}),
            "string: 00:00:00 | -838:59:59");
  EXPECT_EQ(Values(Named("string", "io.debezium.time.ZonedTime"), {"\"10:34:56.1Z\""}),
            "string: 10:34:56.1Z");
}

TEST_F(LogicalReaderTest, Timestamps) {
  EXPECT_EQ(Values(Named("int64", "io.debezium.time.Timestamp"), {"1767323045678", "-1"}),
            "timestamp[us]: 2026-01-02 03:04:05.678000 | 1969-12-31 23:59:59.999000");
  EXPECT_EQ(Values(Named("int64", "org.apache.kafka.connect.data.Timestamp"), {"0"}),
            "timestamp[us, tz=UTC]: 1970-01-01 00:00:00.000000Z");
  EXPECT_EQ(Values(Named("int64", "io.debezium.time.MicroTimestamp"), {"1767323045678901"}),
            "timestamp[us]: 2026-01-02 03:04:05.678901");
  EXPECT_EQ(Values(Named("int64", "io.debezium.time.NanoTimestamp"), {"-1000"}),
            "timestamp[us]: 1969-12-31 23:59:59.999999");
  // What microseconds cannot hold becomes text, not another time.
  EXPECT_EQ(Values(Named("int64", "io.debezium.time.NanoTimestamp"), {"1500", "0"}),
            "string: 1970-01-01T00:00:00.0000015 | 1970-01-01T00:00:00")
      << "trailing zeros of the fraction may be dropped";
  EXPECT_EQ(Values(Named("string", "io.debezium.time.ZonedTimestamp"),
                   {"\"2026-01-02T01:04:05.678901Z\"", "\"2026-01-02T03:04:05+02:00\""}),
            "timestamp[us, tz=UTC]: 2026-01-02 01:04:05.678901Z | 2026-01-02 01:04:05.000000Z");
  EXPECT_EQ(Values(Named("string", "io.debezium.time.IsoDate"), {"\"2026-02-28Z\""}),
            "date32[day]: 2026-02-28");
  EXPECT_EQ(Values(Named("string", "io.debezium.time.IsoTimestamp"), {"\"2026-01-02T03:04:05Z\""}),
            "timestamp[us]: 2026-01-02 03:04:05.000000");
}

TEST_F(LogicalReaderTest, InfiniteAndFarTimesBecomeNullAndAreCounted) {
  EXPECT_EQ(Values(Named("int32", "io.debezium.time.Date"), {"-2147472692", "-2147472691", "0"}),
            "date32[day]: null | null | 1970-01-01");
  EXPECT_EQ(nulled_, 2U);
  EXPECT_EQ(Values(Named("int64", "io.debezium.time.MicroTimestamp"),
                   {"9223372036825200000", "-9223372036832400000", "0"}),
            "timestamp[us]: null | null | 1970-01-01 00:00:00.000000");
  EXPECT_EQ(nulled_, 2U);
  EXPECT_EQ(Values(Named("int64", "org.apache.kafka.connect.data.Timestamp"),
                   {"9223372036825200", "9223372036854776", "0"}),
            "timestamp[us, tz=UTC]: null | null | 1970-01-01 00:00:00.000000Z");
  EXPECT_EQ(nulled_, 2U);
  EXPECT_EQ(Values(Named("string", "io.debezium.time.ZonedTimestamp"),
                   {"\"-infinity\"", "\"1970-01-01T00:00:00Z\""}),
            "timestamp[us, tz=UTC]: null | 1970-01-01 00:00:00.000000Z");
  EXPECT_EQ(nulled_, 1U);
}

TEST_F(LogicalReaderTest, NestedTypes) {
  EXPECT_EQ(Values(R"({"type":"array","items":{"type":"int32"}})", {"[1,2,null]", "null", "[]"}),
            "list<element: int32>: list<element: int32>[1, 2, null] | null | "
            "list<element: int32>[]");
  EXPECT_EQ(Values(R"({"type":"map","keys":{"type":"string"},"values":{"type":"int64"}})",
                   {R"({"a":1,"b":null,"a":2})"}),
            "map<string, int64>: map<string, int64>[{key:string = a, value:int64 = 2}, "
            "{key:string = b, value:int64 = null}]");
  EXPECT_EQ(Values(R"({"type":"struct","name":"io.debezium.data.geometry.Point","fields":[)"
                   R"({"type":"double","field":"x"},{"type":"bytes","field":"wkb"}]})",
                   {R"({"x":1.5,"wkb":"AQE="})"})
                .substr(0, 38),
            "struct<x: double, wkb: binary>: {x:dou");
}

TEST_F(LogicalReaderTest, ValuesOfAnotherFormAreReadAsTheyAre) {
  EXPECT_EQ(Values(R"({"type":"int32"})", {"1", "\"x\""}), "string: 1 | x");
  EXPECT_EQ(Values(R"({"type":"int32"})", {"1", "3000000000"}), "int64: 1 | 3000000000");
  EXPECT_EQ(Values(DecimalSchema(2), {"12.5"}), "double: 12.5");
  EXPECT_EQ(Values(Named("int32", "io.debezium.time.Date"), {"0", "\"2026-01-01\""}),
            "string: 1970-01-01 | 2026-01-01");
  EXPECT_EQ(Values(R"({"type":"bytes"})", {"\"AAE=\"", "\"no base64!\""}),
            "string: AAE= | no base64!");
  EXPECT_EQ(Values(R"({"type":"array","items":{"type":"int32"}})", {"[1]", "[{\"a\":1}]", "7"}),
            "string: [1] | [{\"a\":1}] | 7");
  EXPECT_EQ(Values(R"({"type":"struct","fields":[{"type":"int32","field":"a"}]})",
                   {R"({"a":{"b":1}})", R"({"a":1})"}),
            "string: {\"a\":{\"b\":1}} | {\"a\":1}")
      << "the struct of the schema cannot hold it: its whole text is kept";
}

TEST_F(LogicalReaderTest, TypesWidenWithTheSchemaOfTheSource) {
  auto columns = JsonColumns::Make({});
  ASSERT_TRUE(columns.ok());
  Add(**columns, R"({"type":"int32"})", {"1"});
  Add(**columns, R"({"type":"int64"})", {"5000000000"});
  EXPECT_EQ(Show(**columns), "int64: 1 | 5000000000");
  Add(**columns, R"({"type":"double"})", {"0.5"});
  EXPECT_EQ(Show(**columns), "double: 0.5");
}

TEST(LogicalSchemaTest, ReadsTypesAndParameters) {
  JsonTape tape;
  ASSERT_TRUE(
      tape.Parse(R"({"type":"struct","fields":[{"type":"bytes","name":)"
                 R"("org.apache.kafka.connect.data.Decimal","parameters":{"scale":"3",)"
                 R"("connect.decimal.precision":"12"},"field":"n"},{"type":"array","field":"l"},)"
                 R"({"type":"int64","name":"org.apache.kafka.connect.data.Timestamp","field":"t"},)"
                 R"({"type":"string","name":"com.example.Unknown","field":"u"},7]})")
          .ok());
  const auto schema = ParseConnectSchema(tape.root());
  ASSERT_NE(schema, nullptr);
  EXPECT_NE(schema->id, 0U);
  EXPECT_THAT(
      schema->fields,
      testing::ElementsAre(
          LogicalField{.name = "n", .type = LogicalType::kDecimal, .precision = 12, .scale = 3},
          LogicalField{.name = "l", .type = LogicalType::kInferred},
          LogicalField{.name = "t", .type = LogicalType::kTimestampMillis, .instant = true},
          LogicalField{.name = "u", .type = LogicalType::kString}));
  for (const char* bad : {"null", "1", "{}", R"({"type":"string"})"}) {
    ASSERT_TRUE(tape.Parse(bad).ok());
    EXPECT_EQ(ParseConnectSchema(tape.root()), nullptr) << bad;
  }
}

}  // namespace
}  // namespace tarn::format
