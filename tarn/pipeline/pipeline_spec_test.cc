#include "tarn/pipeline/pipeline_spec.h"

#include "test/support/matchers.h"

namespace tarn::pipeline {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kShop = R"yaml(
pipeline: shop
sources:
  in: {type: files, uri: "file:///data/in"}
landing:
  events:
    source: in
    paths: ["*.jsonl"]
    content: {type: json, envelope: debezium, tables: ["shop.%"]}
    commit: {rows: 10_000, bytes: 1MiB, interval: 200ms}
transform:
  customers:
    from: events
    key: [id]
    history: true
    columns:
      email: "lower(email)"
      digest: {expr: "email", hash: true}
    apply: {rows: 5%, min_rows: 7, bytes: 2MiB, files: 3, max_age: 10m}
    snapshots: {max_age: 1h, min_keep: 2, max_count: 9}
)yaml";

TEST(PipelineSpecTest, ReadsTheKeys) {
  ASSERT_OK_AND_ASSIGN(const PipelineSpec pipeline, ParsePipeline(kShop));
  EXPECT_EQ(pipeline.project, "default");
  ASSERT_EQ(pipeline.landings.size(), 1U);
  const landing::LandingSpec& landing = pipeline.landings[0];
  EXPECT_EQ(landing.source_uri, "file:///data/in");
  EXPECT_EQ(landing.envelope, landing::Envelope::kDebezium);
  EXPECT_EQ(landing.commit.rows, 10'000);
  EXPECT_EQ(landing.commit.bytes, 1 << 20);
  EXPECT_EQ(landing.commit.interval, std::chrono::milliseconds(200));
  ASSERT_EQ(pipeline.transforms.size(), 1U);
  const TransformSpec& task = pipeline.transforms[0];
  EXPECT_THAT(task.table.key, ElementsAre("id"));
  EXPECT_TRUE(task.table.fold.history);
  EXPECT_EQ(task.table.internal_schema, "customers_internal");
  EXPECT_EQ(task.table.external_schema, "customers");
  EXPECT_EQ(task.mapping.columns[1].hash, true);
  EXPECT_DOUBLE_EQ(task.table.apply.rows_ratio, 0.05);
  EXPECT_EQ(task.table.apply.rows_min, 7);
  EXPECT_EQ(task.table.snapshots.count_max, 9);
}

TEST(PipelineSpecTest, PoliciesThatSayWhatHappensAreTaken) {
  std::string text(kShop);
  const std::string_view history = "history: true";
  text.replace(
      text.find(history), history.size(),
      "schema_evolution: {truncate_table: ignore, drop_table: ignore, drop_column: apply}");
  ASSERT_OK_AND_ASSIGN(const PipelineSpec pipeline, ParsePipeline(text));
  EXPECT_EQ(pipeline.transforms[0].schema_policies.drop_column, transform::SchemaPolicy::kApply);
}

// A file with one change and a part of the complaint that must follow.
struct BadFile {
  std::string_view from;
  std::string_view to;
  std::string_view complaint;
};

class PipelineSpecBadTest : public ::testing::TestWithParam<BadFile> {};

TEST_P(PipelineSpecBadTest, IsRefusedWithItsPlace) {
  std::string text(kShop);
  const size_t at = text.find(GetParam().from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, GetParam().from.size(), GetParam().to);
  EXPECT_THAT(ParsePipeline(text), FailsWith(ErrorCode::kInvalidArgument, GetParam().complaint));
}

INSTANTIATE_TEST_SUITE_P(
    All, PipelineSpecBadTest,
    ::testing::Values(
        BadFile{"key: [id]", "kee: [id]", "kee"},
        BadFile{"digest: {expr", "id: {expr: id, type: double}\n      digest: {expr",
                "transform.customers.key: id is declared as double"},
        BadFile{"source: in", "source: in\n    columns: {id: float}",
                "transform.customers.key: id is declared as float"},
        BadFile{"key: [id]", "key: [id, n, id]", "transform.customers.key: names \"id\" twice"},
        BadFile{"history: true", "delete_when: \"\"",
                "line 15, column 5: transform.customers.delete_when: is empty"},
        BadFile{"history: true", "where: \"  \"", "transform.customers.where: is empty"},
        BadFile{"history: true", "schema_evolution: {truncate_table: apply}",
                "schema_evolution.truncate_table: only ignore is available"},
        BadFile{"history: true", "schema_evolution: {rename_column: ignore}",
                "not available in this version"},
        BadFile{"history: true", "histori: true", "line 15, column 5: transform.customers.histori"},
        BadFile{"history: true", "history: maybe", "expected true or false"},
        BadFile{"history: true", "view_headers: [hdr__to_timestamp]",
                "line 15, column 5: transform.customers.view_headers"},
        BadFile{"history: true", "view_headers: [hdr__key_hash, hdr__key_hash]", "there twice"},
        BadFile{"type: files", "type: kinesis", "not available in this version"},
        BadFile{"type: files, uri: \"file:///data/in\"", "type: kafka, brokers: [\"h:1\"]",
                "line 8, column 5: landing.events.paths: is for files"},
        BadFile{"source: in", "source: in\n    topics: [t]",
                "landing.events.topics: is for topics of Kafka"},
        BadFile{"type: files, uri: \"file:///data/in\"", "type: kafka", "expected [host:port"},
        BadFile{"type: files, uri: \"file:///data/in\"", "type: kafka, brokers: [\"h\"]",
                "expected host:port, found \"h\""},
        BadFile{"type: files, uri: \"file:///data/in\"",
                "type: kafka, brokers: [\"h:1\"], client: {auto.offset.reset: earliest}",
                "sources.in.client.auto.offset.reset"},
        BadFile{"file:///data/in", "s3://bucket/x", "not available in this version"},
        BadFile{"rows: 10_000", "rows: many", "landing.events.commit.rows"},
        BadFile{"from: events", "from: nothing", "there is no landing task nothing"},
        BadFile{"source: in", "source: out", "there is no source out"},
        BadFile{"key: [id]", "key: [id]\n    sequence_by: ts", "not available in this version"},
        BadFile{"key: [id]", "key: [id]\n    key: [x]", "there twice"},
        BadFile{"pipeline: shop", "pipeline: Shop", "a name has only"},
        BadFile{"pipeline: shop", "pipeline: [", "line 4"},
        BadFile{"pipeline: shop", "pipeline: shop\nproject: \"default \"", "end with a blank"},
        BadFile{"pipeline: shop", "pipeline: shop\nproject: a/b", "contains a slash"},
        BadFile{"source: in", "source: in\n    schema: \"x\\x1fy\"",
                "landing.events.schema: a name cannot hold control"},
        BadFile{"history: true", "history: true\n    schema: \"..\"",
                "transform.customers.schema: display name \"..\" has a meaning"},
        BadFile{"history: true", "history: true\n    internal_schema: \"a\\nb\"",
                "internal_schema: a name cannot hold control"},
        BadFile{"pipeline: shop", "pipeline: \"\"", "pipeline: a name has only a-z"},
        BadFile{"history: true", "mode: append\n    history: true", "mode append"},
        BadFile{"type: json", "type: xml", "xml is not available in this version"},
        BadFile{"interval: 200ms", "interval: 200", "landing.events.commit.interval"},
        BadFile{"interval: 200ms", "interval: off",
                "line 10, column 41: landing.events.commit.interval: cannot be off"},
        BadFile{"interval: 200ms", "interval: 0", "cannot be 0"},
        BadFile{"source: in", "source: in\n    poll: off",
                "line 8, column 5: landing.events.poll: cannot be off"},
        BadFile{"source: in", "source: in\n    poll: -5s", "line 8, column 5: landing.events.poll"},
        BadFile{"source: in", "source: in\n    look_back: -1d", "landing.events.look_back"},
        BadFile{"source: in", "source: in\n    max_record: 0", "landing.events.max_record"},
        BadFile{"rows: 10_000", "rows: -1",
                "line 10, column 14: landing.events.commit.rows: must be at least 1, found -1"},
        BadFile{"bytes: 1MiB", "bytes: 0", "landing.events.commit.bytes"},
        BadFile{"bytes: 1MiB", "bytes: -1", "landing.events.commit.bytes"},
        BadFile{"rows: 5%", "rows: -5", "line 19, column 13: transform.customers.apply.rows"},
        BadFile{"rows: 5%", "rows: -5%", "transform.customers.apply.rows"},
        BadFile{"min_rows: 7", "min_rows: -7", "transform.customers.apply.min_rows"},
        BadFile{"files: 3", "files: -3", "transform.customers.apply.files"},
        BadFile{"bytes: 2MiB", "bytes: -2MiB", "transform.customers.apply.bytes"},
        BadFile{"history: true", "history: true\n    batch: {rows: -1}",
                "line 16, column 13: transform.customers.batch.rows"},
        BadFile{"history: true", "history: true\n    batch: {bytes: 0}",
                "transform.customers.batch.bytes"},
        BadFile{"envelope: debezium", "cdc_before: off, envelope: debezium",
                "line 9, column 27: landing.events.content.cdc_before: off cannot be read by "
                "transform.customers in mode merge"},
        BadFile{"source: in", "source: in\n    columns: {HDR__x: long}",
                "line 8, column 15: landing.events.columns.HDR__x: names that begin"},
        BadFile{"source: in", "source: in\n    columns: {tarn_x: long}", "are reserved"}));

constexpr std::string_view kTopics = R"yaml(
pipeline: shop
sources:
  k:
    type: kafka
    brokers: ["127.0.0.1:9092", "b:9092"]
    client: {security.protocol: SASL_SSL, sasl.mechanism: PLAIN, sasl.password: "${PASS}"}
landing:
  events:
    source: k
    topics: [orders, "shop.%"]
    exclude_topics: ["shop.internal%"]
    start: 2026-01-31T00:00:00Z
    on_lost_range: continue
    on_new_topic: ignore
    tombstone: delete
    key_columns: {format: string, names: [id]}
    poll: 200ms
transform:
  targets: {from: events, key: [id]}
)yaml";

