#include "tarn/landing/debezium_envelope.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <arrow/api.h>

#include "tarn/format/json_columns.h"
#include "tarn/format/json_splitter.h"
#include "test/support/matchers.h"

namespace tarn::landing {
namespace {

using format::JsonRecord;
using format::JsonSplitter;
using format::JsonTape;
using format::RecordError;
using format::RecordFailure;

class DebeziumEnvelopeTest : public testing::Test {
 protected:
  RecordFailure Open(std::string json) {
    text_ = std::move(json);
    const RecordFailure parsed = tape_.Parse(text_);
    EXPECT_TRUE(parsed.ok()) << parsed.text;
    return envelope_.Open(tape_.root(), event_);
  }

  std::string text_;  // What the event's views point into.
  JsonTape tape_;
  DebeziumEnvelope envelope_;
  DebeziumEvent event_;
};

TEST_F(DebeziumEnvelopeTest, OpensABareValue) {
  ASSERT_TRUE(Open(R"({"before":null,"after":{"id":1},"source":{"connector":"postgresql",)"
                   R"("ts_ms":5,"db":"d","schema":"shop","table":"t","txId":77,"lsn":900},)"
                   R"("op":"c","ts_ms":9})")
                  .ok());
  EXPECT_EQ(event_.kind, DebeziumKind::kChange);
  EXPECT_EQ(event_.operation, 'I');
  EXPECT_EQ(event_.table, "shop.t");
  EXPECT_EQ(event_.position, "00000000000000000900");
  EXPECT_EQ(event_.commit_time_micros, 5000);
  EXPECT_EQ(event_.transaction, "77");
  EXPECT_EQ(event_.row().text(), "{\"id\":1}");
  EXPECT_FALSE(event_.key);
  EXPECT_TRUE(event_.unavailable.empty());
}

TEST_F(DebeziumEnvelopeTest, TheOrderOfMembersMayChangeFromEventToEvent) {
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(
        Open(R"({"op":"c","after":{"id":1},"source":{"schema":"s","table":"t","lsn":1}})").ok());
    EXPECT_EQ(event_.table, "s.t");
    ASSERT_TRUE(
        Open(R"({"source":{"lsn":2,"table":"u","x":1,"schema":"s"},"y":0,"after":{},"op":"u"})")
            .ok());
    EXPECT_EQ(event_.table, "s.u");
    EXPECT_EQ(event_.position, "00000000000000000002");
    EXPECT_EQ(event_.operation, 'U');
    ASSERT_TRUE(Open(R"({"topic":"a.b.c","value":{"id":5,"__op":"c","__source_lsn":3}})").ok());
    EXPECT_EQ(event_.table, "b.c");
    ASSERT_TRUE(Open(R"({"key":{"id":1},"value":{"op":"d","op":"c","after":{"id":6}}})").ok());
    EXPECT_EQ(event_.operation, 'I');
    EXPECT_EQ(event_.table, "");
    EXPECT_EQ(event_.position, "");
  }
}

TEST_F(DebeziumEnvelopeTest, OperationsHaveTheirLetters) {
  const std::string images = R"("before":{"id":1},"after":{"id":2},"source":{})";
  for (const auto& [op, letter] : std::vector<std::pair<std::string, char>>{
           {"c", 'I'}, {"u", 'U'}, {"d", 'D'}, {"r", 'L'}, {"t", 'T'}}) {
    ASSERT_TRUE(Open("{" + images + ",\"op\":\"" + op + "\"}").ok());
    EXPECT_EQ(event_.operation, letter);
  }
  ASSERT_TRUE(Open(R"({"op":"t","before":null,"after":null,"source":{}})").ok());
  EXPECT_FALSE(event_.row() && event_.row().is_object());
  ASSERT_TRUE(Open(R"({"op":"m","message":{"prefix":"p"},"source":{}})").ok());
  EXPECT_EQ(event_.kind, DebeziumKind::kMessage);
}

TEST_F(DebeziumEnvelopeTest, WhatIsNoChangeIsToldApart) {
  ASSERT_TRUE(Open("null").ok());
  EXPECT_EQ(event_.kind, DebeziumKind::kTombstone);
  ASSERT_TRUE(Open(R"({"key":{"id":1},"value":null})").ok());
  EXPECT_EQ(event_.kind, DebeziumKind::kTombstone);
  EXPECT_EQ(event_.key.text(), "{\"id\":1}");
  ASSERT_TRUE(Open(R"({"schema":null,"payload":null})").ok());
  EXPECT_EQ(event_.kind, DebeziumKind::kTombstone);
  ASSERT_TRUE(Open(R"({"status":"BEGIN","id":"5:6","event_count":null,"ts_ms":1})").ok());
  EXPECT_EQ(event_.kind, DebeziumKind::kTransaction);
  ASSERT_TRUE(Open(R"({"ts_ms":1})").ok());
  EXPECT_EQ(event_.kind, DebeziumKind::kHeartbeat);
  ASSERT_TRUE(Open(R"({"source":{},"ts_ms":1,"databaseName":"d","ddl":"create table"})").ok());
  EXPECT_EQ(event_.kind, DebeziumKind::kSchemaChange);
}

TEST_F(DebeziumEnvelopeTest, BadEnvelopesAreRefused) {
  for (const char* json : {"1", "[]", "\"x\"", "{}", R"({"id":1})", R"({"op":"x","after":{}})",
                           R"({"op":1,"after":{}})", R"({"op":"c"})", R"({"op":"c","after":null})",
                           R"({"op":"u","after":[1]})", R"({"op":"d","before":null})",
                           R"({"value":7})", R"({"op":"c","after":"not json"})"}) {
    EXPECT_EQ(Open(json).code, RecordError::kBadEnvelope) << json;
  }
}

TEST_F(DebeziumEnvelopeTest, ADeleteWithoutImageTakesTheKey) {
  ASSERT_TRUE(Open(R"({"key":{"id":4},"value":{"op":"d","before":null,"source":{}}})").ok());
  EXPECT_EQ(event_.row().text(), "{\"id\":4}");
}

TEST_F(DebeziumEnvelopeTest, PositionsSortAsTheSourceOrdersThem) {
  const auto position = [&](const std::string& source) {
    const RecordFailure failure = Open("{\"op\":\"c\",\"after\":{},\"source\":{" + source + "}}");
    EXPECT_TRUE(failure.ok()) << failure.text;
    return std::string(event_.position);
  };
  const auto ordered = [&](const std::string& earlier, const std::string& later) {
    EXPECT_LT(position(earlier), position(later));
  };
  ordered(R"("lsn":99999999)", R"("lsn":100000000)");
  ordered(R"("file":"mysql-bin.000009","pos":99999999,"row":0)",
          R"("file":"mysql-bin.000009","pos":100000000,"row":0)");
  ordered(R"("file":"mysql-bin.999999","pos":4)", R"("file":"mysql-bin.1000000","pos":1)");
  ordered(R"("file":"b.1","pos":4,"row":9)", R"("file":"b.1","pos":4,"row":10)");
  ordered(R"("commit_lsn":"00000027:00000758:0005","change_lsn":"0:1","event_serial_no":2)",
          R"("commit_lsn":"00000027:00000758:0005","change_lsn":"0:1","event_serial_no":10)");
  ordered(R"("scn":"999","commit_scn":"1000")", R"("scn":"998","commit_scn":"10000")");
  ordered(R"("ts_ms":5,"ord":9,"collection":"c")", R"("ts_ms":5,"ord":10,"collection":"c")");
  EXPECT_EQ(position(R"("file":"mysql-bin.000003","pos":154)"),
            "00000000000000000003:00000000000000000154:0000000000");
  EXPECT_EQ(position(""), "");
}

TEST_F(DebeziumEnvelopeTest, TimesAndTransactionsComeFromTheSource) {
  ASSERT_TRUE(Open(R"({"op":"c","after":{},"source":{"ts_ms":1,"ts_us":1234,"ts_ns":1234567},)"
                   R"("transaction":{"id":"9:1"},"ts_ms":7})")
                  .ok());
  EXPECT_EQ(event_.commit_time_micros, 1234);
  EXPECT_EQ(event_.transaction, "9:1");
  ASSERT_TRUE(Open(R"({"op":"c","after":{},"source":{"gtid":"g:5"},"ts_ms":7})").ok());
  EXPECT_EQ(event_.commit_time_micros, 7000);
  EXPECT_EQ(event_.transaction, "g:5");
  ASSERT_TRUE(Open(R"({"op":"c","after":{}})").ok());
  EXPECT_EQ(event_.commit_time_micros, std::nullopt);
}

TEST_F(DebeziumEnvelopeTest, UnavailableValuesAreFoundInEveryForm) {
  std::string bytes = "[";
  for (const char c : std::string("__debezium_unavailable_value")) {
    bytes += (bytes == "[" ? "" : ",") + std::to_string(static_cast<int>(c));
  }
  ASSERT_TRUE(Open(R"({"op":"u","source":{},"after":{"id":1,)"
                   R"("text":"__debezium_unavailable_value",)"
                   R"("bytes":"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",)"
                   R"("texts":["__debezium_unavailable_value"],"numbers":)" +
                   bytes +
                   R"(],"json":"\"__debezium_unavailable_value\"",)"
                   R"("map":{"__debezium_unavailable_value":"__debezium_unavailable_value"},)"
                   R"("fine":"__debezium_unavailable_valuf","list":[1,2],"object":{"a":1}}})")
                  .ok());
  EXPECT_THAT(event_.unavailable,
              testing::ElementsAre("text", "bytes", "texts", "numbers", "json", "map"));
  DebeziumEnvelope other({.unavailable_value = "gone"});
  JsonTape tape;
  ASSERT_TRUE(
      tape.Parse(R"({"op":"u","after":{"a":"gone","b":"__debezium_unavailable_value"}})").ok());
  ASSERT_TRUE(other.Open(tape.root(), event_).ok());
  EXPECT_THAT(event_.unavailable, testing::ElementsAre("a"));
}

