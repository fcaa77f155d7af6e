#include "tarn/storage/s3/session_policy.h"

#include <nlohmann/json.hpp>

#include "test/support/matchers.h"

namespace tarn::storage::s3 {
namespace {

using nlohmann::json;

json Plan(KeyFolders folders, std::string_view region = "eu-1") {
  const std::optional<SessionPolicy> policy = PlanSessionPolicy("lake", region, std::move(folders));
  return policy ? json::parse(policy->text) : json();
}

TEST(SessionPolicyTest, ReadersReadAndListTheirFolderOnly) {
  EXPECT_EQ(Plan({.read = {"w/tables/t1"}, .write = {}}), json::parse(R"({
    "Version": "2012-10-17",
    "Statement": [
      {"Effect": "Allow", "Action": ["s3:GetObject"],
       "Resource": ["arn:aws:s3:::lake/w/tables/t1/*"]},
      {"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": ["arn:aws:s3:::lake"],
       "Condition": {"StringLike": {"s3:prefix": ["w/tables/t1/*"]}}},
      {"Effect": "Allow", "Action": ["s3:GetBucketLocation"], "Resource": ["arn:aws:s3:::lake"]}
    ]})"));
}

TEST(SessionPolicyTest, WritersAlsoWriteButNotWhereTheyOnlyRead) {
  const json policy = Plan({.read = {"other"}, .write = {"own", "before"}});
  const json& write = policy["Statement"][0];
  EXPECT_EQ(write["Resource"], json({"arn:aws:s3:::lake/own/*", "arn:aws:s3:::lake/before/*"}));
  EXPECT_THAT(write["Action"].get<std::vector<std::string>>(),
              ::testing::IsSupersetOf({"s3:GetObject", "s3:PutObject", "s3:DeleteObject"}));
  EXPECT_EQ(policy["Statement"][1]["Action"], json({"s3:GetObject"}));
  EXPECT_EQ(policy["Statement"][1]["Resource"], json({"arn:aws:s3:::lake/other/*"}));
  EXPECT_EQ(policy["Statement"][2]["Condition"]["StringLike"]["s3:prefix"],
            json({"own/*", "before/*", "other/*"}));
}

TEST(SessionPolicyTest, ArnsFollowTheRegion) {
  const auto arn = [](std::string_view region) {
    return Plan({.read = {"a"}, .write = {}}, region)["Statement"][0]["Resource"][0]
        .get<std::string>();
  };
  EXPECT_EQ(arn("cn-north-1"), "arn:aws-cn:s3:::lake/a/*");
  EXPECT_EQ(arn("us-gov-west-1"), "arn:aws-us-gov:s3:::lake/a/*");
}

TEST(SessionPolicyTest, NothingThatAPolicyWouldTakeForAPattern) {
  for (const char* folder : {"", "a*", "a?b", "${aws:username}", "a$"}) {
    EXPECT_EQ(Plan({.read = {}, .write = {folder}}), json()) << folder;
    EXPECT_EQ(Plan({.read = {folder}, .write = {"own"}}), json()) << folder;
  }
  EXPECT_NE(Plan({.read = {}, .write = {"a b/\"q\"/+%1F"}}), json());
}

TEST(SessionPolicyTest, WhatDoesNotFitIsLeftOutButTheFirst) {
  KeyFolders many;
  for (int i = 0; i < 30; ++i) {
    many.write.push_back("own" + std::to_string(i) + std::string(90, 'x'));
  }
  const std::optional<SessionPolicy> policy = PlanSessionPolicy("lake", "", many);
  ASSERT_TRUE(policy.has_value());
  EXPECT_LE(policy->text.size(), kSessionPolicyMax);
  const json resources = json::parse(policy->text)["Statement"][0]["Resource"];
  EXPECT_GT(resources.size(), 2u);
  EXPECT_EQ(policy->folders.write.size(), resources.size());
  EXPECT_EQ(resources[0], "arn:aws:s3:::lake/" + many.write[0] + "/*");
  EXPECT_EQ(Plan({.read = {std::string(3000, 'x')}, .write = {}}), json());
}

}  // namespace
}  // namespace tarn::storage::s3
