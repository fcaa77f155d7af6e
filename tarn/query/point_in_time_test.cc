#include "tarn/query/point_in_time.h"

#include "test/support/matchers.h"

namespace tarn::query {

namespace {

TEST(PointInTimeTest, EachKindIsTold) {
  const dataset::TransactionRid transaction{};
  EXPECT_THAT(ParsePointInTime(""), IsOkAndHolds(PointInTime(Newest{})));
  EXPECT_THAT(ParsePointInTime("7340"), IsOkAndHolds(PointInTime(SnapshotId{7340})));
  EXPECT_THAT(ParsePointInTime("1970-01-01T00:00:01Z"),
              IsOkAndHolds(PointInTime(FromMillis(1000))));
  EXPECT_THAT(ParsePointInTime(transaction.ToString()), IsOkAndHolds(PointInTime(transaction)));
}

TEST(PointInTimeTest, TextComesBack) {
  for (const char* text : {"1970-01-01T00:00:01.000000Z",
                           "ri.foundry.main.transaction.00000000-0000-0000-0000-000000000000"}) {
    ASSERT_OK_AND_ASSIGN(const PointInTime point, ParsePointInTime(text));
    EXPECT_EQ(FormatPointInTime(point), text);
  }
  EXPECT_EQ(FormatPointInTime(SnapshotId{5}), "snapshot 5");
  EXPECT_EQ(FormatPointInTime(Newest{}), "now");
}

TEST(PointInTimeTest, OtherTextsAreRefused) {
  for (const char* text : {"yesterday", "-5", "99999999999999999999", "2026-01-31T12:00:00",
                           "ri.foundry.main.dataset.00000000-0000-0000-0000-000000000000"}) {
    EXPECT_THAT(ParsePointInTime(text), Fails(ErrorCode::kInvalidArgument)) << text;
  }
}

}  // namespace

}  // namespace tarn::query
