#include "tarn/format/json_index.h"

#include <random>

#include "tarn/base/utf8.h"
#include "test/support/matchers.h"

namespace tarn::format {
namespace {

// The definition, byte by byte.
std::optional<std::vector<uint32_t>> Reference(std::string_view text) {
  std::vector<uint32_t> offsets;
  bool in_string = false;
  bool in_scalar = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (static_cast<unsigned char>(c) < 0x20) {
        return std::nullopt;
      }
      if (c == '\\') {
        ++i;
        if (i < text.size() && static_cast<unsigned char>(text[i]) < 0x20) {
          return std::nullopt;
        }
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    const bool op = std::string_view("{}[]:,\x0c\x1a").find(c) != std::string_view::npos;
    const bool space = std::string_view(" \t\n\r").find(c) != std::string_view::npos;
    if (c == '\\' || (!op && !space && c != '"')) {
      if (!in_scalar) {
        offsets.push_back(static_cast<uint32_t>(i));
      }
      in_scalar = true;
      if (c == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\')) {
        ++i;  // Escaped outside of a string: part of what the walk will refuse.
      }
      continue;
    }
    if (c == '"') {
      if (!in_scalar) {
        offsets.push_back(static_cast<uint32_t>(i));
      }
      in_string = true;
    } else if (op) {
      offsets.push_back(static_cast<uint32_t>(i));
    }
    in_scalar = false;
  }
  if (in_string || !IsValidUtf8(text)) {
    return std::nullopt;
  }
  return offsets;
}

std::optional<std::vector<uint32_t>> Offsets(JsonIndex& index, std::string_view text) {
  if (!index.Find(text)) {
    EXPECT_EQ(index.size(), 0U);
    return std::nullopt;
  }
  return std::vector<uint32_t>(index.begin(), index.end());
}

class JsonIndexTest : public testing::TestWithParam<JsonIndex::Level> {
 protected:
  JsonIndex index_{GetParam()};
};

TEST_P(JsonIndexTest, FindsStructuralCharacters) {
  EXPECT_EQ(Offsets(index_, ""), std::vector<uint32_t>{});
  EXPECT_EQ(Offsets(index_, R"({"a\"{":[1, true]} "x")"),
            (std::vector<uint32_t>{0, 1, 7, 8, 9, 10, 12, 16, 17, 19}));
  EXPECT_TRUE(index_.has_backslash());
  EXPECT_TRUE(index_.Find("[1]"));
  EXPECT_FALSE(index_.has_backslash());
}

TEST_P(JsonIndexTest, RunsOfBackslashesAcrossBlocks) {
  for (size_t before = 50; before < 70; ++before) {
    for (size_t run = 0; run < 70; ++run) {
      const std::string text = "\"" + std::string(before, 'x') + std::string(run, '\\') + "\",1";
      EXPECT_EQ(Offsets(index_, text), run % 2 == 0 ? std::optional(std::vector<uint32_t>{
                                                          0, static_cast<uint32_t>(text.size() - 2),
                                                          static_cast<uint32_t>(text.size() - 1)})
                                                    : std::nullopt)
          << before << " " << run;
    }
  }
}

TEST_P(JsonIndexTest, AgreesWithTheDefinitionOnRandomText) {
  std::mt19937_64 random(11);
  static const std::vector<std::string> kPieces = {"{",
                                                   "}",
                                                   "[",
                                                   "]",
                                                   ":",
                                                   ",",
                                                   "\"",
                                                   "\"",
                                                   "\"abc\"",
                                                   "12",
                                                   "true",
                                                   " ",
                                                   "\n",
                                                   "\\\"",
                                                   "x",
                                                   "é",
                                                   "😀",
                                                   "\t",
                                                   "some longer plain text without quotes",
                                                   "\x0c"};
  int good = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (uint64_t n = random() % 60; n > 0; --n) {
      text += kPieces[random() % kPieces.size()];
    }
    const auto expected = Reference(text);
    good += expected.has_value() ? 1 : 0;
    ASSERT_EQ(Offsets(index_, text), expected) << text;
  }
  EXPECT_GT(good, 1000);
}

TEST_P(JsonIndexTest, AgreesOnWhatIsUtf8) {
  std::mt19937_64 random(12);
  static const std::vector<std::string> kPieces = {"a",
                                                   "bcdefgh",
                                                   "é",
                                                   "✓",
                                                   "😀",
                                                   "\xc3",
                                                   "\x80",
                                                   "\xe2\x9c",
                                                   "\xed\xa0\x80",
                                                   "\xf0\x9f\x98",
                                                   "\xc0\xaf",
                                                   "\xf4\x8f\xbf\xbf",
                                                   "\xf4\x90\x80\x80",
                                                   "\xe0\x80\x80",
                                                   "\xf0\x80\x80\x80",
                                                   "\xff",
                                                   "\xed\x9f\xbf",
                                                   "\xee\x80\x80",
                                                   "\xf5\x80\x80\x80"};
  int good = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text(random() % 70, 'x');
    for (uint64_t n = 1 + random() % 20; n > 0; --n) {
      const uint64_t pick = random() % 40;
      text += kPieces[pick < 35 ? pick % 5 : 5 + random() % (kPieces.size() - 5)];
    }
    text += std::string(random() % 70, 'y');
    good += IsValidUtf8(text) ? 1 : 0;
    ASSERT_EQ(index_.Find(text), IsValidUtf8(text)) << testing::PrintToString(text);
  }
  EXPECT_GT(good, 500);
  for (uint32_t lead = 0x80; lead < 0x100; ++lead) {
    for (uint32_t second = 0; second < 0x100; ++second) {
      for (const char* rest : {"", "\x80", "\x80\x80", "\xbf\xbf", "a"}) {
        const std::string text = std::string(62, ' ') + static_cast<char>(lead) +
                                 (second < 0x20 ? "" : std::string(1, static_cast<char>(second))) +
                                 rest;
        if (text.find('"') == std::string::npos) {
          ASSERT_EQ(index_.Find(text), IsValidUtf8(text)) << lead << " " << second << " " << rest;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, JsonIndexTest,
                         testing::Values(JsonIndex::Level::kPortable, JsonIndex::BestLevel()));

}  // namespace
}  // namespace tarn::format
