#include "tarn/base/rid.h"

#include <unordered_set>

#include "test/support/matchers.h"

namespace tarn {
namespace {

TEST(RidTest, MadeRidsParseToTheirParts) {
  ASSERT_OK_AND_ASSIGN(const Uuid uuid, Uuid::Parse("0190a0b1-c2d3-7e4f-8a5b-0123456789ab"));
  const Rid rid = Rid::Make("foundry", "dataset", uuid);
  EXPECT_EQ(rid.ToString(), "ri.foundry.main.dataset.0190a0b1-c2d3-7e4f-8a5b-0123456789ab");
  EXPECT_THAT(Rid::Parse(rid.ToString()), IsOkAndHolds(rid));
  EXPECT_EQ(rid.service(), "foundry");
  EXPECT_EQ(rid.type(), "dataset");
  EXPECT_EQ(rid.locator(), uuid.ToString());
}

TEST(RidTest, InstancesMayBeEmptyAndLocatorsHaveDots) {
  ASSERT_OK_AND_ASSIGN(const Rid rid, Rid::Parse("ri.a..view.x.Y_z-1"));
  EXPECT_EQ(rid.service(), "a");
  EXPECT_EQ(rid.type(), "view");
  EXPECT_EQ(rid.locator(), "x.Y_z-1");
  EXPECT_OK(Rid::Parse("ri.a.1-b.c.d"));
}

TEST(RidTest, RefusesOtherText) {
  for (const char* text :
       {"", "ri", "ri.", "ri.a.b.c", "ri.a.b.c.", "ri..b.c.d", "ri.a.b..d", "ri.A.b.c.d",
        "ri.1a.b.c.d", "ri.a.b.1c.d", "ri.a.b.c.d e", "ri.a.b.c.d/e", "ri.a_b.c.d.e", "RI.a.b.c.d",
        " ri.a.b.c.d", "ri.a.b.c.d\n", "ri.a.b.c.d\xC3\xA9"}) {
    EXPECT_THAT(Rid::Parse(text), Fails(ErrorCode::kInvalidArgument)) << text;
    EXPECT_FALSE(IsRid(text)) << text;
  }
}

TEST(RidTest, AnEmptyRidHasEmptyParts) {
  const Rid rid;
  EXPECT_TRUE(rid.empty());
  EXPECT_EQ(rid.service(), "");
  EXPECT_EQ(rid.type(), "");
  EXPECT_EQ(rid.locator(), "");
}

TEST(RidTest, OrdersAndHashesByText) {
  ASSERT_OK_AND_ASSIGN(const Rid a, Rid::Parse("ri.a.b.c.1"));
  ASSERT_OK_AND_ASSIGN(const Rid b, Rid::Parse("ri.a.b.c.2"));
  EXPECT_LT(a, b);
  EXPECT_EQ((std::unordered_set<Rid>{a, b, a}).size(), 2u);
}

}  // namespace
}  // namespace tarn
