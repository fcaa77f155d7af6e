#include "tarn/lakehouse/change_identifier.h"

#include "test/support/matchers.h"

namespace tarn::lakehouse {
namespace {

std::string Next(ChangeNumbering& numbering, Timestamp landed, Timestamp source) {
  std::string text(kChangeIdentifierSize, ' ');
  numbering.Next(landed, source, text.data());
  return text;
}

Timestamp At(std::string_view text) { return ParseTimestamp(text).value(); }

TEST(ChangeIdentifierTest, WritesTheThreeParts) {
  ChangeNumbering numbering({});
  EXPECT_EQ(Next(numbering, FromMillis(1789000000000), At("2026-11-30T10:15:42.339Z")),
            "178900000000020261130101542330000000000000000001");
  EXPECT_EQ(numbering.last().change_number, 1);
}

TEST(ChangeIdentifierTest, ParseUndoesFormat) {
  ChangeNumbering numbering({});
  const std::string text =
      Next(numbering, FromMillis(1700000000123), At("2024-02-29T23:59:59.999999Z"));
  ASSERT_OK_AND_ASSIGN(const ChangeIdentifier parsed, ParseChangeIdentifier(text));
  EXPECT_EQ(parsed, numbering.last());
  EXPECT_EQ(FormatChangeIdentifier(parsed), text);
}

TEST(ChangeIdentifierTest, TimesThatGoBackAreRaisedSoThatOrderIsArrival) {
  ChangeNumbering numbering({});
  std::string previous;
  const Timestamp start = At("2026-01-01T00:00:00Z");
  for (const int64_t shift : {0, 5000, -9000, 3, 0, 70'000'000, -1}) {
    const std::string text = Next(numbering, start + std::chrono::microseconds{shift},
                                  start - std::chrono::microseconds{shift});
    EXPECT_LT(previous, text);
    previous = text;
  }
}

TEST(ChangeIdentifierTest, GoesOnAfterTheLastOne) {
  ChangeNumbering first({});
  const Timestamp time = At("2026-01-01T00:00:00Z");
  const std::string one = Next(first, time, time);
  ASSERT_OK_AND_ASSIGN(const ChangeIdentifier last, ParseChangeIdentifier(one));
  ChangeNumbering second(last);
  EXPECT_EQ(Next(second, time, time), Next(first, time, time));
}

TEST(ChangeIdentifierTest, TimesBeyondTheFormatAreClamped) {
  ChangeNumbering numbering({});
  EXPECT_OK(ParseChangeIdentifier(Next(numbering, FromMicros(-1), FromMicros(-77))));
  EXPECT_OK(ParseChangeIdentifier(Next(numbering, FromMicros(INT64_MAX), FromMicros(INT64_MAX))));
}

TEST(ChangeIdentifierTest, RefusesWhatIsNotOne) {
  for (const std::string_view text : {"", "1", "17890000000002026113010154233000000000000000000x",
                                      "178900000000020261330101542330000000000000000001",
                                      "178900000000020261130251542330000000000000000001"}) {
    EXPECT_THAT(ParseChangeIdentifier(text), Fails(ErrorCode::kCorruption)) << text;
  }
}

}  // namespace
}  // namespace tarn::lakehouse
