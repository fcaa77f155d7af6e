#include "tarn/landing/landing_state.h"

#include "test/support/matchers.h"

namespace tarn::landing {
namespace {

TEST(LandingPositionsTest, AreReadAsTheyWereWritten) {
  LandingPositions positions{
      .commit_number = 7,
      .complete_until = FromMicros(5),
      .resume = source::files::FileResume{.key = "a",
                                          .version = {.etag = "e", .size_bytes = 9, .modified = {}},
                                          .offset_bytes = 4,
                                          .rows_done = 2,
                                          .seen_bytes = 8,
                                          .seen_hash = UINT64_MAX}};
  const auto record = [&] { return "{\"positions\":" + EncodePositions(positions) + "}"; };
  EXPECT_EQ(*DecodePositions(record()), positions);
  positions.complete_until.reset();
  positions.resume.reset();
  EXPECT_EQ(*DecodePositions(record()), positions);
}

TEST(LandingPositionsTest, RecordsOfOthersHaveNone) {
  for (const char* record : {"", "x", "[]", "{}", R"({"positionen":{}})"}) {
    EXPECT_EQ(*DecodePositions(record), std::nullopt) << record;
  }
}

TEST(LandingPositionsTest, BrokenOnesAreNamed) {
  for (const char* positions :
       {"1", "{}", R"({"commit":"1"})", R"({"commit":1,"resume":2})",
        R"({"commit":1,"complete_until":"x"})", R"({"commit":1,"resume":{"key":1}})",
        R"({"commit":1,"resume":{"offset":"x"}})"}) {
    EXPECT_THAT(DecodePositions("{\"positions\":" + std::string(positions) + "}"),
                Fails(ErrorCode::kCorruption))
        << positions;
  }
}

}  // namespace
}  // namespace tarn::landing
