// CredentialVendor against a token service of a script, and one that means it.
#include "tarn/storage/s3/credential_vendor.h"

#include "tarn/base/url.h"
#include "tarn/storage/s3/s3_client.h"
#include "test/stores/faulty_proxy.h"
#include "test/stores/store_server.h"
#include "test/support/matchers.h"

namespace tarn::storage::s3 {
namespace {

using test::Decision;
using test::Fault;
using test::FaultyProxy;
using test::PlainAnswer;
using test::Seen;
using ::testing::HasSubstr;
using ::testing::Not;

class CredentialVendorTest : public ::testing::Test {
 protected:
  std::unique_ptr<CredentialVendor> Open(const FaultyProxy& service) {
    S3Options bucket;
    bucket.bucket = "lake";
    bucket.endpoint = service.address().endpoint;
    bucket.credentials = {.access_key_id = "own", .secret_access_key = "own-secret"};
    bucket.vending = {.mode = Vending::kSessions, .role = "arn:aws:iam::1:role/r"};
    return CredentialVendor::Open(bucket, World()).value();
  }
  RetryWorld World() { return {clock_, sleeper_}; }

  // Keys named by the number of the call, good for an hour.
  Decision Keys(const Seen& seen) {
    return Decision(PlainAnswer(
        "200 OK", "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>key" +
                      std::to_string(seen.number) +
                      "</AccessKeyId><SecretAccessKey>hush</SecretAccessKey><SessionToken>token"
                      "</SessionToken><Expiration>" +
                      FormatTimestamp(clock_.Now() + std::chrono::hours(1)) +
                      "</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"));
  }

  ManualClock clock_{FromMillis(1'800'000'000'000)};
  ManualSleeper sleeper_{clock_};
  const VendingRequest reader_{.session = "tarn-1", .folders = {.read = {"w/t"}, .write = {}}};
  const VendingRequest writer_{.session = "tarn-1", .folders = {.read = {}, .write = {"w/t"}}};
};

TEST_F(CredentialVendorTest, AsksOncePerTableAndAccessUntilHalfTheTimeIsOver) {
  FaultyProxy service(test::StoreServer{}, [&](const Seen& seen) { return Keys(seen); });
  const auto vendor = Open(service);
  const auto key = [&](const VendingRequest& request) {
    return vendor->Get(request).value()->credentials.access_key_id;
  };
  EXPECT_EQ(key(reader_), "key1");
  EXPECT_EQ(key(reader_), "key1");
  EXPECT_EQ(key(writer_), "key2");
  VendingRequest other = reader_;
  other.folders.read = {"w/t2"};
  EXPECT_EQ(key(other), "key3");
  clock_.Advance(std::chrono::minutes(29));
  EXPECT_EQ(key(reader_), "key1");
  clock_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(key(reader_), "key4");
  EXPECT_EQ(service.count(), 4);
}

TEST_F(CredentialVendorTest, TheRequestIsSignedAndSaysWhatFor) {
  FaultyProxy service(test::StoreServer{}, [&](const Seen& seen) { return Keys(seen); });
  ASSERT_OK_AND_ASSIGN(const auto given, Open(service)->Get(writer_));
  EXPECT_EQ(given->credentials.secret_access_key, "hush");
  EXPECT_EQ(given->credentials.session_token, "token");
  EXPECT_EQ(given->credentials.expires, clock_.Now() + std::chrono::hours(1));
  EXPECT_EQ(given->folders, writer_.folders);
  const Seen seen = service.seen().at(0);
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.target, "/");
  EXPECT_THAT(seen.head, HasSubstr("AWS4-HMAC-SHA256 Credential=own/"));
  EXPECT_THAT(seen.head, HasSubstr("/us-east-1/sts/aws4_request"));
  EXPECT_THAT(seen.head, Not(HasSubstr("own-secret")));
  ASSERT_OK_AND_ASSIGN(const UrlQuery form, UrlQuery::Parse(seen.body));
  EXPECT_EQ(form.Find("Action"), "AssumeRole");
  EXPECT_EQ(form.Find("Version"), "2011-06-15");
  EXPECT_EQ(form.Find("RoleArn"), "arn:aws:iam::1:role/r");
  EXPECT_EQ(form.Find("RoleSessionName"), "tarn-1");
  EXPECT_EQ(form.Find("DurationSeconds"), "3600");
  EXPECT_EQ(form.Find("Policy"), PlanSessionPolicy("lake", "us-east-1", writer_.folders)->text);
}

TEST_F(CredentialVendorTest, RefusalsAreSaidAndNotAskedForAgainAtOnce) {
  FaultyProxy service(test::StoreServer{}, [&](const Seen&) {
    return Decision(PlainAnswer("403 Forbidden",
                                "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not "
                                "you</Message></Error></ErrorResponse>"));
  });
  const auto vendor = Open(service);
  const Status refused = StatusOf(vendor->Get(reader_));
  EXPECT_THAT(refused, FailsWith(ErrorCode::kUnavailable, "AccessDenied (not you)"));
  EXPECT_THAT(refused, FailsWith(ErrorCode::kUnavailable, "token service 127.0.0.1"));
  EXPECT_THAT(vendor->Get(reader_), Fails(ErrorCode::kUnavailable));
  EXPECT_EQ(service.count(), 1);
  service.Rearm([&](const Seen& seen) { return Keys(seen); });
  clock_.Advance(std::chrono::seconds(2));
  EXPECT_THAT(vendor->Get(reader_), IsOk());
}

TEST_F(CredentialVendorTest, FailuresInPassingAreTriedAgain) {
  FaultyProxy service(test::StoreServer{}, [&](const Seen& seen) {
    return seen.number < 3 ? Decision(Fault::kError500) : Keys(seen);
  });
  EXPECT_THAT(Open(service)->Get(reader_), IsOk());
  EXPECT_EQ(service.count(), 3);
}

TEST_F(CredentialVendorTest, OldKeysServeWhileThereAreNoNewOnes) {
  FaultyProxy service(test::StoreServer{}, [&](const Seen& seen) {
    return seen.number == 1 ? Keys(seen) : Decision(Fault::kError500);
  });
  const auto vendor = Open(service);
  EXPECT_THAT(vendor->Get(reader_), IsOk());
  clock_.Advance(std::chrono::minutes(50));
  EXPECT_EQ(vendor->Get(reader_).value()->credentials.access_key_id, "key1");
  clock_.Advance(std::chrono::minutes(10));
  EXPECT_THAT(vendor->Get(reader_), Fails(ErrorCode::kUnavailable));
}

TEST_F(CredentialVendorTest, AnswersThatMakeNoSenseAreNoKeys) {
  const std::string whole = Keys(Seen{}).answer;
  const std::string body = whole.substr(whole.find("\r\n\r\n") + 4);
  for (const char* part : {"AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration",
                           "Credentials", "AssumeRoleResult"}) {
    std::string broken = body;
    for (size_t at = broken.find(part); at != std::string::npos; at = broken.find(part, at + 1)) {
      broken[at] = 'X';
    }
    FaultyProxy service(test::StoreServer{},
                        [&](const Seen&) { return Decision(PlainAnswer("200 OK", broken)); });
    const Status status = StatusOf(Open(service)->Get(reader_));
    EXPECT_THAT(status, Fails(ErrorCode::kUnavailable)) << part;
    EXPECT_THAT(status.ToString(), Not(HasSubstr("hush")));
  }
}

TEST_F(CredentialVendorTest, StaticKeysAreByAccess) {
  S3Options bucket;
  bucket.bucket = "lake";
  bucket.vending = {.mode = Vending::kStatic, .write = {"w", "w-secret"}};
  ASSERT_OK_AND_ASSIGN(const auto vendor, CredentialVendor::Open(bucket, World()));
  ASSERT_OK_AND_ASSIGN(const auto writer, vendor->Get(writer_));
  EXPECT_EQ(writer->credentials, (aws::Credentials{"w", "w-secret", ""}));
  ASSERT_OK_AND_ASSIGN(const auto reader, vendor->Get(reader_));
  EXPECT_FALSE(reader.has_value());
}

// The keys of a real service, used against the store.
class VendedKeysTest : public ::testing::Test {
 protected:
  VendedKeysTest() : options_(test::NewBucket(test::Seaweedfs())) {
    test::MakeBucket(options_);
    options_.vending = {.mode = Vending::kSessions, .role = test::kVendedRole};
    vendor_ = CredentialVendor::Open(options_, World()).value();
    own_ = S3Client::Open(options_, World()).value();
    for (const char* key : {"w/t/1", "w/t2/1", "w/old/1"}) {
      EXPECT_TRUE(Put(*own_, key).ok());
    }
  }