TEST(PipelineSpecTest, ReadsTheKeysOfTopics) {
  ASSERT_OK_AND_ASSIGN(const PipelineSpec pipeline,
                       ParsePipeline(kTopics, {{"PASS", "topsecret"}}));
  const landing::LandingSpec& landing = pipeline.landings[0];
  ASSERT_TRUE(landing.kafka.has_value());
  const source::kafka::KafkaSourceOptions& source = landing.kafka->source;
  EXPECT_THAT(source.client.brokers, ElementsAre("127.0.0.1:9092", "b:9092"));
  EXPECT_EQ(source.client.properties.at("sasl.password"), "topsecret");
  EXPECT_EQ(source.client.group, "tarn.shop.events");
  EXPECT_THAT(source.topics, ElementsAre("orders", "shop.%"));
  EXPECT_EQ(source.start.kind, source::kafka::StartPolicy::Kind::kTime);
  EXPECT_EQ(source.on_lost_range, source::kafka::OnLostRange::kContinue);
  EXPECT_EQ(source.on_new_topic, source::kafka::LaterTopics::kIgnore);
  EXPECT_EQ(source.look_every, std::chrono::milliseconds(200));
  EXPECT_TRUE(landing.kafka->tombstone_deletes());
  EXPECT_THAT(landing.kafka->key_columns.names, ElementsAre("id"));
}

