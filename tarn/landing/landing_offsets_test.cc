#include "tarn/landing/landing_offsets.h"

#include "tarn/landing/landing_state.h"
#include "test/support/metastore_fixture.h"

namespace tarn::landing {
namespace {

using source::kafka::LossCause;

TEST(LandedTopicsTest, RecordsComeBack) {
  const LandedTopics topics{
      .ranges = {{{"a", 0}, 5, 9, 3}, {{"b", 12}, 0, 1, 1}},
      .gaps = {{{"a", 0}, 2, 5, LossCause::kRetention}, {{"b", 12}, 7, 0, LossCause::kRemade}}};
  const std::string record = R"({"positions":{"commit":1,"kafka":)" + EncodeTopics(topics) + "}}";
  ASSERT_OK_AND_ASSIGN(const std::optional<LandedTopics> read, DecodeTopics(record));
  EXPECT_EQ(read, topics);
}

TEST(LandedTopicsTest, OtherRecordsHaveNone) {
  for (const char* record : {"", "{}", R"({"positions":{"commit":1}})", "no JSON"}) {
    ASSERT_OK_AND_ASSIGN(const std::optional<LandedTopics> read, DecodeTopics(record));
    EXPECT_FALSE(read.has_value()) << record;
  }
}

TEST(LandedTopicsTest, BrokenRecordsAreCorrupt) {
  for (const char* kafka :
       {"1", "{}", R"({"ranges":1})", R"({"ranges":[{}]})",
        R"({"ranges":[{"topic":"a","partition":0,"from":1,"to":"x","holes":0}]})",
        R"({"ranges":[],"gaps":[{"topic":"a","partition":0,"from":1,"to":2}]})"}) {
    EXPECT_THAT(DecodeTopics(R"({"positions":{"kafka":)" + std::string(kafka) + "}}"),
                Fails(ErrorCode::kCorruption))
        << kafka;
  }
}

class LandingOffsetsTest : public MetastoreFixture {};

TEST_F(LandingOffsetsTest, AreKeptByDataset) {
  OpenWith({Migrations()});
  const StoredOffsets offsets{
      {{"a", 0}, {1, 5, source::kafka::SeenMessage{.offset = 3, .digest = UINT64_MAX}}},
      {{"a", 1}, {0, 0}}};
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(WriteOffsets(
        sql, "one", {{{"a", 0}, {1, 1}}, {{"a", 1}, {0, 0, source::kafka::SeenMessage{}}}}));
    TARN_RETURN_IF_ERROR(WriteOffsets(sql, "two", {{{"a", 0}, {7, 7}}}));
    return WriteOffsets(sql, "one", offsets);
  }));
  ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const StoredOffsets read, ReadOffsets(sql, "one"));
    EXPECT_EQ(read, offsets);
    return Status::Ok();
  }));
}

}  // namespace
}  // namespace tarn::landing