TEST_F(DebeziumEnvelopeTest, ImagesThatAreTextAreOpened) {
  ASSERT_TRUE(Open(R"({"op":"c","after":"{\"_id\": {\"$oid\": \"ab\"}, \"v\": 1}",)"
                   R"("source":{"db":"inventory","collection":"products","ts_ms":1,"ord":3}})")
                  .ok());
  EXPECT_EQ(event_.table, "inventory.products");
  EXPECT_EQ(event_.row().Find("v").int64(), 1);
  EXPECT_EQ(event_.position, "00000000000000001000:0000000003");
}

TEST_F(DebeziumEnvelopeTest, KeyAndValueOfAMessage) {
  JsonTape key;
  ASSERT_TRUE(key.Parse(R"({"schema":{"type":"struct","fields":[{"type":"int32","field":"id"}]},)"
                        R"("payload":{"id":1}})")
                  .ok());
  ASSERT_TRUE(tape_.Parse(R"({"op":"c","after":{"id":1}})").ok());
  ASSERT_TRUE(envelope_.Open(key.root(), tape_.root(), event_).ok());
  EXPECT_EQ(event_.key.text(), "{\"id\":1}");
  ASSERT_NE(event_.key_schema, nullptr);
  EXPECT_EQ(event_.key_schema->fields[0].type, format::LogicalType::kInteger);
  ASSERT_TRUE(envelope_.Open(format::JsonValue(), format::JsonValue(), event_).ok());
  EXPECT_EQ(event_.kind, DebeziumKind::kTombstone);
}