TEST(PipelineSpecTest, ADatasetOfATopicIsAnInput) {
  std::string text(kTopics);
  const auto replace = [&](std::string_view from, std::string_view to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("poll: 200ms", "one_dataset: false");
  EXPECT_THAT(ParsePipeline(text, {{"PASS", "x"}}),
              FailsWith(ErrorCode::kInvalidArgument, "name one of them"));
  replace("from: events", "from: shop_orders");
  ASSERT_OK_AND_ASSIGN(const PipelineSpec pipeline, ParsePipeline(text, {{"PASS", "x"}}));
  const std::optional<LandingInput> input = pipeline.FindInput("shop_orders");
  ASSERT_TRUE(input.has_value());
  EXPECT_EQ(input->task->name, "events");
  EXPECT_EQ(input->landing.name, "shop_orders");
  replace("from: shop_orders", "from: other");
  EXPECT_THAT(ParsePipeline(text, {{"PASS", "x"}}),
              FailsWith(ErrorCode::kInvalidArgument, "no landing task other"));
}

TEST(PipelineSpecTest, BadKeysOfTopicsAreRefusedWithoutTheSecret) {
  const std::pair<std::string_view, std::string_view> changes[] = {
      {"topics: [orders, \"shop.%\"]", "topics: []"},
      {"start: 2026-01-31T00:00:00Z", "start: latest"},
      {"format: string", "format: avro"},
      {"names: [id]", "names: [hdr__id]"},
      {"names: [id]", "names: [id, other]"},
      {"{format: string, names: [id]}", "{format: string}"},
      {"tombstone: delete", "tombstone: keep"},
      {"sasl.mechanism: PLAIN", "sasl.mechanisme: PLAIN"},
      {"poll: 200ms", "poll: 200ms\n    move_to: x"},
  };
  for (const auto& [from, to] : changes) {
    std::string text(kTopics);
    text.replace(text.find(from), from.size(), to);
    const Status status = ParsePipeline(text, {{"PASS", "topsecret"}}).status();
    EXPECT_THAT(status, FailsWith(ErrorCode::kInvalidArgument, "line ")) << to;
    EXPECT_EQ(status.message().find("topsecret"), std::string::npos) << to;
  }
}

TEST(PipelineSpecTest, AppendNeedsNoImageBefore) {
  std::string text(kShop);
  text.replace(text.find("envelope: debezium"), 18, "cdc_before: off, envelope: debezium");
  text.replace(text.find("history: true"), 13, "mode: append");
  EXPECT_OK(ParsePipeline(text));
}

TEST(PipelineSpecTest, OnlyChangeEventsNameTheKeyThemselves) {
  std::string text(kShop);
  text.replace(text.find("    key: [id]\n"), 14, "");
  ASSERT_OK_AND_ASSIGN(const PipelineSpec pipeline, ParsePipeline(text));
  EXPECT_TRUE(pipeline.transforms[0].table.key.empty());
  text.replace(text.find(", envelope: debezium, tables: [\"shop.%\"]"), 40, "");
  EXPECT_THAT(ParsePipeline(text),
              FailsWith(ErrorCode::kInvalidArgument, "mode merge needs key: [column, …]"));
}

TEST(PipelineSpecTest, AliasesMayNotNameThemselvesOrGrowWithoutEnd) {
  for (const char* cycle : {"pipeline: &a\n  x: *a\n", "pipeline: p\nsources: &s\n  f: *s\n",
                            "pipeline: p\nlanding: &l [*l]\n"}) {
    EXPECT_THAT(ParsePipeline(cycle),
                FailsWith(ErrorCode::kInvalidArgument, "inside the value that it names"));
    EXPECT_THAT(ListVariables(cycle), Fails(ErrorCode::kInvalidArgument));
    EXPECT_THAT(DescribeTasks(cycle), Fails(ErrorCode::kInvalidArgument));
  }
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string last = fmt::format("*a{}", i - 1);
    bomb +=
        fmt::format("a{}: &a{} [{}]\n", i, i, fmt::join(std::vector<std::string>(9, last), ", "));
  }
  EXPECT_THAT(ParsePipeline(bomb), FailsWith(ErrorCode::kInvalidArgument, "100000 values"));
  const std::string deep = "a: " + std::string(1000, '[') + std::string(1000, ']') + "\n";
  EXPECT_THAT(ParsePipeline(deep), Fails(ErrorCode::kInvalidArgument));
  std::string shared(kShop);
  shared.replace(shared.find("commit: {"), 9, "commit: &c {");
  EXPECT_OK(ParsePipeline(shared));
}

