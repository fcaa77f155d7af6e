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
        BadFile{"history: true", "histori: true", "line 15, column 5: transform.customers.histori"},
        BadFile{"history: true", "history: maybe", "expected true or false"},
        BadFile{"history: true", "view_headers: [hdr__to_timestamp]",
                "line 15, column 5: transform.customers.view_headers"},
        BadFile{"history: true", "view_headers: [hdr__key_hash, hdr__key_hash]", "there twice"},
        BadFile{"type: files", "type: kafka", "not available in this version"},
        BadFile{"file:///data/in", "s3://bucket/x", "not available in this version"},
        BadFile{"rows: 10_000", "rows: many", "landing.events.commit.rows"},
        BadFile{"from: events", "from: nothing", "there is no landing task nothing"},
        BadFile{"source: in", "source: out", "there is no source out"},
        BadFile{"key: [id]", "key: [id]\n    sequence_by: ts", "not available in this version"},
        BadFile{"key: [id]", "key: [id]\n    key: [x]", "there twice"},
        BadFile{"pipeline: shop", "pipeline: Shop", "a name has only"},
        BadFile{"pipeline: shop", "pipeline: [", "line 4"},
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

TEST(PipelineSpecTest, TwoTasksMayNotNeedOneName) {
  const std::string text = std::string(kShop) +
                           "  other: {from: events, key: [id], schema: customers, prefix: x}\n"
                           "  xother: {from: events, key: [id], schema: customers}\n";
  EXPECT_THAT(ParsePipeline(text),
              FailsWith(ErrorCode::kInvalidArgument, "both need the name customers.xother"));
}

}  // namespace
}  // namespace tarn::pipeline
