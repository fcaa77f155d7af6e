#include "tarn/format/json_splitter.h"

#include <random>

#include "test/support/matchers.h"

namespace tarn::format {
namespace {

using testing::ElementsAre;

// "row offset text" of good records, "row offset error text" of failed ones.
std::vector<std::string> Split(std::string_view stream, size_t chunk_bytes = SIZE_MAX,
                               JsonSplitterOptions options = {}) {
  JsonSplitter splitter(options);
  std::vector<std::string> records;
  JsonRecord record;
  const auto drain = [&] {
    while (splitter.Next(record)) {
      std::string line = std::to_string(record.row) + " " + std::to_string(record.offset_bytes);
      if (!record.failure.ok()) {
        line += " " + std::string(RecordErrorName(record.failure.code));
      } else {
        EXPECT_EQ(record.value.text(), record.text);
      }
      EXPECT_EQ(stream.substr(record.offset_bytes, record.text.size()), record.text);
      records.push_back(line + " " + std::string(record.text));
      ASSERT_LT(records.size(), 100'000U);
    }
  };
  for (size_t at = 0; at < stream.size(); at += std::min(chunk_bytes, stream.size() - at)) {
    splitter.Feed(stream.substr(at, chunk_bytes));
    drain();
  }
  splitter.Finish();
  drain();
  EXPECT_FALSE(splitter.Next(record));
  return records;
}

struct SplitCase {
  std::string name;
  std::string stream;
  std::vector<std::string> records;
};

class JsonSplitterCaseTest : public testing::TestWithParam<SplitCase> {};

TEST_P(JsonSplitterCaseTest, GivesTheSameForEveryChunkAndWindowSize) {
  const SplitCase& expected = GetParam();
  for (const size_t chunk : {SIZE_MAX, size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{64}}) {
    for (const uint32_t window : {64U, 256U << 10U}) {
      JsonSplitterOptions options;
      options.window_bytes = window;
      EXPECT_EQ(Split(expected.stream, chunk, options), expected.records)
          << "chunk " << chunk << " window " << window;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, JsonSplitterCaseTest,
    testing::Values(
        SplitCase{"Empty", "", {}}, SplitCase{"Blank", "\n \n\t\r\n", {}},
        SplitCase{"OnlyByteOrderMark", "\xef\xbb\xbf", {}},
        SplitCase{"Lines", "{\"a\":1}\n{\"a\":2}\n", {"0 0 {\"a\":1}", "1 8 {\"a\":2}"}},
        SplitCase{"NoFinalNewline", "{\"a\":1}\n{\"a\":2}", {"0 0 {\"a\":1}", "1 8 {\"a\":2}"}},
        SplitCase{"CrLfAndBlanks",
                  "\r\n{\"a\":1}\r\n\r\n  {\"a\":2}\r\n",
                  {"0 2 {\"a\":1}", "1 15 {\"a\":2}"}},
        SplitCase{"ByteOrderMark", "\xef\xbb\xbf{\"a\":1}\n", {"0 3 {\"a\":1}"}},
        SplitCase{"Concatenated",
                  "{\"a\":1}{\"a\":\"}{\"} {}",
                  {"0 0 {\"a\":1}", "1 7 {\"a\":\"}{\"}", "2 18 {}"}},
        SplitCase{"OverLines",
                  "{\n  \"a\": 1,\n  \"b\": [\n 1\n ]\n}\n{\n}\n",
                  {"0 0 {\n  \"a\": 1,\n  \"b\": [\n 1\n ]\n}", "1 29 {\n}"}},
        SplitCase{"Array", "[{\"a\":1}, {\"a\":2}]", {"0 1 {\"a\":1}", "1 10 {\"a\":2}"}},
        SplitCase{"ArrayOverLines",
                  "[\n  {\n    \"a\": 1\n  },\n  {}\n]\n",
                  {"0 4 {\n    \"a\": 1\n  }", "1 24 {}"}},
        SplitCase{"ArraysByLine",
                  "[{\"a\":1},{}]\n[]\n[{\"a\":3}]\n",
                  {"0 1 {\"a\":1}", "1 9 {}", "2 17 {\"a\":3}"}},
        SplitCase{"OpenArray", "[{\"a\":1},\n", {"0 1 {\"a\":1}", "1 10 truncated "}},
        SplitCase{"BadLine",
                  "{\"a\":1}\n{\"a\":}\n{\"a\":3}\n",
                  {"0 0 {\"a\":1}", "1 8 bad_json {\"a\":}", "2 15 {\"a\":3}"}},
        SplitCase{
            "GarbageLines",
            "x\nnot, json\n{\"a\":1}\n}\n",
            {"0 0 bad_json x", "1 2 bad_json not, json", "2 12 {\"a\":1}", "3 20 bad_json }"}},
        SplitCase{"UnclosedObject",
                  "{\"a\":1\n{\"a\":2}\n{\"a\":3,\n{\"a\":4}\n",
                  {"0 0 bad_json {\"a\":1", "1 7 {\"a\":2}", "2 15 bad_json {\"a\":3,",
                   "3 23 {\"a\":4}"}},
        SplitCase{"UnclosedString",
                  "{\"a\":\"1}\n{\"a\":2}\n{\"b\":\"x}\n{\"a\":3}\n",
                  {"0 0 bad_json {\"a\":\"1}", "1 9 {\"a\":2}", "2 17 bad_json {\"b\":\"x}",
                   "3 26 {\"a\":3}"}},
        SplitCase{"BadBytes",
                  "{\"a\":\"\xc3\x28\"}\n{\"a\":2}{\"b\":\"\xff\"}{\"a\":3}\n",
                  {"0 0 bad_utf8 {\"a\":\"\xc3\x28\"}", "1 11 {\"a\":2}",
                   "2 18 bad_utf8 {\"b\":\"\xff\"}", "3 27 {\"a\":3}"}},
        SplitCase{"ControlCharacter",
                  "{\"a\":\"\x01\"}\n{\"a\":2}\n",
                  {"0 0 bad_json {\"a\":\"\x01\"}", "1 10 {\"a\":2}"}},
        SplitCase{
            "BadOverLines",
            "{\n  \"a\" 1,\n  \"b\": [\n    {\"c\":1}\n  ]\n}\n{\"a\":2}\n",
            {"0 0 bad_json {\n  \"a\" 1,\n  \"b\": [\n    {\"c\":1}\n  ]\n}", "1 38 {\"a\":2}"}},
        SplitCase{"BadElement",
                  "[{\"a\":1},{\"a\":x},{\"a\":3}]",
                  {"0 1 {\"a\":1}", "1 9 bad_json {\"a\":x}", "2 17 {\"a\":3}"}},
        SplitCase{
            "Truncated", "{\"a\":1}\n{\"a\":[1,", {"0 0 {\"a\":1}", "1 8 truncated {\"a\":[1,"}},
        SplitCase{"TruncatedString",
                  "{\"a\":1}\n{\"a\":\"x",
                  {"0 0 {\"a\":1}", "1 8 truncated {\"a\":\"x"}},
        SplitCase{"NoObjects",
                  "1\n\"x\"\nnull\n{}\n[2,{}]\n",
                  {"0 0 not_an_object 1", "1 2 not_an_object \"x\"", "2 6 not_an_object null",
                   "3 11 {}", "4 15 not_an_object 2", "5 17 {}"}}),
    [](const auto& test) { return test.param.name; });

TEST(JsonSplitterTest, OtherValuesOnRequest) {
  JsonSplitter splitter({.objects_only = false});
  splitter.Feed("null\n7\n");
  splitter.Finish();
  JsonRecord record;
  ASSERT_TRUE(splitter.Next(record));
  EXPECT_TRUE(record.failure.ok());
  EXPECT_TRUE(record.value.is_null());
  ASSERT_TRUE(splitter.Next(record));
  EXPECT_EQ(record.value.int64(), 7);
}

TEST(JsonSplitterTest, PositionsCountFromTheRecord) {
  JsonSplitter splitter;
  splitter.Feed("{\"a\":1}\n{\"a\" 2}\n{\"b\":\"\xff\"}\n");
  splitter.Finish();
  JsonRecord record;
  ASSERT_TRUE(splitter.Next(record));
  ASSERT_TRUE(splitter.Next(record));
  EXPECT_EQ(record.failure.position_bytes, 5U);
  ASSERT_TRUE(splitter.Next(record));
  EXPECT_EQ(record.failure.position_bytes, 6U);
}

TEST(JsonSplitterTest, RecordsThatAreTooLargeAreSkippedInBoundedMemory) {
  JsonSplitterOptions options;
  options.limits.max_record_bytes = 1000;
  options.window_bytes = 256;
  options.kept_bytes = 10;
  const std::string large = "{\"a\":\"" + std::string(50'000, 'x') + "\"}";
  const std::string nested = "{\"a\":[" + std::string(3000, ' ') + "{\"b\":1}]}";
  for (const size_t chunk : {size_t{100}, size_t{1000}, SIZE_MAX}) {
    EXPECT_THAT(
        Split("{\"a\":1}\n" + large + "\n{\"a\":2}\n" + nested + "{\"a\":3}\n", chunk, options),
        ElementsAre("0 0 {\"a\":1}", "1 8 too_large {\"a\":\"xxxx",
                    testing::StartsWith("2 50017 {\"a\":2}"),
                    testing::HasSubstr(" too_large {\"a\":["), testing::EndsWith(" {\"a\":3}")));
  }
}

TEST(JsonSplitterTest, ALargeRecordWithinTheLimitIsRead) {
  const std::string text = "{\"a\":[" + std::string(700'000, ' ') + "1]}";
  const auto records = Split(text + "\n{\"b\":1}\n", 64 << 10);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0], "0 0 " + text);
}

TEST(JsonSplitterTest, DeepDocumentsFailAlone) {
  const std::string deep = "{\"a\":" + std::string(600, '[') + std::string(600, ']') + "}";
  const auto records = Split(deep + "\n{\"b\":1}\n");
  ASSERT_EQ(records.size(), 2U);
  EXPECT_TRUE(records[0].starts_with("0 0 too_deep ")) << records[0];
  EXPECT_TRUE(records[1].ends_with("{\"b\":1}"));
}

TEST(JsonSplitterTest, ResetStartsANewStream) {
  JsonSplitter splitter;
  JsonRecord record;
  for (int i = 0; i < 2; ++i) {
    splitter.Feed("\xef\xbb\xbf[{\"a\":1}");
    splitter.Finish();
    ASSERT_TRUE(splitter.Next(record));
    EXPECT_EQ(record.row, 0U);
    EXPECT_EQ(record.offset_bytes, 4U);
    splitter.Reset();
  }
}

// Good lines among damaged ones: none is lost, none is invented, whatever the chunks.
TEST(JsonSplitterTest, GoodLinesSurviveDamageAroundThem) {
  std::mt19937_64 random(99);
  static const std::vector<std::string> kBad = {
      "{\"a\":",     "{\"a\":\"x", "garbage", "{\"a\":\"\xff\"}", "{\"a\":1}}", "\"",
      "{\"a\":\"\\", "[",          "{]",      "{\"a\":1,",        "\x01",       "{\"a\":tru}"};
  for (int round = 0; round < 200; ++round) {
    std::string stream;
    std::vector<std::string> good;
    for (int line = 0; line < 60; ++line) {
      if (random() % 4 == 0) {
        // An open bracket swallows what follows on purpose only while that can be JSON.
        std::string bad = kBad[random() % kBad.size()];
        if (bad == "[") {
          continue;
        }
        stream += bad + "\n";
      }
      good.push_back("{\"id\":" + std::to_string(round * 100 + line) + ",\"t\":\"é\"}");
      stream += good.back() + "\n";
    }
    JsonSplitterOptions options;
    options.window_bytes = 64U << (random() % 6);
    std::vector<std::string> found;
    for (const std::string& record : Split(stream, 1 + random() % 500, options)) {
      const size_t at = record.find("{\"id\"");
      if (at != std::string::npos && record.find(' ') + 1 != at) {
        const std::string text = record.substr(at);
        if (std::count(record.begin(), record.end(), ' ') == 2) {
          found.push_back(text);
        }
      }
    }
    ASSERT_EQ(found, good) << stream;
  }
}

TEST(JsonSplitterTest, AnotherSplitterGoesOnAtTheResumeOffset) {
  const std::string text = "{\"a\":1} {\"a\":2}\n{\"a\":\n3}\n[{\"a\":4},{\"a\":5}]\n{\"a\":6}";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    JsonSplitter first;
    JsonRecord record;
    std::vector<std::string> records;
    first.Feed(std::string_view(text).substr(0, cut));
    while (first.Next(record)) {
      records.emplace_back(record.text);
    }
    const std::optional<uint64_t> offset = first.ResumeOffset();
    if (!offset) {
      continue;  // Inside the array.
    }
    ASSERT_LE(*offset, cut);
    JsonSplitter second;
    second.Reset(*offset);
    second.Feed(std::string_view(text).substr(*offset));
    second.Finish();
    while (second.Next(record)) {
      records.emplace_back(record.text);
      EXPECT_EQ(text.substr(record.offset_bytes, record.text.size()), record.text);
    }
    EXPECT_EQ(records.size(), 6U) << "cut at " << cut;
    EXPECT_EQ(records.back(), "{\"a\":6}");
  }
}

}  // namespace
}  // namespace tarn::format
