#include "tarn/format/json_columns.h"

#include <random>

#include <arrow/api.h>
#include <nlohmann/json.hpp>

#include "tarn/format/base64.h"
#include "test/support/matchers.h"

namespace tarn::format {
namespace {

using testing::ElementsAre;

class JsonColumnsTest : public testing::Test {
 protected:
  void Start(JsonColumnsOptions options = {}, ColumnSet set = {}) {
    ASSERT_OK_AND_ASSIGN(columns_, JsonColumns::Make(std::move(options), std::move(set)));
  }

  RecordFailure Add(std::string_view json, JsonRowOptions row = {}) {
    if (columns_ == nullptr) {
      Start();
    }
    const RecordFailure parsed = tape_.Parse(json);
    EXPECT_TRUE(parsed.ok()) << json << ": " << parsed.text;
    return columns_->Append(tape_.root(), row);
  }

  // Appends rows {"v": value} and gives "type: v1 | v2 | …".
  std::string Values(const std::vector<std::string>& values, JsonColumnsOptions options = {}) {
    Start(std::move(options));
    for (const std::string& value : values) {
      EXPECT_EQ(Add("{\"v\":" + value + "}"), RecordFailure{}) << value;
    }
    return Column("v");
  }

  // Finishes the batch and shows a column.
  std::string Column(const std::string& name) {
    Finish();
    return Show(name);
  }

  void Finish() {
    auto finished = columns_->Finish();
    ASSERT_TRUE(finished.ok()) << finished.status().ToString();
    batch_ = *finished;
    const arrow::Status valid = batch_.batch->ValidateFull();
    ASSERT_TRUE(valid.ok()) << valid.ToString();
  }

  std::string Show(const std::string& name) {
    const auto array = batch_.batch->GetColumnByName(name);
    if (array == nullptr) {
      return "none";
    }
    std::string text = array->type()->ToString() + ":";
    for (int64_t i = 0; i < array->length(); ++i) {
      const auto scalar = *array->GetScalar(i);
      text += (i == 0 ? " " : " | ") +
              (scalar->is_valid
                   ? arrow::is_binary(array->type_id())
                         ? EncodeBase64(static_cast<const arrow::BaseBinaryScalar&>(*scalar).view())
                         : scalar->ToString()
                   : "null");
    }
    return text;
  }

  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& field : batch_.batch->schema()->fields()) {
      names.push_back(field->name());
    }
    return names;
  }

  JsonTape tape_;
  std::unique_ptr<JsonColumns> columns_;
  JsonBatch batch_;
};

TEST_F(JsonColumnsTest, InfersScalars) {
  ASSERT_TRUE(Add(R"({"b":true,"i":1,"d":1.5,"s":"x"})").ok());
  ASSERT_TRUE(Add(R"({"s":"\u00e9","d":-0.25,"i":-9223372036854775808})").ok());
  ASSERT_TRUE(Add(R"({"b":null,"i":null})").ok());
  Finish();
  EXPECT_EQ(Show("b"), "bool: true | null | null");
  EXPECT_EQ(Show("i"), "int64: 1 | -9223372036854775808 | null");
  EXPECT_EQ(Show("d"), "double: 1.5 | -0.25 | null");
  EXPECT_EQ(Show("s"), "string: x | é | null");
  EXPECT_THAT(Names(), ElementsAre("b", "i", "d", "s"));
  EXPECT_EQ(batch_.absent, nullptr);
}

