#include "tarn/source/kafka/client_settings.h"

#include "test/support/matchers.h"

namespace tarn::source::kafka {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ClientSettingsTest, PropertiesOfTheLibraryPass) {
  EXPECT_OK(CheckProperty("security.protocol", "SASL_SSL"));
  EXPECT_OK(CheckProperty("sasl.mechanism", "SCRAM-SHA-512"));
  EXPECT_OK(CheckProperty("sasl.password", "pass"));
  EXPECT_OK(CheckProperty("fetch.wait.max.ms", "100"));
  EXPECT_OK(CheckProperty("group.id", "mine"));
}

TEST(ClientSettingsTest, WhatExactlyOnceRestsOnIsOurs) {
  for (const char* name : {"enable.auto.commit", "auto.offset.reset", "isolation.level",
                           "bootstrap.servers", "enable.partition.eof"}) {
    EXPECT_THAT(CheckProperty(name, "true"),
                FailsWith(ErrorCode::kInvalidArgument, "is set by tarn"))
        << name;
  }
}

TEST(ClientSettingsTest, NothingLoadsLibrariesOrRunsPrograms) {
  for (const char* name : {"plugin.library.paths", "sasl.kerberos.kinit.cmd", "ssl.engine.location",
                           "ssl.providers", "test.mock.num.brokers"}) {
    EXPECT_THAT(CheckProperty(name, "1"), FailsWith(ErrorCode::kInvalidArgument, "may not be set"))
        << name;
  }
}

TEST(ClientSettingsTest, UnknownNamesAndBadValuesAreNamed) {
  EXPECT_THAT(CheckProperty("fetch.wait", "1"),
              FailsWith(ErrorCode::kInvalidArgument, "no property fetch.wait"));
  EXPECT_THAT(CheckProperty("security.protocol", "telnet"),
              FailsWith(ErrorCode::kInvalidArgument, "telnet"));
  const Status secret = CheckProperty("ssl.key.pem", "topsecret");
  EXPECT_THAT(secret.message(), Not(HasSubstr("topsecret")));
  EXPECT_TRUE(IsSecretProperty("ssl.key.password"));
  EXPECT_TRUE(IsSecretProperty("sasl.oauthbearer.client.secret"));
  EXPECT_FALSE(IsSecretProperty("fetch.wait.max.ms"));
}

TEST(ClientSettingsTest, BrokersAreHostAndPort) {
  EXPECT_OK(CheckBroker("127.0.0.1:9092"));
  EXPECT_OK(CheckBroker("[::1]:9092"));
  for (const char* broker : {"", "host", ":9092", "host:", "host:port", "a:1,b:2"}) {
    EXPECT_THAT(CheckBroker(broker), Fails(ErrorCode::kInvalidArgument)) << broker;
  }
}

TEST(ClientSettingsTest, FilesOfTheServerAreListed) {
  EXPECT_THAT(FilesOf({.brokers = {},
                       .properties = {{"ssl.ca.location", "/etc/ca.pem"}, {"client.id", "x"}},
                       .group = {}}),
              ElementsAre("/etc/ca.pem"));
}

}  // namespace
}  // namespace tarn::source::kafka