TEST_F(DebeziumEnvelopeTest, EqualSchemasAreParsedOnce) {
  DebeziumEnvelope envelope({.schemas_max = 3});
  const auto open = [&](int i) {
    const std::string text =
        R"({"schema":{"type":"struct","fields":[{"type":"struct","fields":[{"type":"int64",)"
        R"("field":"c)" +
        std::to_string(i) + R"("}],"field":"after"}]},"payload":{"op":"c","after":{}}})";
    EXPECT_TRUE(tape_.Parse(text).ok());
    EXPECT_TRUE(envelope.Open(tape_.root(), event_).ok());
    return event_.row_schema->id;
  };
  const uint64_t first = open(1);
  EXPECT_EQ(open(1), first);
  EXPECT_NE(open(2), first);
  EXPECT_EQ(open(1), first);
  open(3);
  open(4);
  open(5);
  EXPECT_NE(open(1), first);  // Dropped and parsed again.
  EXPECT_EQ(event_.row_schema->fields[0].name, "c1");
}

// Captured streams: what every event becomes, and the columns with their types.

std::filesystem::path Data(const std::string& name) {
  return std::filesystem::path(__FILE__).parent_path().parent_path().parent_path() / "test/data" /
         "debezium" / name;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string Show(const DebeziumEvent& event) {
  static constexpr const char* kKinds[] = {"change",      "tombstone", "message",
                                           "transaction", "heartbeat", "schema change"};
  std::string text = kKinds[static_cast<size_t>(event.kind)];
  if (event.kind != DebeziumKind::kChange) {
    return text + "\n";
  }
  text += std::string(" ") + event.operation + " " + std::string(event.table) + " " +
          std::string(event.position) + " " + std::to_string(event.commit_time_micros.value_or(0)) +
          " " + std::string(event.transaction);
  text += " key " + (event.key ? std::string(event.key.text()) : "none");
  for (const std::string_view name : event.unavailable) {
    text += " unavailable " + std::string(name);
  }
  return text + "\n";
}

class DebeziumCaptureTest : public testing::TestWithParam<std::string> {};

TEST_P(DebeziumCaptureTest, MatchesTheGoldenText) {
  const std::string stream = ReadFile(Data(GetParam() + ".jsonl"));
  ASSERT_FALSE(stream.empty());
  JsonSplitter splitter;
  splitter.Feed(stream);
  splitter.Finish();
  DebeziumEnvelope envelope;
  DebeziumEvent event;
  JsonRecord record;
  std::string shown;
  std::map<std::string, std::unique_ptr<format::JsonColumns>, std::less<>> tables;
  while (splitter.Next(record)) {
    ASSERT_TRUE(record.failure.ok()) << record.failure.text;
    const RecordFailure failure = envelope.Open(record.value, event);
    ASSERT_TRUE(failure.ok()) << failure.text << " " << record.text;
    shown += Show(event);
    if (event.kind != DebeziumKind::kChange || event.operation == 'T') {
      continue;
    }
    auto& columns = tables[std::string(event.table)];
    if (columns == nullptr) {
      ASSERT_OK_AND_ASSIGN(columns, format::JsonColumns::Make({}));
    }
    const RecordFailure appended = columns->Append(
        event.row(), {.schema = event.row_schema, .unavailable = event.unavailable});
    ASSERT_TRUE(appended.ok()) << appended.text;
  }
  for (auto& [table, columns] : tables) {
    ASSERT_OK_AND_ASSIGN(const format::JsonBatch batch, columns->Finish());
    ASSERT_TRUE(batch.batch->ValidateFull().ok());
    shown += "table " + table + ", " + std::to_string(batch.batch->num_rows()) + " rows, nulled " +
             std::to_string(columns->counters().nulled_values) + "\n";
    for (int i = 0; i < batch.batch->num_columns(); ++i) {
      shown += "  " + batch.batch->schema()->field(i)->ToString() + ":";
      for (int64_t row = 0; row < batch.batch->num_rows(); ++row) {
        const auto scalar = *batch.batch->column(i)->GetScalar(row);
        shown += " | " + (scalar->is_valid ? scalar->ToString().substr(0, 60) : "null");
      }
      shown += "\n";
    }
    if (batch.absent != nullptr) {
      shown += "  absent: " + batch.absent->ToString() + "\n";
    }
  }
  const std::filesystem::path golden = Data(GetParam() + ".golden.txt");
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(golden, std::ios::binary) << shown;
  }
  EXPECT_EQ(shown, ReadFile(golden));
}

INSTANTIATE_TEST_SUITE_P(All, DebeziumCaptureTest,
                         testing::Values("pg_plain_noschema_txmeta", "pg_schema_envelope",
                                         "pg_decimal_string_time_connect", "pg_unwrapped_rewrite"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tarn::landing