TEST_F(JsonColumnsTest, NumbersStayExact) {
  EXPECT_EQ(Values({"1", "9223372036854775807"}), "int64: 1 | 9223372036854775807");
  EXPECT_EQ(Values({"1", "9223372036854775808"}), "decimal128(38, 0): 1 | 9223372036854775808");
  EXPECT_EQ(Values({"18446744073709551616", "-1"}), "decimal128(38, 0): 18446744073709551616 | -1");
  EXPECT_EQ(Values({"1", "123456789012345678901234567890123456789"}),
            "string: 1 | 123456789012345678901234567890123456789");
  EXPECT_EQ(Values({"1", "2.5"}), "double: 1 | 2.5");
  EXPECT_EQ(Values({"2.5", "1"}), "double: 2.5 | 1");
  EXPECT_EQ(Values({"9007199254740992", "0.5"}), "double: 9.007199254740992e+15 | 0.5");
  EXPECT_EQ(Values({"9007199254740993", "0.5"}), "decimal128(38, 1): 9007199254740993.0 | 0.5");
  EXPECT_EQ(Values({"0.5", "9007199254740993"}), "decimal128(38, 1): 0.5 | 9007199254740993.0");
  EXPECT_EQ(Values({"1.25", "12345678901234567890.5"}),
            "decimal128(38, 2): 1.25 | 12345678901234567890.50");
  EXPECT_EQ(Values({"0.1234567890123456789"}), "decimal128(38, 19): 0.1234567890123456789");
  EXPECT_EQ(Values({"1e2", "1e-3"}), "double: 100 | 0.001");
  EXPECT_EQ(Values({"1e400", "1"}), "string: 1e400 | 1");
  EXPECT_EQ(Values({"1.5", "1e400"}), "string: 1.5 | 1e400");
  EXPECT_EQ(Values({"1e300", "0.12345678901234567891"}), "string: 1e+300 | 0.12345678901234567891");
  EXPECT_EQ(Values({"0.1", "0.30000000000000004", "3.141592653589793"}),
            "double: 0.1 | 0.30000000000000004 | 3.141592653589793");
  EXPECT_EQ(Values({"-0.0", "1"}), "double: -0 | 1");
  EXPECT_EQ(Values({"9223372036854775808", "1.5"}),
            "decimal128(38, 1): 9223372036854775808.0 | 1.5");
  EXPECT_EQ(Values({"1234567890123456789012345.12345"}),
            "decimal128(38, 5): 1234567890123456789012345.12345");
}

TEST_F(JsonColumnsTest, NumbersAsDoublesOnRequest) {
  const JsonColumnsOptions options{.numbers = NumberMode::kDouble};
  EXPECT_EQ(Values({"9007199254740993", "0.5"}, options), "double: 9.007199254740992e+15 | 0.5");
  EXPECT_EQ(Values({"0.1234567890123456789"}, options), "double: 0.12345678901234568");
  EXPECT_EQ(Values({"18446744073709551616"}, options), "double: 1.8446744073709552e+19");
  EXPECT_EQ(Values({"1", "2"}, options), "int64: 1 | 2");
}

TEST_F(JsonColumnsTest, MixedKindsBecomeText) {
  EXPECT_EQ(Values({"1", "\"x\"", "true", "null", "2.5"}), "string: 1 | x | true | null | 2.5");
  EXPECT_EQ(Values({"true", "1"}), "string: true | 1");
  EXPECT_EQ(Values({"1.0", "\"x\""}), "string: 1.0 | x");
  EXPECT_EQ(Values({"1", "{\"a\":1}"}), "string: 1 | {\"a\":1}");
  EXPECT_EQ(Values({"{\"a\": 1.50}", "1", "{\"a\":null}"}),
            "string: {\"a\": 1.50} | 1 | {\"a\":null}");
  EXPECT_EQ(Values({"{\"a\":1}", "null", "[1]"}), "string: {\"a\":1} | null | [1]");
  EXPECT_EQ(Values({"[1]", "\"x\"", "[[2]]"}), "string: [1] | x | [[2]]");
}

TEST_F(JsonColumnsTest, NestedValuesKeepTheirShape) {
  EXPECT_EQ(Values({"{\"x\":1,\"y\":{\"z\":\"t\"}}", "null", "{\"y\":{},\"w\":true}"}),
            "struct<x: int64, y: struct<z: string>, w: bool>: "
            "{x:int64 = 1, y:struct<z: string> = {z:string = t}, w:bool = null} | null | "
            "{x:int64 = null, y:struct<z: string> = {z:string = null}, w:bool = true}");
  EXPECT_EQ(Values({"null", "[]", "[1]", "[null,2]"}),
            "list<element: int64>: null | list<element: int64>[] | list<element: int64>[1] | "
            "list<element: int64>[null, 2]");
  EXPECT_EQ(Values({"[{\"sku\":\"a\"}]", "[{\"qty\":2}]"}),
            "list<element: struct<sku: string, qty: int64>>: "
            "list<element: struct<sku: string, qty: int64>>[{sku:string = a, qty:int64 = "
            "null}] | list<element: struct<sku: string, qty: int64>>[{sku:string = null, "
            "qty:int64 = 2}]");
}

