#include "tarn/engine/engine.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <arrow/extension/uuid.h>
#include <arrow/json/from_string.h>
#include <gtest/gtest.h>

#include "tarn/base/arrow_status.h"
#include "tarn/engine/quoting.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::engine {
namespace {

using arrow::json::ArrayFromJSONString;
using ArrayPointer = std::shared_ptr<arrow::Array>;
using BatchPointer = std::shared_ptr<arrow::RecordBatch>;

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() { Open({}); }

  void Open(EngineOptions options) {
    session_.reset();
    auto engine = Engine::Open(std::move(options));
    ASSERT_TRUE(engine.ok()) << engine.status().ToString();
    engine_ = std::move(engine).value();
    auto session = engine_->OpenSession();
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    session_ = std::move(session).value();
  }

  Result<std::shared_ptr<arrow::Table>> Rows(std::string_view sql, QueryOptions options = {}) {
    TARN_ASSIGN_OR_RETURN(const auto stream, session_->Query(sql, std::move(options)));
    return ReadAll(*stream);
  }

  /// The single value of a query as Arrow prints it.
  std::string Value(std::string_view sql, QueryOptions options = {}) {
    const auto table = Rows(sql, std::move(options));
    if (!table.ok()) {
      return table.status().ToString();
    }
    const auto scalar = (*table)->column(0)->GetScalar(0);
    return scalar.ok() ? (*scalar)->ToString() : scalar.status().ToString();
  }

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;
};

ArrayPointer Json(const std::shared_ptr<arrow::DataType>& type, std::string_view text) {
  const auto array = ArrayFromJSONString(type, text);
  EXPECT_TRUE(array.ok()) << array.status().ToString();
  return *array;
}

struct TypeCase {
  std::string name;
  ArrayPointer input;
  std::shared_ptr<arrow::DataType> output_type;  // Null = as the input.
  // Set where the values as the result's type are not the input's by a plain cast.
  ArrayPointer output;
};

ArrayPointer Uuids() {
  const auto bytes =
      Json(arrow::fixed_size_binary(16), R"(["0123456789abcdef", null, "fedcba9876543210"])");
  return arrow::ExtensionType::WrapArray(arrow::extension::uuid(), bytes);
}

std::vector<TypeCase> PlainCases() {
  return {
      {"bool", Json(arrow::boolean(), "[true, null, false]"), {}, {}},
      {"int8", Json(arrow::int8(), "[-128, null, 127]"), {}, {}},
      {"int16", Json(arrow::int16(), "[-32768, null, 32767]"), {}, {}},
      {"int32", Json(arrow::int32(), "[-2147483648, null, 2147483647]"), {}, {}},
      {"int64", Json(arrow::int64(), "[-9223372036854775808, null, 9223372036854775807]"), {}, {}},
      {"uint8", Json(arrow::uint8(), "[0, null, 255]"), {}, {}},
      {"uint16", Json(arrow::uint16(), "[0, null, 65535]"), {}, {}},
      {"uint32", Json(arrow::uint32(), "[0, null, 4294967295]"), {}, {}},
      {"uint64", Json(arrow::uint64(), "[0, null, 18446744073709551615]"), {}, {}},
      {"float", Json(arrow::float32(), "[1.5, null, -0.25]"), {}, {}},
      {"double", Json(arrow::float64(), "[1e300, null, -0.1]"), {}, {}},
      {"decimal4", Json(arrow::decimal128(4, 2), R"(["12.34", null, "-99.99"])"), {}, {}},
      {"decimal9", Json(arrow::decimal128(9, 0), R"(["123456789", null, "-1"])"), {}, {}},
      {"decimal18",
       Json(arrow::decimal128(18, 6), R"(["123456789012.345678", null, "-1.000000"])"),
       {},
       {}},
      {"decimal38",
       Json(arrow::decimal128(38, 10),
            R"(["1234567890123456789012345678.1234567890", null, "-0.0000000001"])"),
       {},
       {}},
      {"utf8",
       Json(arrow::utf8(), R"(["", null, "grüße, a string longer than twelve bytes"])"),
       {},
       {}},
      {"large_utf8", Json(arrow::large_utf8(), R"(["", null, "x"])"), arrow::utf8(), {}},
      {"binary", Json(arrow::binary(), "[\"a\\u0000b\", null, \"\"]"), {}, {}},
      {"large_binary",
       Json(arrow::large_binary(), "[\"a\\u0000b\", null, \"\"]"),
       arrow::binary(),
       {}},
      {"fixed", Json(arrow::fixed_size_binary(3), R"(["abc", null, "def"])"), arrow::binary(), {}},
  };
}

