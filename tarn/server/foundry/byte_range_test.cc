#include "tarn/server/foundry/byte_range.h"

#include "test/support/matchers.h"

namespace tarn::server::foundry {
namespace {

using Range = std::optional<RangeOfBytes>;

TEST(ByteRangeTest, TheThreeForms) {
  EXPECT_THAT(ParseRange("bytes=0-3", 10), IsOkAndHolds(Range({0, 4})));
  EXPECT_THAT(ParseRange("bytes=9-9", 10), IsOkAndHolds(Range({9, 1})));
  EXPECT_THAT(ParseRange("bytes=7-", 10), IsOkAndHolds(Range({7, 3})));
  EXPECT_THAT(ParseRange("bytes=-3", 10), IsOkAndHolds(Range({7, 3})));
  EXPECT_THAT(ParseRange("bytes=0-99999999999999999999999", 10), IsOkAndHolds(Range({0, 10})));
  EXPECT_THAT(ParseRange("bytes=-99", 10), IsOkAndHolds(Range({0, 10})));
}

TEST(ByteRangeTest, WhatMayBeIgnoredIs) {
  for (const char* field : {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-2", "lines=1-2",
                            "bytes=0-1,3-4", "bytes= 0-1", "bytes=+1-2", "bytes=1--2"}) {
    EXPECT_THAT(ParseRange(field, 10), IsOkAndHolds(Range())) << field;
  }
}

TEST(ByteRangeTest, NothingOfTheContentIsAFailure) {
  EXPECT_THAT(ParseRange("bytes=10-", 10), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(ParseRange("bytes=10-11", 10), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(ParseRange("bytes=-0", 10), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(ParseRange("bytes=0-", 0), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(ParseRange("bytes=-5", 0), Fails(ErrorCode::kInvalidArgument));
}

}  // namespace
}  // namespace tarn::server::foundry