TEST(PipelineSpecTest, AnInboxTakesUsedNamesAgain) {
  const auto changed = [](std::string_view more) {
    std::string text(kShop);
    text.replace(text.find("source: in"), 10, "source: in\n" + std::string(more));
    const Result<PipelineSpec> spec = ParsePipeline(text);
    EXPECT_OK(spec);
    return spec->landings.front().files.decide.on_changed;
  };
  using source::files::OnChanged;
  EXPECT_EQ(changed(""), OnChanged::kReport);
  EXPECT_EQ(changed("    delete_after_load: false\n"), OnChanged::kReport);
  EXPECT_EQ(changed("    delete_after_load: true\n"), OnChanged::kReload);
  EXPECT_EQ(changed("    move_to: done\n"), OnChanged::kReload);
  EXPECT_EQ(changed("    move_to: done\n    on_changed: report\n"), OnChanged::kReport);
}

TEST(PipelineSpecTest, TwoTasksMayNotNeedOneName) {
  const std::string text = std::string(kShop) +
                           "  other: {from: events, key: [id], schema: customers, prefix: x}\n"
                           "  xother: {from: events, key: [id], schema: customers}\n";
  EXPECT_THAT(ParsePipeline(text),
              FailsWith(ErrorCode::kInvalidArgument, "both need the name customers.xother"));
}

}  // namespace
}  // namespace tarn::pipeline
