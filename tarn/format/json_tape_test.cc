#include "tarn/format/json_tape.h"

#include <random>

#include <nlohmann/json.hpp>

#include "test/support/matchers.h"

namespace tarn::format {
namespace {

// Writes the value as nlohmann would hold it.
nlohmann::json ToOracle(JsonValue value) {
  switch (value.kind()) {
    case JsonKind::kNull:
      return nullptr;
    case JsonKind::kBoolean:
      return value.boolean();
    case JsonKind::kNumber:
      return nlohmann::json::parse(value.number_text());
    case JsonKind::kString:
      return std::string(value.string());
    case JsonKind::kArray: {
      auto array = nlohmann::json::array();
      for (const JsonValue element : value.elements()) {
        array.push_back(ToOracle(element));
      }
      EXPECT_EQ(array.size(), value.size());
      return array;
    }
    case JsonKind::kObject: {
      auto object = nlohmann::json::object();
      for (const JsonMember member : value.members()) {
        object[std::string(member.name)] = ToOracle(member.value);
      }
      return object;
    }
  }
  return nullptr;
}

RecordFailure ParseFailure(std::string_view text, JsonLimits limits = {}) {
  JsonTape tape(limits);
  RecordFailure failure = tape.Parse(text);
  EXPECT_EQ(static_cast<bool>(tape.root()), failure.ok());
  return failure;
}

TEST(JsonTapeTest, ReadsEveryKindOfValue) {
  JsonTape tape;
  const std::string text =
      R"( {"a":1,"b":-2.50,"c":"x\ty\u00e9\ud83d\ude00","d":[true,false,null,{}],"e":{"f":[]},)"
      R"("g":1e400,"h":12345678901234567890, "":"" } )";
  ASSERT_EQ(tape.Parse(text), RecordFailure{});
  const JsonValue root = tape.root();
  EXPECT_EQ(root.size(), 8U);
  EXPECT_EQ(root.Find("a").int64(), 1);
  EXPECT_EQ(root.Find("b").number_text(), "-2.50");
  EXPECT_EQ(root.Find("b").int64(), std::nullopt);
  EXPECT_EQ(root.Find("b").node().integer, -250);
  EXPECT_EQ(root.Find("c").string(), "x\ty\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(root.Find("c").text(), R"("x\ty\u00e9\ud83d\ude00")");
  EXPECT_EQ(root.Find("d").text(), "[true,false,null,{}]");
  EXPECT_EQ(root.Find("d").size(), 4U);
  EXPECT_TRUE(root.Find("e").Find("f").is_array());
  EXPECT_EQ(root.Find("g").number_text(), "1e400");
  EXPECT_EQ(root.Find("h").number_text(), "12345678901234567890");
  EXPECT_EQ(root.Find("").text(), "\"\"");
  EXPECT_FALSE(root.Find("z"));
  EXPECT_EQ(root.text(), std::string_view(text).substr(1, text.size() - 2));
}

TEST(JsonTapeTest, FindGivesTheLastOfRepeatedMembers) {
  JsonTape tape;
  ASSERT_TRUE(tape.Parse(R"({"a":1,"a":2,"b":0,"\u0061":3})").ok());
  EXPECT_EQ(tape.root().Find("a").int64(), 3);
}

TEST(JsonTapeTest, KeepsIntegersExact) {
  JsonTape tape;
  ASSERT_TRUE(tape.Parse("[9223372036854775807,-9223372036854775808,9223372036854775808,"
                         "-9223372036854775809,0,-0,999999999999999999,1000000000000000000]")
                  .ok());
  std::vector<std::optional<int64_t>> found;
  for (const JsonValue element : tape.root().elements()) {
    found.push_back(element.int64());
  }
  EXPECT_THAT(found, testing::ElementsAre(INT64_MAX, INT64_MIN, std::nullopt, std::nullopt, 0, 0,
                                          999999999999999999, 1000000000000000000));
}

TEST(JsonTapeTest, TopLevelScalarsAreDocuments) {
  JsonTape tape;
  EXPECT_TRUE(tape.Parse(" null ").ok());
  EXPECT_TRUE(tape.root().is_null());
  EXPECT_TRUE(tape.Parse("12").ok());
  EXPECT_EQ(tape.root().int64(), 12);
  EXPECT_TRUE(tape.Parse("\"a\\\\\"").ok());
  EXPECT_EQ(tape.root().string(), "a\\");
}

struct BadText {
  std::string text;
  RecordError code;
  uint64_t position;
};

class JsonTapeErrorTest : public testing::TestWithParam<BadText> {};

TEST_P(JsonTapeErrorTest, SaysWhatAndWhere) {
  const RecordFailure failure = ParseFailure(GetParam().text);
  EXPECT_EQ(failure.code, GetParam().code) << GetParam().text << ": " << failure.text;
  EXPECT_EQ(failure.position_bytes, GetParam().position) << GetParam().text;
  EXPECT_FALSE(failure.text.empty());
}

using namespace std::string_literals;  // NOLINT
INSTANTIATE_TEST_SUITE_P(
    All, JsonTapeErrorTest,
    testing::Values(
        BadText{"", RecordError::kTruncated, 0}, BadText{"  \n", RecordError::kTruncated, 3},
        BadText{"{", RecordError::kTruncated, 1}, BadText{R"({"a")", RecordError::kTruncated, 4},
        BadText{R"({"a":)", RecordError::kTruncated, 5},
        BadText{R"({"a":1)", RecordError::kTruncated, 6},
        BadText{R"({"a":1,)", RecordError::kTruncated, 7},
        BadText{R"({"a":"x)", RecordError::kTruncated, 7},
        BadText{"[1,2", RecordError::kTruncated, 4},
        BadText{"{\"a\":\"\xc3", RecordError::kTruncated, 7},
        BadText{"{a:1}", RecordError::kBadJson, 1}, BadText{R"({"a" 1})", RecordError::kBadJson, 5},
        BadText{R"({"a":1 "b":2})", RecordError::kBadJson, 7},
        BadText{R"({"a":1,})", RecordError::kBadJson, 7}, BadText{"[1,]", RecordError::kBadJson, 3},
        BadText{"[1 2]", RecordError::kBadJson, 3}, BadText{"[,]", RecordError::kBadJson, 1},
        BadText{"[1}", RecordError::kBadJson, 2}, BadText{"{]", RecordError::kBadJson, 1},
        BadText{"}", RecordError::kBadJson, 0}, BadText{"{}{}", RecordError::kBadJson, 2},
        BadText{"{} x", RecordError::kBadJson, 3}, BadText{"nul", RecordError::kBadJson, 0},
        BadText{"nulls", RecordError::kBadJson, 0}, BadText{"True", RecordError::kBadJson, 0},
        BadText{"NaN", RecordError::kBadJson, 0}, BadText{"-Infinity", RecordError::kBadJson, 0},
        BadText{"'a'", RecordError::kBadJson, 0}, BadText{"01", RecordError::kBadJson, 0},
        BadText{"-01", RecordError::kBadJson, 0}, BadText{"1.", RecordError::kBadJson, 0},
        BadText{".5", RecordError::kBadJson, 0}, BadText{"1e", RecordError::kBadJson, 0},
        BadText{"1e+", RecordError::kBadJson, 0}, BadText{"+1", RecordError::kBadJson, 0},
        BadText{"-", RecordError::kBadJson, 0}, BadText{"1-2", RecordError::kBadJson, 0},
        BadText{"0x10", RecordError::kBadJson, 0}, BadText{"[1\"a\"]", RecordError::kBadJson, 1},
        BadText{"[\"a\"1]", RecordError::kBadJson, 4},
        BadText{"[true\"a,b\"]", RecordError::kBadJson, 1},
        BadText{R"(["\x"])", RecordError::kBadJson, 2},
        BadText{R"(["\u12g4"])", RecordError::kBadJson, 2},
        BadText{R"(["\u12"])", RecordError::kBadJson, 2},
        BadText{"[\"a\nb\"]", RecordError::kBadJson, 3},
        BadText{"[\"a\0b\"]"s, RecordError::kBadJson, 3},
        BadText{"[1\0]"s, RecordError::kBadJson, 1}, BadText{"\0"s, RecordError::kBadJson, 0},
        BadText{"{}\x0c", RecordError::kBadJson, 2}, BadText{"[\x1a]", RecordError::kBadJson, 1},
        BadText{"[1,\\\"a\"]", RecordError::kTruncated, 8},
        BadText{"{\"a\":\"\xc3\x28\"}", RecordError::kBadUtf8, 6},
        BadText{"{\"a\":\"\xed\xa0\x80\"}", RecordError::kBadUtf8, 6},
        BadText{"{\"a\":\"\xff\"}", RecordError::kBadUtf8, 6},
        BadText{"{\"\xc0\xaf\":1}", RecordError::kBadUtf8, 2},
        BadText{R"(["\ud800"])", RecordError::kBadUtf8, 2},
        BadText{R"(["x\udc00"])", RecordError::kBadUtf8, 3},
        BadText{R"(["\ud800\u0041"])", RecordError::kBadUtf8, 2},
        BadText{R"(["\ud800\n"])", RecordError::kBadUtf8, 2}));

TEST(JsonTapeTest, DepthIsLimited) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(ParseFailure(nested(512)).ok());
  const RecordFailure failure = ParseFailure(nested(513));
  EXPECT_EQ(failure.code, RecordError::kTooDeep);
  EXPECT_EQ(failure.position_bytes, 512U);
  EXPECT_EQ(ParseFailure(std::string(100'000, '[')).code, RecordError::kTooDeep);
  std::string objects;
  for (int i = 0; i < 513; ++i) {
    objects += R"({"a":)";
  }
  EXPECT_EQ(ParseFailure(objects).code, RecordError::kTooDeep);
}

TEST(JsonTapeTest, SizeIsLimited) {
  const JsonLimits limits{.max_record_bytes = 10};
  EXPECT_TRUE(ParseFailure("[1,2,3,45]", limits).ok());
  EXPECT_EQ(ParseFailure("[1,2,3,456]", limits).code, RecordError::kTooLarge);
}

TEST(JsonTapeTest, IsReusableAfterAFailure) {
  JsonTape tape;
  EXPECT_FALSE(tape.Parse("{\"a\":\"\xff\"}").ok());
  EXPECT_FALSE(tape.Parse("{]").ok());
  EXPECT_TRUE(tape.Parse("{\"a\":7}").ok());
  EXPECT_EQ(tape.root().Find("a").int64(), 7);
}

// Random documents: what nlohmann writes, we read the same.
class RandomJson {
 public:
  explicit RandomJson(uint64_t seed) : random_(seed) {}

  nlohmann::json Value(int depth) {
    switch (Pick(depth > 0 ? 9 : 6)) {
      case 0:
        return nullptr;
      case 1:
        return Pick(2) == 0;
      case 2:
        return static_cast<int64_t>(random_());
      case 3:
        return static_cast<int64_t>(Pick(2000)) - 1000;
      case 4:
        return std::ldexp(static_cast<double>(random_()), static_cast<int>(Pick(200)) - 100);
      case 5:
        return Text();
      case 6:
      case 7: {
        auto object = nlohmann::json::object();
        for (uint64_t i = Pick(8); i > 0; --i) {
          object[Text()] = Value(depth - 1);
        }
        return object;
      }
      default: {
        auto array = nlohmann::json::array();
        for (uint64_t i = Pick(8); i > 0; --i) {
          array.push_back(Value(depth - 1));
        }
        return array;
      }
    }
  }

  uint64_t Pick(uint64_t count) { return random_() % count; }

 private:
  std::string Text() {
    static const std::vector<std::string> kPieces = {
        "a",    "Zz", "\"", "\\", "\n", "\t",
        "/",    " ",  "é",  "✓",  "😀", std::string(1, '\0'),
        "{",    "[",  ":",  ",",  "0",  "longer piece of text",
        "\x1f", "}"};
    std::string text;
    for (uint64_t i = Pick(12); i > 0; --i) {
      text += kPieces[Pick(kPieces.size())];
    }
    return text;
  }

  std::mt19937_64 random_;
};

TEST(JsonTapeTest, AgreesWithAnotherParserOnRandomDocuments) {
  JsonTape tape;
  RandomJson random(20260131);
  for (int i = 0; i < 2000; ++i) {
    const nlohmann::json expected = random.Value(5);
    const std::string text = expected.dump(random.Pick(2) == 0 ? -1 : 2, ' ', random.Pick(2) == 0);
    const RecordFailure failure = tape.Parse(text);
    ASSERT_TRUE(failure.ok()) << failure.text << "\n" << text;
    ASSERT_EQ(ToOracle(tape.root()), expected) << text;
  }
}

TEST(JsonTapeTest, AgreesWithAnotherParserOnDamagedDocuments) {
  JsonTape tape;
  RandomJson random(7);
  int accepted = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string text = random.Value(3).dump();
    static constexpr std::string_view kDamage = "\"\\{}[]:, 0-.eu\n\xff\xc3\x01x";
    for (uint64_t n = 1 + random.Pick(2); n > 0; --n) {
      const size_t at = random.Pick(text.size());
      if (random.Pick(2) == 0) {
        text[at] = kDamage[random.Pick(kDamage.size())];
      } else {
        text.erase(at, 1 + random.Pick(3));
      }
      if (text.empty()) {
        text = "1";
      }
    }
    const bool ours = tape.Parse(text).ok();
    // nlohmann refuses numbers beyond double, which are valid JSON.
    const nlohmann::json theirs = nlohmann::json::parse(text, nullptr, false);
    if (ours != !theirs.is_discarded()) {
      ASSERT_TRUE(ours) << text;
      EXPECT_NE(text.find_first_of("eE"), std::string::npos) << text;
    } else if (ours) {
      ++accepted;
      EXPECT_EQ(ToOracle(tape.root()), theirs) << text;
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace tarn::format