std::vector<TypeCase> TimeCases() {
  using arrow::TimeUnit;
  const auto us = arrow::timestamp(TimeUnit::MICRO);
  const auto utc = arrow::timestamp(TimeUnit::MICRO, "UTC");
  return {
      {"date", Json(arrow::date32(), "[-1, null, 20000]"), {}, {}},
      {"date64", Json(arrow::date64(), "[-86400000, null, 86400000]"), arrow::date32(), {}},
      {"time32s",
       Json(arrow::time32(TimeUnit::SECOND), "[0, null, 86399]"),
       arrow::time64(TimeUnit::MICRO),
       {}},
      {"time32ms",
       Json(arrow::time32(TimeUnit::MILLI), "[0, null, 86399999]"),
       arrow::time64(TimeUnit::MICRO),
       {}},
      {"time64", Json(arrow::time64(TimeUnit::MICRO), "[0, null, 86399999999]"), {}, {}},
      {"timestamp_us", Json(us, "[-1, null, 1700000000123456]"), {}, {}},
      {"timestamp_s", Json(arrow::timestamp(TimeUnit::SECOND), "[-1, null, 1700000000]"), us, {}},
      {"timestamp_ms",
       Json(arrow::timestamp(TimeUnit::MILLI), "[-1, null, 1700000000123]"),
       us,
       {}},
      {"timestamp_ns",
       Json(arrow::timestamp(TimeUnit::NANO), "[-1, null, 1700000000123456789]"),
       {},
       {}},
      {"instant_us", Json(utc, "[-1, null, 1700000000123456]"), {}, {}},
      {"instant_zone",
       Json(arrow::timestamp(TimeUnit::MICRO, "Asia/Tokyo"), "[-1, null, 17]"),
       utc,
       {}},
      {"instant_s",
       Json(arrow::timestamp(TimeUnit::SECOND, "UTC"), "[-1, null, 1700000000]"),
       utc,
       {}},
      {"instant_ms",
       Json(arrow::timestamp(TimeUnit::MILLI, "UTC"), "[-1, null, 1700000000123]"),
       utc,
       {}},
      {"instant_ns",
       Json(arrow::timestamp(TimeUnit::NANO, "UTC"), "[-1000, null, 1700000000123456000]"),
       utc,
       {}},
      {"uuid", Uuids(), {}, {}},
      {"null", Json(arrow::null(), "[null, null, null]"), arrow::int32(), {}},
  };
}

std::vector<TypeCase> NestedCases() {
  const auto list = [](const std::shared_ptr<arrow::DataType>& type) {
    return arrow::list(arrow::field("element", type));
  };
  const auto entry =
      arrow::struct_({arrow::field("a", arrow::int64()), arrow::field("b", list(arrow::utf8()))});
  return {
      {"list", Json(list(arrow::int64()), "[[1, null], null, []]"), {}, {}},
      {"large_list",
       Json(arrow::large_list(arrow::field("item", arrow::utf8())), R"([["a", null], null, []])"),
       list(arrow::utf8()),
       {}},
      {"fixed_list",
       Json(arrow::fixed_size_list(arrow::field("element", arrow::int32()), 2),
            "[[1, 2], null, [3, null]]"),
       {},
       {}},
      {"struct", Json(entry, R"([{"a": 1, "b": ["x"]}, null, {"a": null, "b": null}])"), {}, {}},
      {"list_of_struct",
       Json(list(entry), R"([[{"a": 1, "b": ["x", null]}, null], null, []])"),
       {},
       {}},
      {"map",
       Json(arrow::map(arrow::utf8(), arrow::int64()), R"([[["k", 1], ["l", null]], null, []])"),
       {},
       {}},
      {"map_of_list",
       Json(arrow::map(arrow::int32(), list(arrow::utf8())), R"([[[1, ["x"]]], null, []])"),
       {},
       {}},
  };
}

