#include "tarn/landing/topic_names.h"

#include "test/support/matchers.h"

namespace tarn::landing {
namespace {

TEST(TopicNamesTest, DatasetsHavePlainNames) {
  EXPECT_EQ(DatasetNameOf("Shop.Orders-2"), "shop_orders_2");
  EXPECT_EQ(DatasetNameOf("a b_c"), "ab_c");
}

TEST(TopicNamesTest, PatternsMayGiveDatasets) {
  EXPECT_TRUE(MayGiveDataset({"Shop.%"}, "shop_orders"));
  EXPECT_TRUE(MayGiveDataset({"other", "my-topic"}, "my_topic"));
  EXPECT_FALSE(MayGiveDataset({"shop.%", "my-topic"}, "shopping"));
}

std::string Json(const std::vector<source::kafka::KafkaHeader>& headers) {
  std::string text = "old";
  WriteHeadersJson(headers, text);
  return text;
}

TEST(TopicNamesTest, HeadersKeepTheirOrder) {
  EXPECT_EQ(Json({}), "");
  EXPECT_EQ(Json({{"b", "1"}, {"a", std::nullopt}, {"c", ""}}), R"({"b":"1","a":null,"c":""})");
  EXPECT_EQ(Json({{"a", "1"}, {"b", "x"}, {"a", "2"}, {"a", "3"}}),
            R"({"a":["1","2","3"],"b":"x"})");
  EXPECT_EQ(Json({{"q\"", "\n"}, {"raw", "\xff\x01"}}), R"({"q\"":"\n","raw":{"base64":"/wE="}})");
}

}  // namespace
}  // namespace tarn::landing
