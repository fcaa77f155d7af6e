#include "tarn/storage/store_opener.h"

#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::storage {
namespace {

class StoreOpenerTest : public ::testing::Test {
 protected:
  Result<StoreOpener> Make(std::vector<StoreSettings> settings) {
    return StoreOpener::Make(std::move(settings),
                             [](const std::string& name) {
                               return name == "KEY"      ? std::optional<std::string>("a")
                                      : name == "SECRET" ? std::optional<std::string>("b")
                                                         : std::nullopt;
                             },
                             {clock_, sleeper_});
  }

  SystemClock clock_;
  SystemSleeper sleeper_;
};

TEST_F(StoreOpenerTest, TheClosestSettingsHold) {
  ASSERT_OK_AND_ASSIGN(
      const StoreOpener opener,
      Make({{"one", "s3a://bucket/", {{"region", "eu-1"}, {"addressing", "path"}}},
            {"two", "s3://bucket/a", {{"region", "eu-2"}, {"list_order", "folders"}}}}));
  const auto region = [&](std::string_view uri) {
    return opener.BucketOptions(uri).value().region;
  };
  EXPECT_EQ(region("s3://bucket"), "eu-1");
  EXPECT_EQ(region("s3n://bucket/ab"), "eu-1");
  EXPECT_EQ(region("s3://bucket/a"), "eu-2");
  EXPECT_EQ(region("s3a://bucket/a/b/"), "eu-2");
  EXPECT_EQ(region("s3://bucket2"), "us-east-1");
  ASSERT_OK_AND_ASSIGN(const s3::S3Options options, opener.BucketOptions("s3a://bucket/a/b/"));
  EXPECT_EQ(options.scheme, "s3");
  EXPECT_EQ(options.prefix, "a/b");
  EXPECT_EQ(options.list_order, s3::ListOrder::kFolders);
  EXPECT_EQ(options.addressing, s3::Addressing::kAuto);
}

TEST_F(StoreOpenerTest, EveryKeyIsRead) {
  ASSERT_OK_AND_ASSIGN(const StoreOpener opener, Make({{"s",
                                                        "s3://bucket",
                                                        {{"endpoint", "http://127.0.0.1:1"},
                                                         {"addressing", "virtual_host"},
                                                         {"access_key_env", "KEY"},
                                                         {"secret_key_env", "SECRET"},
                                                         {"instance_metadata", "true"},
                                                         {"conditional_put", "off"},
                                                         {"payload", "unsigned"},
                                                         {"part_size", "8MiB"},
                                                         {"connections", "7"},
                                                         {"ca_file", "/ca"}}}}));
  ASSERT_OK_AND_ASSIGN(const s3::S3Options options, opener.BucketOptions("s3://bucket/x"));
  EXPECT_EQ(options.endpoint, "http://127.0.0.1:1");
  EXPECT_EQ(options.addressing, s3::Addressing::kVirtualHost);
  EXPECT_EQ(options.credentials.access_key_id, "a");
  EXPECT_EQ(options.credentials.secret_access_key, "b");
  EXPECT_EQ(options.credentials.instance_metadata, aws::InstanceMetadata::kOn);
  EXPECT_EQ(options.conditional_put, s3::ConditionalPut::kUnavailable);
  EXPECT_EQ(options.payload_signing, s3::PayloadSigning::kUnsigned);
  EXPECT_EQ(options.part_bytes, 8ULL << 20);
  EXPECT_EQ(options.http.connections_max, 7u);
  EXPECT_EQ(options.http.ca_file, "/ca");
}

TEST_F(StoreOpenerTest, WrongSettingsNameStoreAndKey) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"endpoint", "nowhere"},     {"addressing", "x"},     {"access_key_env", "UNSET"},
      {"instance_metadata", "on"}, {"part_size", "x"},      {"connections", "0"},
      {"list_order", "x"},         {"secret_key", "x"},     {"vended_credentials", "x"},
      {"sts_endpoint", "x"},       {"sts_duration", "14m"}, {"sts_duration", "13h"},
      {"write_key_env", "UNSET"}};
  for (const auto& [key, value] : wrong) {
    EXPECT_THAT(Make({{"lake", "s3://bucket", {{key, value}}}}),
                FailsWith(ErrorCode::kInvalidArgument, "stores.lake." + key))
        << key;
  }
  EXPECT_THAT(Make({{"lake", "file:///x", {}}}),
              FailsWith(ErrorCode::kInvalidArgument, "stores.lake.uri"));
}

