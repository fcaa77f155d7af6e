#include "tarn/source/kafka/topic_selection.h"

#include "test/support/matchers.h"

namespace tarn::source::kafka {
namespace {

using ::testing::ElementsAre;

TEST(TopicSelectionTest, PercentStandsForAnyCharacters) {
  EXPECT_TRUE(MatchesTopic("shop.%", "shop.orders"));
  EXPECT_TRUE(MatchesTopic("shop.%", "shop."));
  EXPECT_TRUE(MatchesTopic("%.orders", "a.b.orders"));
  EXPECT_TRUE(MatchesTopic("a%b%c", "a1b2b3c"));
  EXPECT_TRUE(MatchesTopic("%", ""));
  EXPECT_FALSE(MatchesTopic("shop.%", "shopping"));
  EXPECT_FALSE(MatchesTopic("a%b%c", "a1b2b3"));
  EXPECT_FALSE(MatchesTopic("orders", "orders2"));
  EXPECT_FALSE(MatchesTopic("Orders", "orders"));
}

TEST(TopicSelectionTest, ExclusionsWin) {
  ASSERT_OK_AND_ASSIGN(const TopicSelection selection,
                       TopicSelection::Make({"shop.%", "extra"}, {"shop.internal%", "extra2"}));
  EXPECT_TRUE(selection.Matches("shop.orders"));
  EXPECT_TRUE(selection.Matches("extra"));
  EXPECT_FALSE(selection.Matches("shop.internal.log"));
  EXPECT_FALSE(selection.Matches("other"));
  EXPECT_THAT(selection.named(), ElementsAre("extra"));
  EXPECT_TRUE(selection.has_patterns());
}

TEST(TopicSelectionTest, TopicsOfTheClusterAreReadByNameOnly) {
  ASSERT_OK_AND_ASSIGN(const TopicSelection all, TopicSelection::Make({"%"}, {}));
  EXPECT_FALSE(all.Matches("__consumer_offsets"));
  ASSERT_OK_AND_ASSIGN(const TopicSelection named,
                       TopicSelection::Make({"__consumer_offsets"}, {}));
  EXPECT_TRUE(named.Matches("__consumer_offsets"));
  EXPECT_FALSE(named.has_patterns());
}

TEST(TopicSelectionTest, WhatIsNoTopicIsRefused) {
  EXPECT_THAT(TopicSelection::Make({}, {}), Fails(ErrorCode::kInvalidArgument));
  for (const char* name : {"", "a b", "a/b", "..", "ä"}) {
    EXPECT_THAT(TopicSelection::Make({name}, {}), Fails(ErrorCode::kInvalidArgument)) << name;
    EXPECT_THAT(TopicSelection::Make({"a"}, {name}), Fails(ErrorCode::kInvalidArgument)) << name;
  }
  EXPECT_THAT(TopicSelection::Make({std::string(250, 'a')}, {}),
              Fails(ErrorCode::kInvalidArgument));
}

}  // namespace
}  // namespace tarn::source::kafka