TEST_F(JsonColumnsTest, ConflictsInsideNestedValuesConcernTheInnerFieldOnly) {
  const std::string expected =
      "list<element: string>: list<element: string>[1, x, {\"b\":2}] | "
      "list<element: string>[{\"b\":3}]";
  EXPECT_EQ(Values({"[1,\"x\",{\"b\":2}]", "[{\"b\":3}]"}), expected);
  EXPECT_EQ(Values({"[{\"b\":3}]", "[1,\"x\",{\"b\":2}]"}),
            "list<element: string>: list<element: string>[{\"b\":3}] | "
            "list<element: string>[1, x, {\"b\":2}]");
  EXPECT_EQ(Values({"{\"a\":{\"b\":1},\"c\":7}", "{\"a\":5}", "null", "{\"c\":\"x\"}"}),
            "struct<a: string, c: string>: {a:string = {\"b\":1}, c:string = 7} | "
            "{a:string = 5, c:string = null} | null | {a:string = null, c:string = x}");
  // A stale column that meets a scalar at the top.
  EXPECT_EQ(Values({"{\"a\":{\"b\":1}}", "{\"a\":5}", "\"t\"", "{\"a\":6}"}),
            "string: {\"a\":{\"b\":1}} | {\"a\":5} | t | {\"a\":6}");
}

TEST_F(JsonColumnsTest, EmptyObjectsAndUntypedColumnsAreKept) {
  EXPECT_EQ(Values({"{}", "null"}), "string: {} | null");
  EXPECT_EQ(Values({"{\"a\":{}}"}), "struct<a: string>: {a:string = {}}");
  EXPECT_EQ(Values({"null", "null"}), "string: null | null");
  EXPECT_EQ(batch_.batch->schema()->field(0)->metadata()->Get("tarn.untyped").ValueOr(""), "true");
  EXPECT_EQ(columns_->column_set().columns[0].type.detail, FieldDetail::kUntyped);
  EXPECT_EQ(Values({"[]"}), "list<element: string>: list<element: string>[]");
}

TEST_F(JsonColumnsTest, DeepNestingBecomesText) {
  const JsonColumnsOptions options{.nesting_max = 2};
  EXPECT_EQ(Values({"{\"a\":{\"b\":{\"c\":1}}}"}, options),
            "struct<a: struct<b: string>>: "
            "{a:struct<b: string> = {b:string = {\"c\":1}}}");
}

TEST_F(JsonColumnsTest, ObjectsWithTooManyNamesBecomeText) {
  const JsonColumnsOptions options{.struct_fields_max = 2};
  EXPECT_EQ(Values({"{\"a\":1}", "{\"b\":2}", "{\"c\":3}"}, options),
            "string: {\"a\":1} | {\"b\":2} | {\"c\":3}");
}

TEST_F(JsonColumnsTest, NamesThatDifferInCaseOnlyAreOneColumn) {
  ASSERT_TRUE(Add(R"({"Id":1,"id":2})").ok());
  ASSERT_TRUE(Add(R"({"ID":3})").ok());
  ASSERT_TRUE(Add(R"({"id":4,"s":{"X":1,"x":2}})").ok());
  Finish();
  EXPECT_THAT(Names(), ElementsAre("Id", "s"));
  EXPECT_EQ(Show("Id"), "int64: 2 | 3 | 4");
  EXPECT_EQ(Show("s"), "struct<X: int64>: null | null | {X:int64 = 2}");
  EXPECT_EQ(columns_->counters().repeated_members, 2U);
}

TEST_F(JsonColumnsTest, TheLastOfRepeatedMembersWins) {
  ASSERT_TRUE(Add(R"({"a":1,"b":"x","a":{"q":1},"a":"z","b":null})").ok());
  ASSERT_TRUE(Add(R"({"a":"y"})").ok());
  Finish();
  EXPECT_EQ(Show("a"), "string: z | y");
  EXPECT_EQ(Show("b"), "string: null | null");
  EXPECT_EQ(columns_->counters().repeated_members, 3U);
}

TEST_F(JsonColumnsTest, ReservedNamesAreRenamedInAnyCase) {
  ASSERT_TRUE(Add(R"({"tarn_row":1,"HDR__y":2,"Tarn_Z":3,"tarn:q":4,"tarn":5,"hdr_":6})").ok());
  Finish();
  EXPECT_THAT(Names(), ElementsAre("_tarn_row", "_HDR__y", "_Tarn_Z", "_tarn:q", "tarn", "hdr_"));
  EXPECT_EQ(Show("_HDR__y"), "int64: 2");
  EXPECT_EQ(columns_->counters().renamed_columns, 4U);
}

