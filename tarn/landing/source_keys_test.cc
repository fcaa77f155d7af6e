#include "tarn/landing/source_keys.h"

#include "test/support/matchers.h"

namespace tarn::landing {
namespace {

using ::testing::ElementsAre;

class SourceKeysTest : public ::testing::Test {
 protected:
  void Note(std::string_view table, std::string_view key) {
    format::JsonTape tape;
    ASSERT_TRUE(tape.Parse(key).ok());
    keys_.Note(table, tape.root());
  }

  SourceKeys keys_;
};

TEST_F(SourceKeysTest, OneKeyOfAllTables) {
  EXPECT_THAT(keys_.Common(), FailsWith(ErrorCode::kFailedPrecondition, "give key:"));
  Note("s.a", R"({"id": 1, "day": 2})");
  Note("s.a", R"({"day": 2, "id": 1})");
  Note("s.b", R"({"id": 1, "day": 2})");
  keys_.Note("s.a", {});  // A record without key.
  EXPECT_THAT(*keys_.Common(), ElementsAre("id", "day"));
  Note("s.a", R"({"no": 1})");  // The source has a new one.
  EXPECT_THAT(keys_.Common(), FailsWith(ErrorCode::kFailedPrecondition, "s.a: no; s.b: id, day"));
  Note("s.b", R"({"no": 1})");
  EXPECT_THAT(*keys_.Common(), ElementsAre("no"));
}

TEST_F(SourceKeysTest, ATableWithoutKeyIsNamed) {
  Note("s.a", R"({"id": 1})");
  for (const char* none : {"null", "7", "{}", "[1]"}) {
    Note("s.b", none);
  }
  EXPECT_THAT(keys_.Common(), FailsWith(ErrorCode::kFailedPrecondition, "s.b have no key"));
  Note("s.b", R"({"id": 1})");
  EXPECT_THAT(*keys_.Common(), ElementsAre("id"));
}

TEST_F(SourceKeysTest, TooManyTablesHaveNoCommonKey) {
  for (int i = 0; i < 1000; ++i) {
    Note("s." + std::to_string(i), R"({"id": 1})");
  }
  EXPECT_THAT(*keys_.Common(), ElementsAre("id"));
  Note("s.one_more", R"({"id": 1})");
  EXPECT_THAT(keys_.Common(), FailsWith(ErrorCode::kFailedPrecondition, "more than 1000 tables"));
  EXPECT_EQ(*SourceKeys::Decode(keys_.Encode()), keys_);
}

TEST_F(SourceKeysTest, AreReadAsTheyWereWritten) {
  EXPECT_EQ(*SourceKeys::Decode(keys_.Encode()), keys_);
  Note("s.\"a", R"({"é": 1, "b": 2})");
  keys_.Note("s.b", {});
  EXPECT_EQ(*SourceKeys::Decode(keys_.Encode()), keys_);
  for (const char* broken : {"", "[]", "{", R"({"t": "id"})", R"({"t": [1]})", R"({"t": null})"}) {
    EXPECT_THAT(SourceKeys::Decode(broken), Fails(ErrorCode::kCorruption)) << broken;
  }
}

}  // namespace
}  // namespace tarn::landing