TEST_F(StoreOpenerTest, VendingIsOffUntilItIsAskedFor) {
  ASSERT_OK_AND_ASSIGN(const StoreOpener plain, Make({{"s", "s3://bucket", {}}}));
  EXPECT_EQ(plain.BucketOptions("s3://bucket").value().vending.mode, s3::Vending::kOff);
  ASSERT_OK_AND_ASSIGN(const StoreOpener sessions, Make({{"s",
                                                          "s3://bucket",
                                                          {{"vended_credentials", "sts"},
                                                           {"sts_role", "arn:aws:iam::1:role/r"},
                                                           {"sts_endpoint", "http://127.0.0.1:1"},
                                                           {"sts_duration", "2h"}}}}));
  const s3::VendingOptions vending = sessions.BucketOptions("s3://bucket/x").value().vending;
  EXPECT_EQ(vending.mode, s3::Vending::kSessions);
  EXPECT_EQ(vending.role, "arn:aws:iam::1:role/r");
  EXPECT_EQ(vending.endpoint, "http://127.0.0.1:1");
  EXPECT_EQ(vending.lifetime, std::chrono::hours(2));
  ASSERT_OK_AND_ASSIGN(const StoreOpener fixed, Make({{"s",
                                                       "s3://bucket",
                                                       {{"vended_credentials", "static"},
                                                        {"read_key_env", "KEY"},
                                                        {"read_secret_env", "SECRET"}}}}));
  EXPECT_EQ(fixed.BucketOptions("s3://bucket").value().vending.read.access_key_id, "a");
  EXPECT_EQ(fixed.BucketOptions("s3://bucket").value().vending.read.secret_access_key, "b");
}

TEST_F(StoreOpenerTest, VendingThatCannotWorkIsRefused) {
  using Options = std::map<std::string, std::string>;
  const std::vector<std::pair<std::string, Options>> wrong = {
      {"sts_role", {{"vended_credentials", "sts"}}},
      {"vended_credentials", {{"vended_credentials", "static"}}},
      {"vended_credentials",
       {{"vended_credentials", "sts"}, {"sts_role", "r"}, {"anonymous", "true"}}},
      {"read_key_env", {{"vended_credentials", "static"}, {"read_key_env", "KEY"}}},
      {"write_key_env", {{"vended_credentials", "static"}, {"write_secret_env", "SECRET"}}},
      {"write_key_env", {{"write_key_env", "KEY"}, {"write_secret_env", "SECRET"}}}};
  for (const auto& [key, options] : wrong) {
    EXPECT_THAT(Make({{"lake", "s3://bucket", options}}),
                FailsWith(ErrorCode::kInvalidArgument, "stores.lake." + key));
  }
  EXPECT_THAT(Make({{"g", "gs://bucket", {{"vended_credentials", "sts"}, {"sts_role", "r"}}}}),
              FailsWith(ErrorCode::kInvalidArgument, "stores.g.vended_credentials"));
}

TEST_F(StoreOpenerTest, GoogleBucketsHaveConditionsOfTheirOwn) {
  ASSERT_OK_AND_ASSIGN(const StoreOpener opener, Make({}));
  ASSERT_OK_AND_ASSIGN(const s3::S3Options options, opener.BucketOptions("gs://bucket/x"));
  EXPECT_EQ(options.conditional_put, s3::ConditionalPut::kGenerationMatch);
  EXPECT_EQ(options.scheme, "gs");
}

TEST_F(StoreOpenerTest, SchemesAreToldApart) {
  const TemporaryDirectory directory;
  ASSERT_OK_AND_ASSIGN(const StoreOpener opener, Make({}));
  const std::string root = (directory.path() / "root").string();
  EXPECT_THAT(opener.Open(root, StoreAccess::kReadOnly), Fails(ErrorCode::kNotFound));
  ASSERT_OK_AND_ASSIGN(const auto store, opener.Open("file://" + root, StoreAccess::kReadWrite));
  EXPECT_EQ(store->base_uri(), "file://" + root);
  EXPECT_THAT(opener.Open("hdfs://name/x", StoreAccess::kReadOnly),
              FailsWith(ErrorCode::kUnimplemented, "scheme hdfs"));
  EXPECT_THAT(opener.BucketOptions("file:///x"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(opener.Open("s3://B", StoreAccess::kReadOnly), Fails(ErrorCode::kInvalidArgument));
}

}  // namespace
}  // namespace tarn::storage