TEST_F(JsonColumnsTest, HeaderNamesAreRenamed) {
  ASSERT_TRUE(Add(R"({"hdr__x":1,"a":2,"":3})").ok());
  ASSERT_TRUE(Add(R"({"hdr__x":4})").ok());
  Finish();
  EXPECT_THAT(Names(), ElementsAre("_hdr__x", "a", "_"));
  EXPECT_EQ(Show("_hdr__x"), "int64: 1 | 4");
  EXPECT_EQ(columns_->counters().renamed_columns, 1U);
}

TEST_F(JsonColumnsTest, NulCharactersInNamesAreReplaced) {
  const std::string row = R"({"\u0000z":1,"a\u0000\u0000b":2,"tarn_\u0000":3,"hdr_\u0000x":4,)"
                          R"("s":{"\u0000":5,"l":[{"q\u0000":6}]},"\u0001":7})";
  ASSERT_TRUE(Add(row).ok());
  ASSERT_TRUE(Add(R"({"_z":8})").ok());
  ASSERT_TRUE(Add(row).ok());
  Finish();
  EXPECT_THAT(Names(), ElementsAre("_z", "a__b", "_tarn__", "_hdr__x", "s", "\x01"));
  EXPECT_EQ(Show("_z"), "int64: 1 | 8 | 1");
  EXPECT_EQ(batch_.batch->GetColumnByName("s")->type()->ToString(),
            "struct<_: int64, l: list<element: struct<q_: int64>>>");
  EXPECT_EQ(columns_->counters().renamed_columns, 6U);
  // The next life knows them by their new names.
  Start({}, columns_->column_set());
  ASSERT_TRUE(Add(row).ok());
  Finish();
  EXPECT_EQ(Show("_z"), "int64: 1");
  EXPECT_EQ(batch_.batch->num_columns(), 6);
}

TEST_F(JsonColumnsTest, OddNamesAreKept) {
  ASSERT_TRUE(Add(R"({"x:y":1,"1st-col":2,"한국":3,"a.b":4})").ok());
  Finish();
  EXPECT_THAT(Names(), ElementsAre("x:y", "1st-col", "한국", "a.b"));
}

TEST_F(JsonColumnsTest, InfersTimesOnRequest) {
  const JsonColumnsOptions options{.infer_times = true};
  EXPECT_EQ(Values({"\"2026-01-31\"", "null", "\"1969-12-31\""}, options),
            "date32[day]: 2026-01-31 | null | 1969-12-31");
  EXPECT_EQ(Values({"\"2026-01-31T10:00:00.5Z\"", "\"2026-01-31 12:00:00+02:00\""}, options),
            "timestamp[us, tz=UTC]: 2026-01-31 10:00:00.500000Z | 2026-01-31 10:00:00.000000Z");
  EXPECT_EQ(Values({"\"2026-01-31 10:00:00\""}, options),
            "timestamp[us]: 2026-01-31 10:00:00.000000");
  // Against another kind: the texts as they were.
  EXPECT_EQ(Values({"\"2026-01-31 12:00:00+02\"", "\"x\"", "\"2026-01-31\""}, options),
            "string: 2026-01-31 12:00:00+02 | x | 2026-01-31");
  EXPECT_EQ(Values({"\"2026-01-31\"", "5"}, options), "string: 2026-01-31 | 5");
  EXPECT_EQ(Values({"[\"2026-01-31\"]", "[\"no\"]"}, options),
            "list<element: string>: list<element: string>[2026-01-31] | "
            "list<element: string>[no]");
  EXPECT_EQ(Values({"\"2023-02-31\""}, options), "string: 2023-02-31");
  EXPECT_EQ(Values({"\"2026-01-31\""}), "string: 2026-01-31");
}

Field Declared(const std::string& name, const std::string& type) {
  auto parsed = ParseTypeName(type);
  EXPECT_TRUE(parsed.ok()) << parsed.status().ToString();
  return {.name = name, .type = *parsed};
}

struct DeclaredCase {
  std::string type;
  std::string json;
  std::string shown;  // Empty: does not fit.
};

class JsonColumnsDeclaredTest : public JsonColumnsTest,
                                public testing::WithParamInterface<DeclaredCase> {};