  RetryWorld World() { return {clock_, sleeper_}; }
  std::unique_ptr<S3Client> ClientFor(const KeyFolders& folders) {
    const auto given = vendor_->Get({.session = "tarn-1", .folders = folders}).value();
    S3Options options = options_;
    options.credentials = {.access_key_id = given->credentials.access_key_id,
                           .secret_access_key = given->credentials.secret_access_key,
                           .session_token = given->credentials.session_token};
    return S3Client::Open(options, World()).value();
  }
  static Status Put(S3Client& client, const std::string& key) {
    return client.Send({.method = "PUT", .key = key, .body = "x"}).status;
  }
  static Status Get(S3Client& client, const std::string& key) { return StatusOf(client.Head(key)); }

  SystemClock clock_;
  SystemSleeper sleeper_;
  S3Options options_;
  std::unique_ptr<CredentialVendor> vendor_;
  std::unique_ptr<S3Client> own_;
};

TEST_F(VendedKeysTest, ReadersReadTheirFolderAndNothingElse) {
  const auto client = ClientFor({.read = {"w/t"}, .write = {}});
  EXPECT_THAT(Get(*client, "w/t/1"), IsOk());
  EXPECT_THAT(Get(*client, "w/t2/1"), Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(Put(*client, "w/t/1"), Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(client->Delete("w/t/1"), Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(Get(*own_, "w/t/1"), IsOk());
}

TEST_F(VendedKeysTest, WritersWriteTheirFolderAndReadTheOthers) {
  const auto client = ClientFor({.read = {"w/old"}, .write = {"w/t"}});
  EXPECT_THAT(Put(*client, "w/t/data/2"), IsOk());
  EXPECT_THAT(Get(*client, "w/t/data/2"), IsOk());
  EXPECT_THAT(client->Delete("w/t/data/2"), IsOk());
  EXPECT_THAT(Get(*client, "w/old/1"), IsOk());
  EXPECT_THAT(Put(*client, "w/old/1"), Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(Put(*client, "w/t2/1"), Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(Put(*client, "w/tx"), Fails(ErrorCode::kPermissionDenied));
  ASSERT_OK_AND_ASSIGN(const std::string upload, client->StartUpload("w/t/large", {}));
  ASSERT_OK_AND_ASSIGN(const UploadedPart part, client->UploadPart("w/t/large", upload, 1, "abc"));
  EXPECT_THAT(client->CompleteUpload("w/t/large", upload, {part}, {}).status, IsOk());
}

}  // namespace
}  // namespace tarn::storage::s3