std::vector<TypeCase> TypeCases() {
  std::vector<TypeCase> cases = PlainCases();
  for (const auto& more : {TimeCases(), NestedCases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  const auto words = Json(arrow::utf8(), R"(["b", null, "a"])");
  cases.push_back({"dictionary", arrow::compute::DictionaryEncode(words)->make_array(), {}, words});
  return cases;
}

TEST_F(EngineTest, EveryTypePassesThroughUnchanged) {
  for (const TypeCase& item : TypeCases()) {
    SCOPED_TRACE(item.name + " " + item.input->type()->ToString());
    // Sliced, so that offsets count.
    const ArrayPointer padded =
        *arrow::Concatenate({item.input->Slice(2, 1), item.input, item.input->Slice(0, 1)});
    const ArrayPointer input = padded->Slice(1, item.input->length());
    const auto schema = arrow::schema({arrow::field("c", input->type())});
    ASSERT_OK(session_->RegisterBatches(
        "t", schema, {arrow::RecordBatch::Make(schema, input->length(), {input})}));
    ASSERT_OK_AND_ASSIGN(const auto table, Rows("SELECT c FROM t"));
    ArrayPointer expected = item.output ? item.output : input;
    if (item.output_type) {
      ASSERT_OK_AND_ASSIGN(expected, arrow::compute::Cast(*input, item.output_type));
    }
    ASSERT_EQ(table->num_rows(), 3);
    ASSERT_OK_AND_ASSIGN(const auto found, arrow::Concatenate(table->column(0)->chunks()));
    ASSERT_OK(found->ValidateFull());
    EXPECT_TRUE(found->type()->Equals(expected->type(), false))
        << found->type()->ToString() << " instead of " << expected->type()->ToString();
    EXPECT_TRUE(found->Equals(expected)) << found->ToString() << expected->ToString();
    ASSERT_OK_AND_ASSIGN(const auto described, session_->Describe("SELECT c FROM t"));
    EXPECT_TRUE(described->Equals(*table->schema())) << described->ToString();
  }
}

TEST_F(EngineTest, UuidReadsAsUuid) {
  const auto input = Uuids();
  const auto schema = arrow::schema({arrow::field("c", input->type())});
  ASSERT_OK(session_->RegisterBatches("t", schema, {arrow::RecordBatch::Make(schema, 3, {input})}));
  EXPECT_EQ(Value("SELECT c::VARCHAR FROM t"), "30313233-3435-3637-3839-616263646566");
  EXPECT_EQ(Value("SELECT typeof(c) FROM t"), "UUID");
}

TEST_F(EngineTest, ResultTypesAreOurs) {
  struct Case {
    std::string sql;
    std::string type;
    std::string value;
  };
  const std::vector<Case> cases = {
      {"SELECT 1::HUGEINT", "decimal128(38, 0)", "1"},
      {"SELECT '-99999999999999999999999999999999999999'::HUGEINT", "decimal128(38, 0)",
       "-99999999999999999999999999999999999999"},
      {"SELECT sum(i) FROM range(10) t(i)", "decimal128(38, 0)", "45"},
      {"SELECT 'b'::ENUM('a', 'b')", "string", "b"},
      {"SELECT '{\"a\": 1}'::JSON", "string", "{\"a\": 1}"},
      {"SELECT INTERVAL '1 year 2 months 3 days 04:05:06.5'", "string",
       "1 year 2 months 3 days 04:05:06.5"},
      {"SELECT INTERVAL '-14 months'", "string", "-1 year -2 months"},
      {"SELECT INTERVAL '0 days'", "string", "00:00:00"},
      {"SELECT TIMESTAMP_S '2026-01-31 00:00:01'", "timestamp[us]", "2026-01-31 00:00:01.000000"},
      {"SELECT TIMESTAMP_MS '2026-01-31 00:00:00.001'", "timestamp[us]",
       "2026-01-31 00:00:00.001000"},
      {"SELECT TIMESTAMPTZ '2026-01-31 00:00:00+02'", "timestamp[us, tz=UTC]",
       "2026-01-30 22:00:00.000000Z"},
      {"SELECT NULL", "int32", "null"},
      {"SELECT TIME '01:02:03.5'", "time64[us]", "01:02:03.500000"},
  };
  for (const Case& item : cases) {
    SCOPED_TRACE(item.sql);
    ASSERT_OK_AND_ASSIGN(const auto table, Rows(item.sql));
    EXPECT_EQ(table->schema()->field(0)->type()->ToString(), item.type);
    EXPECT_EQ((*table->column(0)->GetScalar(0))->ToString(), item.value);
  }
}

TEST_F(EngineTest, NestedResultTypesAreOurs) {
  ASSERT_OK_AND_ASSIGN(
      const auto table,
      Rows("SELECT {'u': ['00000000-0000-0000-0000-00000000000a'::UUID, NULL], 'h': 5::HUGEINT, "
           "'m': MAP {'k': 'x'::ENUM('x')}} AS s FROM range(3)"));
  ASSERT_OK(table->ValidateFull());
  EXPECT_EQ(table->schema()->field(0)->type()->ToString(),
            "struct<u: list<element: extension<arrow.uuid>>, h: decimal128(38, 0), m: "
            "map<string, string>>");
  EXPECT_EQ(table->num_rows(), 3);
}

TEST_F(EngineTest, TypesWithoutCounterpartAreRefusedByName) {
  for (const char* sql :
       {"SELECT 1::UHUGEINT AS c", "SELECT '00:00:00+01'::TIMETZ AS c", "SELECT [1::UHUGEINT] AS c",
        "SELECT '101'::BIT AS c", "SELECT union_value(k := 1) AS c"}) {
    SCOPED_TRACE(sql);
    EXPECT_THAT(Rows(sql), FailsWith(ErrorCode::kInvalidArgument, "column \"c\""));
  }
  EXPECT_THAT(Rows("SELECT 170141183460469231731687303715884105727::HUGEINT AS c"),
              FailsWith(ErrorCode::kInvalidArgument, "more than 38 digits"));
}

/// `count` rows (id, name, number), in batches of `batch_rows`.
std::vector<BatchPointer> ManyBatches(int64_t count, int64_t batch_rows) {
  arrow::Int64Builder ids;
  arrow::StringBuilder names;
  arrow::DoubleBuilder numbers;
  for (int64_t i = 0; i < count; ++i) {
    EXPECT_TRUE(ids.Append(i).ok());
    EXPECT_TRUE(names.Append("name that is longer than twelve bytes " + std::to_string(i)).ok());
    EXPECT_TRUE(numbers.Append(static_cast<double>(i) / 2).ok());
  }
  const auto schema =
      arrow::schema({arrow::field("id", arrow::int64()), arrow::field("name", arrow::utf8()),
                     arrow::field("number", arrow::float64())});
  const auto batch =
      arrow::RecordBatch::Make(schema, count, {*ids.Finish(), *names.Finish(), *numbers.Finish()});
  std::vector<BatchPointer> batches;
  for (int64_t offset = 0; offset < count; offset += batch_rows) {
    batches.push_back(batch->Slice(offset, batch_rows));
  }
  return batches;
}

TEST_F(EngineTest, SubsetsOfColumnsAreReadRight) {
  const auto batches = ManyBatches(20'000, 3'000);
  ASSERT_OK(session_->RegisterBatches("t", batches[0]->schema(), batches));
  EXPECT_EQ(Value("SELECT count(*) FROM t"), "20000");
  EXPECT_EQ(Value("SELECT max(name) FROM t WHERE id < 10"),
            "name that is longer than twelve bytes 9");
  EXPECT_EQ(Value("SELECT count(DISTINCT hash(name)) FROM t"), "20000");
  EXPECT_EQ(Value("SELECT sum(number) FROM t"), "99995000");
  EXPECT_EQ(Value("SELECT name FROM (SELECT number, name FROM t) WHERE number = 1.5"),
            "name that is longer than twelve bytes 3");
  EXPECT_EQ(Value("SELECT count(*) FROM t a JOIN t b USING (name)"), "20000");
}

TEST_F(EngineTest, PreservedOrderIsTheInputsOrder) {
  Open({.threads = 4});
  const auto batches = ManyBatches(300'000, 7'001);
  ASSERT_OK(session_->RegisterBatches("t", batches[0]->schema(), batches));
  ASSERT_OK_AND_ASSIGN(const auto table, Rows("SELECT id FROM t WHERE id % 3 <> 1"));
  int64_t expected = 0;
  for (const auto& chunk : table->column(0)->chunks()) {
    const auto& ids = static_cast<const arrow::Int64Array&>(*chunk);
    for (int64_t i = 0; i < ids.length(); ++i) {
      expected += expected % 3 == 1 ? 1 : 0;
      ASSERT_EQ(ids.Value(i), expected++);
    }
  }
}

TEST_F(EngineTest, AnyOrderHasEveryRowOnce) {
  Open({.threads = 4, .row_order = RowOrder::kAny});
  const auto batches = ManyBatches(300'000, 7'001);
  ASSERT_OK(session_->RegisterBatches("t", batches[0]->schema(), batches));
  ASSERT_OK(session_->Execute("CREATE TEMP TABLE c AS SELECT id, name FROM t"));
  EXPECT_EQ(Value("SELECT sum(id) FROM c"), "44999850000");
  EXPECT_EQ(Value("SELECT count(DISTINCT name) FROM c"), "300000");
}

TEST_F(EngineTest, ASourceIsScannedAgainAndByTwoThreadsAtOnce) {
  Open({.threads = 2});
  const auto batches = ManyBatches(500'000, 10'000);
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK(session_->RegisterBatches("t", batches[0]->schema(), batches));
    EXPECT_EQ(Value("SELECT count(*) FROM t a, (SELECT max(id) m FROM t) b WHERE a.id <= b.m"),
              "500000");
  }
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      auto session = engine_->OpenSession();
      if (!session.ok() || !(*session)->RegisterBatches("t", batches[0]->schema(), batches).ok()) {
        return;
      }
      for (int round = 0; round < 5; ++round) {
        auto stream = (*session)->Query("SELECT sum(length(name)) FROM t");
        const auto table = stream.ok() ? ReadAll(**stream) : stream.status();
        right += table.ok() && (*(*table)->column(0)->GetScalar(0))->ToString() == "21888890";
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(right, 10);
}

TEST_F(EngineTest, BatchesAreJoinedToTheAskedSize) {
  const auto batches = ManyBatches(100'000, 1'000);
  ASSERT_OK(session_->RegisterBatches("t", batches[0]->schema(), batches));
  ASSERT_OK_AND_ASSIGN(const auto stream,
                       session_->Query("SELECT * FROM t", {.batch_rows = 30'000}));
  std::vector<int64_t> sizes;
  while (true) {
    ASSERT_OK_AND_ASSIGN(const auto batch, stream->Next());
    if (batch == nullptr) {
      break;
    }
    sizes.push_back(batch->num_rows());
  }
  ASSERT_GE(sizes.size(), 3U);
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    EXPECT_GE(sizes[i], 30'000);
  }
}

TEST_F(EngineTest, EmptyResultHasASchemaAndNoBatch) {
  ASSERT_OK_AND_ASSIGN(const auto stream, session_->Query("SELECT 1 AS a WHERE false"));
  EXPECT_EQ(stream->schema()->ToString(), "a: int32");
  EXPECT_THAT(stream->Next(), IsOkAndHolds(BatchPointer()));
  EXPECT_THAT(stream->Next(), IsOkAndHolds(BatchPointer()));
  const auto schema = arrow::schema({arrow::field("x", arrow::utf8())});
  ASSERT_OK(session_->RegisterBatches("empty", schema, {}));
  EXPECT_EQ(Value("SELECT count(*) FROM empty"), "0");
}

TEST_F(EngineTest, ParametersAreBound) {
  EXPECT_EQ(Value("SELECT $1 || $2", {.parameters = {std::string("a'b"), std::string("\"c")}}),
            "a'b\"c");
  EXPECT_EQ(Value("SELECT $1::BIGINT + 1", {.parameters = {int64_t{41}}}), "42");
  EXPECT_EQ(Value("SELECT $1 IS NULL", {.parameters = {std::monostate{}}}), "true");
  EXPECT_EQ(
      Value("SELECT len($1::VARCHAR[])", {.parameters = {std::vector<std::string>{"a", "b"}}}),
      "2");
  EXPECT_EQ(Value("SELECT list_sum($1::BIGINT[])", {.parameters = {std::vector<int64_t>{40, 2}}}),
            "42");
  EXPECT_EQ(Value("SELECT len($1::VARCHAR[])", {.parameters = {std::vector<std::string>{}}}), "0");
  EXPECT_THAT(Rows("SELECT $1", {}), FailsWith(ErrorCode::kInvalidArgument, "1 parameters"));
  ASSERT_OK(session_->Execute("CREATE TEMP TABLE p (a DOUBLE, b BOOLEAN)"));
  ASSERT_OK(session_->Execute("INSERT INTO p VALUES ($1, $2)", {1.5, true}));
  EXPECT_EQ(Value("SELECT a FROM p WHERE b"), "1.5");
}

TEST_F(EngineTest, ExecuteRunsStatementsInOrder) {
  ASSERT_OK(session_->Execute("CREATE TEMP TABLE a (x INT); INSERT INTO a VALUES (1), (2);"));
  EXPECT_EQ(Value("SELECT count(*) FROM a"), "2");
  EXPECT_THAT(session_->Execute("INSERT INTO a VALUES (3); SELECT nonsense FROM a"),
              Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(session_->Execute("SELECT $1; SELECT 2", {int64_t{1}}),
              Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(session_->Execute(""), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(session_->Query("SELECT 1; SELECT 2"), Fails(ErrorCode::kInvalidArgument));
}

TEST_F(EngineTest, ErrorsSayWhatTheCallerShouldDo) {
  EXPECT_THAT(Rows("SELEC 1"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(Rows("SELECT nope"), FailsWith(ErrorCode::kInvalidArgument, "nope"));
  EXPECT_THAT(Rows("SELECT * FROM nope"), FailsWith(ErrorCode::kInvalidArgument, "nope"));
  EXPECT_THAT(Rows("SELECT nope()"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(Rows("SELECT CAST('x' AS INT)"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(Rows("SELECT 9223372036854775807 + i FROM range(3) t(i)"),
              Fails(ErrorCode::kInvalidArgument));
  const Status late =
      StatusOf(Rows("SELECT CAST(CASE WHEN i = 190000 THEN 'x' ELSE '1' END AS "
                    "INT) FROM range(200000) t(i)"));
  EXPECT_EQ(late.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(late.message().find("LINE"), std::string::npos) << late.message();
  // The session is usable afterwards.
  EXPECT_EQ(Value("SELECT 1"), "1");
}

TEST_F(EngineTest, OneStreamAtATime) {
  ASSERT_OK_AND_ASSIGN(auto stream, session_->Query("SELECT * FROM range(100000)"));
  EXPECT_THAT(session_->Query("SELECT 1"), Fails(ErrorCode::kFailedPrecondition));
  EXPECT_THAT(session_->Execute("SELECT 1"), Fails(ErrorCode::kFailedPrecondition));
  stream.reset();
  EXPECT_EQ(Value("SELECT 1"), "1");
}

TEST_F(EngineTest, InterruptStopsARunningStatement) {
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    session_->Interrupt();
  });
  const Status status =
      StatusOf(Rows("SELECT count(*) FROM range(100000000000) a(i) WHERE hash(i) = 42"));
  other.join();
  EXPECT_EQ(status.code(), ErrorCode::kCancelled) << status.ToString();
  EXPECT_THAT(Rows("SELECT 1"), Fails(ErrorCode::kCancelled));
  session_->Resume();
  EXPECT_EQ(Value("SELECT 1"), "1");
}

TEST_F(EngineTest, InterruptStopsAStreamBetweenBatches) {
  ASSERT_OK_AND_ASSIGN(const auto stream,
                       session_->Query("SELECT * FROM range(100000000)", {.batch_rows = 2048}));
  ASSERT_OK(stream->Next());
  session_->Interrupt();
  EXPECT_THAT(stream->Next(), Fails(ErrorCode::kCancelled));
}

TEST_F(EngineTest, LargeSortSpillsToDisk) {
  const TemporaryDirectory directory;
  const std::string spill = (directory.path() / "spill").string();
  const std::string sql =
      "SELECT count(*), sum(n) FROM (SELECT row_number() OVER (ORDER BY hash(i)) n, "
      "repeat('x', 40) || i AS s FROM range(1500000) t(i)) WHERE s <> ''";
  Open({.memory_limit_bytes = 64 << 20, .threads = 2, .temp_directory = spill});
  EXPECT_EQ(Value(sql), "1500000");
  Open({.memory_limit_bytes = 64 << 20, .threads = 2});
  EXPECT_THAT(Rows(sql), Fails(ErrorCode::kResourceExhausted));
  Open({.memory_limit_bytes = 64 << 20,
        .threads = 2,
        .temp_directory = spill,
        .temp_bytes_max = 1 << 20});
  EXPECT_THAT(Rows(sql), Fails(ErrorCode::kResourceExhausted));
}

TEST_F(EngineTest, SandboxRefusesEverythingOutside) {
  const TemporaryDirectory directory;
  const std::string root = directory.path().string();
  std::filesystem::create_directory(root + "/in");
  std::ofstream(root + "/secret.csv") << "a\n1\n";
  std::filesystem::create_symlink(root + "/secret.csv", root + "/in/link.csv");
  Open({.allowed_directories = {root + "/in"}});
  const std::vector<std::string> refused = {
      "SELECT * FROM read_csv('/etc/passwd')",
      "SELECT * FROM read_text('" + root + "/secret.csv')",
      "SELECT * FROM read_text('" + root + "/in/../secret.csv')",
      "SELECT * FROM read_text('" + root + "/in/link.csv')",
      "SELECT * FROM '" + root + "/secret.csv'",
      "SELECT * FROM glob('/etc/*')",
      "SELECT * FROM sniff_csv('/etc/passwd')",
      "COPY (SELECT 1) TO '" + root + "/out.csv'",
      "EXPORT DATABASE '" + root + "/dump'",
      "ATTACH '" + root + "/other.db'",
      "INSTALL httpfs",
      "LOAD httpfs",
      "LOAD '" + root + "/in/x.duckdb_extension'",
      "SELECT getenv('HOME')",
      "SET threads = 8",
      "SET memory_limit = '10GB'",
      "SET GLOBAL enable_external_access = true",
      "SET allowed_directories = ['/']",
      "RESET TimeZone",
      "SET TimeZone = 'Asia/Tokyo'",
      "SET lock_configuration = false",
      "PRAGMA enable_external_access = true",
  };
  for (const std::string& sql : refused) {
    SCOPED_TRACE(sql);
    EXPECT_FALSE(session_->Execute(sql).ok());
  }
  EXPECT_THAT(session_->Execute(refused[0]), Fails(ErrorCode::kPermissionDenied));
  EXPECT_FALSE(std::filesystem::exists(root + "/out.csv"));
  ASSERT_OK(session_->Execute("COPY (SELECT 42 AS a) TO '" + root + "/in/x.parquet'"));
  EXPECT_EQ(Value("SELECT a FROM '" + root + "/in/x.parquet'"), "42");
  EXPECT_EQ(Value("SELECT current_setting('TimeZone')"), "UTC");
}

TEST_F(EngineTest, BrokenAndMissingParquetAreTold) {
  const TemporaryDirectory directory;
  const std::string root = directory.path().string();
  Open({.allowed_directories = {root}});
  const std::string good = root + "/good.parquet";
  ASSERT_OK(session_->Execute("COPY (SELECT i, 'text ' || i AS s FROM range(100000) t(i)) TO '" +
                              good + "' (COMPRESSION zstd)"));
  std::ifstream in(good, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const auto read = [&](const std::string& name, std::string_view content) {
    std::ofstream(root + "/" + name, std::ios::binary) << content;
    return StatusOf(Rows("SELECT sum(i), max(s) FROM read_parquet('" + root + "/" + name + "')"));
  };
  EXPECT_THAT(read("short.parquet", bytes.substr(0, bytes.size() / 2)),
              Fails(ErrorCode::kCorruption));
  EXPECT_THAT(read("empty.parquet", ""), Fails(ErrorCode::kCorruption));
  std::string footer = bytes;
  for (size_t i = bytes.size() - 200; i < bytes.size() - 8; ++i) {
    footer[i] = static_cast<char>(0xff);
  }
  EXPECT_THAT(read("footer.parquet", footer), Fails(ErrorCode::kCorruption));
  std::string page = bytes;
  for (size_t i = 4; i < 5000; ++i) {
    page[i] = static_cast<char>(0xa5);
  }
  EXPECT_THAT(read("page.parquet", page), Fails(ErrorCode::kCorruption));
  EXPECT_THAT(Rows("SELECT * FROM read_parquet('" + root + "/none.parquet')"),
              Fails(ErrorCode::kNotFound));
}

class CountingReader : public arrow::RecordBatchReader {
 public:
  CountingReader(std::vector<BatchPointer> batches, size_t fail_at)
      : batches_(std::move(batches)), fail_at_(fail_at) {}
  [[nodiscard]] std::shared_ptr<arrow::Schema> schema() const override {
    return batches_[0]->schema();
  }
  arrow::Status ReadNext(BatchPointer* batch) override {
    if (next_ == fail_at_) {
      return ToArrow(Status::Unavailable("the store went away"));
    }
    *batch = next_ < batches_.size() ? batches_[next_] : nullptr;
    ++next_;
    return arrow::Status::OK();
  }

 private:
  std::vector<BatchPointer> batches_;
  size_t fail_at_;
  size_t next_ = 0;
};

TEST_F(EngineTest, AReaderIsOpenedPerScan) {
  const auto batches = ManyBatches(50'000, 1'000);
  int opened = 0;
  const ReaderFactory factory = [&]() -> Result<std::shared_ptr<arrow::RecordBatchReader>> {
    ++opened;
    return std::make_shared<CountingReader>(batches, SIZE_MAX);
  };
  ASSERT_OK(session_->RegisterReader("t", batches[0]->schema(), factory));
  EXPECT_EQ(opened, 0);
  EXPECT_EQ(Value("SELECT count(DISTINCT name) FROM t"), "50000");
  EXPECT_EQ(Value("SELECT count(*) FROM t a JOIN t b USING (id)"), "50000");
  EXPECT_EQ(opened, 3);
}

TEST_F(EngineTest, AReadersFailureKeepsItsCode) {
  const auto batches = ManyBatches(50'000, 1'000);
  for (const size_t fail_at : {size_t{0}, size_t{1}, size_t{49}, size_t{50}}) {
    ASSERT_OK(session_->RegisterReader("t", batches[0]->schema(), [&] {
      return Result<std::shared_ptr<arrow::RecordBatchReader>>(
          std::make_shared<CountingReader>(batches, fail_at));
    }));
    EXPECT_THAT(Rows("SELECT id, name FROM t"),
                FailsWith(ErrorCode::kUnavailable, "the store went away"));
  }
  ASSERT_OK(session_->RegisterReader("t", batches[0]->schema(), [&] {
    return Result<std::shared_ptr<arrow::RecordBatchReader>>(Status::NotFound("no object k"));
  }));
  EXPECT_THAT(Rows("SELECT id FROM t"), FailsWith(ErrorCode::kNotFound, "no object k"));
  EXPECT_EQ(Value("SELECT 1"), "1");
}

TEST_F(EngineTest, HostileNamesAreOnlyNames) {
  const std::vector<std::string> names = {
      "a\"b", "a'; DROP VIEW x; --", "línea\nnueva", "日本語 列", "select", "a.b", "", " ", "${x}"};
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const auto schema = arrow::schema({arrow::field(name, arrow::int64())});
    const auto batch = arrow::RecordBatch::Make(schema, 1, {Json(arrow::int64(), "[7]")});
    const std::string relation = name.empty() ? "empty" : name;
    const Status made = session_->RegisterBatches(relation, schema, {batch});
    if (name.empty()) {
      continue;  // An empty column name cannot be written in SQL.
    }
    ASSERT_OK(made);
    EXPECT_EQ(Value("SELECT " + QuoteName(name) + " FROM " + QuoteName(relation)), "7");
    ASSERT_OK(session_->Unregister(relation));
    EXPECT_THAT(session_->Unregister(relation), Fails(ErrorCode::kNotFound));
    EXPECT_EQ(Value("SELECT " + QuoteText(name)), name);
  }
}

TEST_F(EngineTest, RegistrationChecksItsInput) {
  const auto schema = arrow::schema({arrow::field("a", arrow::int64())});
  const auto other = arrow::schema({arrow::field("a", arrow::utf8())});
  EXPECT_THAT(
      session_->RegisterBatches(
          "t", schema, {arrow::RecordBatch::Make(other, 1, {Json(arrow::utf8(), "[\"x\"]")})}),
      FailsWith(ErrorCode::kInvalidArgument, "relation \"t\""));
  EXPECT_THAT(session_->RegisterBatches("t",
                                        arrow::schema({arrow::field("a", arrow::int64()),
                                                       arrow::field("A", arrow::int64())}),
                                        {}),
              FailsWith(ErrorCode::kInvalidArgument, "\"A\""));
  EXPECT_THAT(session_->RegisterBatches(
                  "t", arrow::schema({arrow::field("d", arrow::decimal256(60, 2))}), {}),
              FailsWith(ErrorCode::kInvalidArgument, "column \"d\""));
  EXPECT_THAT(session_->RegisterBatches("", schema, {}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(session_->RegisterBatches("t", arrow::schema({}), {}),
              Fails(ErrorCode::kInvalidArgument));
}

TEST_F(EngineTest, SourcesOfAnotherSessionAreOutOfReach) {
  const auto batches = ManyBatches(10, 10);
  ASSERT_OK(session_->RegisterBatches("t", batches[0]->schema(), batches));
  ASSERT_OK_AND_ASSIGN(const auto other, engine_->OpenSession());
  EXPECT_FALSE(other->Query("SELECT * FROM t").ok());
  for (int id = 0; id < 5; ++id) {
    EXPECT_FALSE(other->Query("SELECT * FROM tarn_arrow_source(" + std::to_string(id) + ")").ok());
  }
  EXPECT_EQ(Value("SELECT count(*) FROM t"), "10");
}

TEST_F(EngineTest, ExplainShowsThePlan) {
  ASSERT_OK_AND_ASSIGN(const std::string plan, session_->Explain("SELECT 1 AS a"));
  EXPECT_THAT(plan, ::testing::HasSubstr("PROJECTION"));
}

TEST_F(EngineTest, OptionsOutOfRangeAreRefused) {
  EXPECT_THAT(Engine::Open({.memory_limit_bytes = 1}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(Engine::Open({.threads = 0}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(Engine::Open({.extension_files = {"/none/x.duckdb_extension"}}),
              Fails(ErrorCode::kNotFound));
}

// A thread that fails interrupts the others, and what they say of that is not the reason.
TEST_F(EngineTest, AFailureOfOneThreadIsToldWithItsReason) {
  Open({.threads = 4});
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, engine_->OpenSession());
    ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<ArrowStream> stream,
        session->Query("SELECT CAST(CASE WHEN range > 300000 THEN 'none' ELSE '1' END AS INT) "
                       "FROM range(400000)"));
    Status status;
    while (status.ok()) {
      const auto batch = stream->Next();
      status = batch.status();
      ASSERT_TRUE(!status.ok() || *batch != nullptr);
    }
    EXPECT_THAT(status, FailsWith(ErrorCode::kInvalidArgument, "none"));
  }
}

}  // namespace
}  // namespace tarn::engine