TEST_P(JsonColumnsDeclaredTest, FitsOrFailsTheRecord) {
  const DeclaredCase& expected = GetParam();
  Start({.declared = {Declared("v", expected.type)}});
  ASSERT_TRUE(Add("{\"w\":1}").ok());
  const RecordFailure failure = Add("{\"w\":2,\"new\":5,\"v\":" + expected.json + "}");
  ASSERT_TRUE(Add("{\"w\":3}").ok());
  if (expected.shown.empty()) {
    EXPECT_EQ(failure.code, RecordError::kTypeMismatch) << expected.json;
    EXPECT_NE(failure.text.find("column v"), std::string::npos) << failure.text;
    Finish();
    EXPECT_EQ(Show("w"), "int64: 1 | 3");
    EXPECT_EQ(Show("new"), "none");
  } else {
    EXPECT_TRUE(failure.ok()) << failure.text;
    Finish();
    const std::string shown = Show("v");
    EXPECT_EQ(shown.substr(shown.find(": null | ") + 9), expected.shown + " | null");
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, JsonColumnsDeclaredTest,
    testing::Values(
        DeclaredCase{"int", "5", "5"}, DeclaredCase{"int", "5.0", "5"},
        DeclaredCase{"int", "\"7\"", "7"}, DeclaredCase{"int", "5.5", ""},
        DeclaredCase{"int", "3000000000", ""}, DeclaredCase{"int", "\"x\"", ""},
        DeclaredCase{"int", "true", ""}, DeclaredCase{"int", "[1]", ""},
        DeclaredCase{"int", "null", "null"}, DeclaredCase{"long", "1e3", "1000"},
        DeclaredCase{"long", "9223372036854775808", ""}, DeclaredCase{"double", "1", "1"},
        DeclaredCase{"double", "\"NaN\"", "nan"}, DeclaredCase{"double", "1e400", ""},
        DeclaredCase{"double", "\"abc\"", ""}, DeclaredCase{"float", "0.5", "0.5"},
        DeclaredCase{"float", "1e39", ""}, DeclaredCase{"decimal(5,2)", "1.5", "1.50"},
        DeclaredCase{"decimal(5,2)", "\"-999.99\"", "-999.99"},
        DeclaredCase{"decimal(5,2)", "1.230", "1.23"}, DeclaredCase{"decimal(5,2)", "1.234", ""},
        DeclaredCase{"decimal(5,2)", "1000", ""},
        DeclaredCase{"decimal(38,0)", "1e37", "1" + std::string(37, '0')},
        DeclaredCase{"string", "1.50", "1.50"}, DeclaredCase{"string", "{\"a\": 1}", "{\"a\": 1}"},
        DeclaredCase{"string", "\"t\"", "t"}, DeclaredCase{"boolean", "false", "false"},
        DeclaredCase{"boolean", "\"true\"", "true"}, DeclaredCase{"boolean", "1", ""},
        DeclaredCase{"binary", "\"3q2+7w==\"", "3q2+7w=="}, DeclaredCase{"binary", "\"!\"", ""},
        DeclaredCase{"date", "\"2026-02-28\"", "2026-02-28"},
        DeclaredCase{"date", "\"2026-02-29\"", ""}, DeclaredCase{"date", "20512", ""},
        DeclaredCase{"time", "\"12:34:56.789\"", "12:34:56.789000"},
        DeclaredCase{"time", "\"24:00\"", ""},
        DeclaredCase{"timestamp", "\"2026-01-02T03:04:05\"", "2026-01-02 03:04:05.000000"},
        DeclaredCase{"timestamp", "\"2026-01-02T03:04:05Z\"", ""},
        DeclaredCase{"timestamptz", "\"2026-01-02T03:04:05+02:00\"", "2026-01-02 01:04:05.000000Z"},
        DeclaredCase{"timestamptz", "\"2026-01-02T03:04:05\"", ""},
        DeclaredCase{"timestamptz", "\"294277-01-01T00:00:00Z\"", ""},
        DeclaredCase{"uuid", "\"zz\"", ""},
        DeclaredCase{"array<int>", "[1,null]", "list<element: int32>[1, null]"},
        DeclaredCase{"array<int>", "[1,\"x\"]", ""},
        DeclaredCase{"struct<a: int, b: string>", "{\"B\":\"x\",\"c\":1}",
                     "{a:int32 = null, b:string = x}"},
        DeclaredCase{"struct<a: int>", "{\"a\":\"x\"}", ""},
        DeclaredCase{"map<string, long>", "{\"k\":1,\"k\":2}",
                     "map<string, int64>[{key:string = k, value:int64 = 2}]"},
        DeclaredCase{"map<int, string>", "{\"x\":\"y\"}", ""}));

TEST_F(JsonColumnsTest, DeclaredUuidIsStoredAsSixteenBytes) {
  Start({.declared = {Declared("v", "uuid")}});
  ASSERT_TRUE(Add(R"({"v":"00112233-4455-6677-8899-aabbccddeeff"})").ok());
  Finish();
  const auto array = batch_.batch->column(0);
  ASSERT_EQ(array->type()->ToString(), "extension<arrow.uuid>");
  const auto& storage = static_cast<const arrow::FixedSizeBinaryArray&>(
      *static_cast<const arrow::ExtensionArray&>(*array).storage());
  EXPECT_EQ(EncodeBase64(storage.GetView(0)), "ABEiM0RVZneImaq7zN3u/w==");
}

TEST_F(JsonColumnsTest, DeclaredNamesMustDiffer) {
  EXPECT_THAT(JsonColumns::Make({.declared = {Declared("a", "int"), Declared("A", "int")}}),
              Fails(ErrorCode::kInvalidArgument));
}

TEST_F(JsonColumnsTest, NoNulCharacterIsDeclared) {
  EXPECT_THAT(JsonColumns::Make({.declared = {Declared(std::string("a\0b", 3), "int")}}),
              FailsWith(ErrorCode::kInvalidArgument, "column a_b is declared with a NUL"));
}

TEST_F(JsonColumnsTest, DeclaredColumnsAreKnownToTheNextLife) {
  const JsonColumnsOptions options{.declared = {Declared("n", "long"),
                                                Declared("s", "struct<a: int, b: uuid>"),
                                                Declared("m", "map<string, array<time>>")}};
  Start(options);
  for (int life = 0; life < 3; ++life) {
    ASSERT_TRUE(Add(R"({"N":"7","s":{"a":1},"m":{"k":["01:02:03"]},"x":1})").ok());
    Finish();
    EXPECT_THAT(Names(), ElementsAre("n", "s", "m", "x"));
    EXPECT_EQ(Show("n"), "int64: 7");
    ASSERT_OK_AND_ASSIGN(ColumnSet set, DecodeColumnSet(EncodeColumnSet(columns_->column_set())));
    Start(options, set);
    EXPECT_EQ(columns_->column_set(), set);
  }
  EXPECT_EQ(Add(R"({"n":"x"})").code, RecordError::kTypeMismatch);
}

// What a column was declared as, or found to be from the value `was`, and what it is declared as
// then; a text of the error where that cannot be.
TEST_F(JsonColumnsTest, ADeclaredTypeMayWidenWhatIsKnown) {
  struct Case {
    std::string was;
    std::string declared;
    std::string error;
  };
  const auto check = [&](const Case& item, bool was_declared) {
    SCOPED_TRACE(item.was + " to " + item.declared);
    if (was_declared) {
      Start({.declared = {Declared("V", item.was)}});
    } else {
      Start();
      ASSERT_TRUE(Add("{\"V\":" + item.was + "}").ok());
      Finish();
    }
    Result<std::unique_ptr<JsonColumns>> again =
        JsonColumns::Make({.declared = {Declared("v", item.declared)}}, columns_->column_set());
    if (!item.error.empty()) {
      EXPECT_THAT(again, FailsWith(ErrorCode::kInvalidArgument, item.error));
      return;
    }
    ASSERT_OK(again);
    const ColumnState state = (*again)->column_set().columns.at(0);
    EXPECT_EQ(state.name, "V");
    EXPECT_TRUE(state.declared);
    EXPECT_EQ(FieldsOf((*again)->column_set())[0].type, Declared("v", item.declared).type);
  };
  for (const Case& item : std::vector<Case>{
           {"int", "long", ""},
           {"int", "double", ""},
           {"float", "double", ""},
           {"long", "decimal(38,0)", ""},
           {"long", "string", ""},
           {"struct<a: int>", "struct<b: string, A: long>", ""},
           {"array<int>", "array<string>", ""},
           {"long", "int", "column V is declared int, but the rows landed so far have it as long"},
           {"long", "double", "as long"},  // Its integers may be any.
           {"array<long>", "array<double>", "as array<long>"},
           {"string", "date", "declared date, but the rows landed so far have it as string"},
           {"timestamp", "timestamptz", "as timestamp, which"},
           {"struct<a: int, b: int>", "struct<a: int>", "as struct<"}}) {
    check(item, true);
  }
  for (const Case& item :
       std::vector<Case>{{"null", "date", ""},
                         {"{}", "array<int>", "as string"},
                         {"5", "long", ""},
                         {"5", "double", ""},
                         {"[5]", "array<double>", ""},
                         {"9007199254740993", "double", "as long"},
                         {"{\"a\":9007199254740993}", "struct<a: double>", "as struct<"},
                         {"5", "int", "as long"},
                         {"\"x\"", "long", "as string"}}) {
    check(item, false);
  }
}

TEST_F(JsonColumnsTest, TooManyColumnsFailTheRecordOnly) {
  Start({.columns_max = 2});
  ASSERT_TRUE(Add(R"({"a":1})").ok());
  EXPECT_EQ(Add(R"({"a":2,"b":1,"c":1})").code, RecordError::kTooManyColumns);
  ASSERT_TRUE(Add(R"({"a":3,"d":1})").ok());
  Finish();
  EXPECT_THAT(Names(), ElementsAre("a", "d"));
  EXPECT_EQ(Show("a"), "int64: 1 | 3");
}

TEST_F(JsonColumnsTest, OnlyObjectsAreRows) {
  EXPECT_EQ(Add("[1]").code, RecordError::kNotAnObject);
  EXPECT_EQ(columns_->Append(JsonValue()).code, RecordError::kNotAnObject);
  EXPECT_EQ(columns_->row_count(), 0);
}

TEST_F(JsonColumnsTest, RollBackLeavesNoTrace) {
  ASSERT_TRUE(Add(R"({"a":1,"s":{"x":"p"},"l":[1]})").ok());
  ASSERT_TRUE(Add(R"({"a":2,"b":5,"s":{"x":"qq","y":1},"l":[2,3],"a":7})").ok());
  columns_->RollBack();
  EXPECT_EQ(columns_->row_count(), 1);
  EXPECT_EQ(columns_->counters().repeated_members, 0U);
  ASSERT_TRUE(Add(R"({"l":[4],"s":{"x":"r"}})").ok());
  Finish();
  EXPECT_EQ(Show("a"), "int64: 1 | null");
  EXPECT_EQ(Show("b"), "none");
  EXPECT_EQ(Show("l"), "list<element: int64>: list<element: int64>[1] | list<element: int64>[4]");
  EXPECT_EQ(static_cast<const arrow::StructArray&>(*batch_.batch->GetColumnByName("s"))
                .field(0)
                ->ToString(),
            "[\n  \"p\",\n  \"r\"\n]");
}

TEST_F(JsonColumnsTest, TracksAbsentColumns) {
  Start({.track_absent = true});
  ASSERT_TRUE(Add(R"({"a":1,"b":null})").ok());
  ASSERT_TRUE(Add(R"({"b":2})").ok());
  ASSERT_TRUE(Add(R"({"a":1,"b":2,"c":"q\""})").ok());
  Finish();
  ASSERT_NE(batch_.absent, nullptr);
  const auto& absent = static_cast<const arrow::StringArray&>(*batch_.absent);
  EXPECT_EQ(absent.GetView(0), "[\"c\"]");
  EXPECT_EQ(absent.GetView(1), "[\"a\",\"c\"]");
  EXPECT_TRUE(absent.IsNull(2));
}

TEST_F(JsonColumnsTest, UnavailableMembersAreNullAndNamed) {
  const std::vector<std::string_view> unavailable = {"body"};
  ASSERT_TRUE(Add(R"({"id":1,"body":"x"})").ok());
  ASSERT_TRUE(Add(R"({"id":2,"body":"marker"})", {.unavailable = unavailable}).ok());
  Finish();
  EXPECT_EQ(Show("body"), "string: x | null");
  const auto& absent = static_cast<const arrow::StringArray&>(*batch_.absent);
  EXPECT_TRUE(absent.IsNull(0));
  EXPECT_EQ(absent.GetView(1), "[\"body\"]");
  ASSERT_TRUE(Add(R"({"id":3})").ok());
  Finish();
  EXPECT_EQ(batch_.absent, nullptr);
}

TEST_F(JsonColumnsTest, TypesOnlyWidenFromBatchToBatch) {
  ASSERT_TRUE(Add(R"({"a":1,"b":{"c":1},"n":null,"big":9007199254740993,"d":0.25})").ok());
  Finish();
  const std::string text = EncodeColumnSet(columns_->column_set());
  ASSERT_OK_AND_ASSIGN(ColumnSet set, DecodeColumnSet(text));
  EXPECT_EQ(set, columns_->column_set());
  Start({}, set);
  ASSERT_TRUE(Add(R"({"a":2,"b":{"d":2},"n":true,"big":0.5,"d":9007199254740993})").ok());
  Finish();
  EXPECT_EQ(Show("a"), "int64: 2");
  EXPECT_EQ(Show("b"), "struct<c: int64, d: int64>: {c:int64 = null, d:int64 = 2}");
  EXPECT_EQ(Show("n"), "bool: true");
  EXPECT_EQ(Show("big"), "decimal128(38, 1): 0.5");
  EXPECT_EQ(Show("d"), "decimal128(38, 2): 9007199254740993.00");
  // Columns without a row are there all the same.
  Finish();
  EXPECT_EQ(Show("a"), "int64:");
  ASSERT_TRUE(Add(R"({"x":1})").ok());
  Finish();
  EXPECT_THAT(Names(), ElementsAre("a", "b", "n", "big", "d", "x"));
  EXPECT_EQ(Show("a"), "int64: null");
}

TEST_F(JsonColumnsTest, ManyBatchesReuseTheColumns) {
  for (int batch = 0; batch < 3; ++batch) {
    for (int row = 0; row < 1000; ++row) {
      ASSERT_TRUE(Add("{\"i\":" + std::to_string(row) + ",\"s\":\"v" + std::to_string(row) +
                      "\",\"l\":[" + std::to_string(row) + "]}")
                      .ok());
    }
    Finish();
    ASSERT_EQ(batch_.batch->num_rows(), 1000);
    EXPECT_EQ((*batch_.batch->column(0)->GetScalar(999))->ToString(), "999");
    EXPECT_EQ((*batch_.batch->column(1)->GetScalar(999))->ToString(), "v999");
  }
}

// Random rows over few names: every value is in the batch, as text at worst.
TEST_F(JsonColumnsTest, NothingIsLostOnRandomRows) {
  std::mt19937_64 random(4711);
  static const std::vector<std::string> kScalars = {"null",
                                                    "true",
                                                    "1",
                                                    "-7",
                                                    "9007199254740993",
                                                    "18446744073709551616",
                                                    "0.5",
                                                    "1.25e-7",
                                                    "0.1234567890123456789",
                                                    "\"x\"",
                                                    "\"\"",
                                                    "1e999"};
  for (int round = 0; round < 300; ++round) {
    Start();
    std::vector<std::string> values;
    const size_t kinds = 1 + random() % kScalars.size();
    for (int row = 0; row < 20; ++row) {
      std::string value =
          kScalars[(random() % kinds + static_cast<size_t>(round)) % kScalars.size()];
      if (random() % 5 == 0 && round % 3 == 0) {
        value = "[" + value + ",{\"k\":" + kScalars[random() % kScalars.size()] + "}]";
      } else if (random() % 5 == 0 && round % 3 == 1) {
        value = "{\"k\":" + value + ",\"m\":[" + value + "]}";
      }
      values.push_back(value);
      ASSERT_TRUE(Add("{\"v\":" + value + "}").ok());
    }
    Finish();
    const auto array = batch_.batch->column(0);
    ASSERT_EQ(array->length(), 20);
    for (int row = 0; row < 20; ++row) {
      const std::string& value = values[static_cast<size_t>(row)];
      ASSERT_EQ(array->IsNull(row), value == "null") << value << " in " << array->ToString();
      if (array->type_id() == arrow::Type::STRING && value[0] != '"' && value != "null") {
        const auto text = (*array->GetScalar(row))->ToString();
        if (value[0] == '[' || value[0] == '{') {
          EXPECT_EQ(text, value);
        } else if (text != value) {
          EXPECT_EQ(nlohmann::json::parse(text, nullptr, false),
                    nlohmann::json::parse(value, nullptr, false))
              << text << " " << value;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tarn::format
