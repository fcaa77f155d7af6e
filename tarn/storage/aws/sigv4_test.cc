#include "tarn/storage/aws/sigv4.h"

#include "test/support/matchers.h"

namespace tarn::storage::aws {
namespace {

// The examples that Amazon publishes: the test suite of the algorithm, and those of S3.
const Credentials kSuiteKeys{.access_key_id = "AKIDEXAMPLE",
                             .secret_access_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                             .session_token = {}};
const Credentials kS3Keys{.access_key_id = "AKIAIOSFODNN7EXAMPLE",
                          .secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                          .session_token = {}};

Timestamp At(const char* text) { return ParseTimestamp(text).value(); }

std::string Find(const NamedValues& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key == name) {
      return value;
    }
  }
  return {};
}

struct Vector {
  const char* name;
  SigningInput input;
  const char* signed_headers;
  const char* signature;
};

SigningInput Suite(std::string method, NamedValues query, NamedValues headers = {},
                   std::string path = "/", std::string_view body = {}) {
  return {.method = std::move(method),
          .host = "example.amazonaws.com",
          .path = std::move(path),
          .query = std::move(query),
          .headers = std::move(headers),
          .payload_hash = PayloadHash(body)};
}

TEST(SigV4Test, SignsTheSuiteOfTheAlgorithm) {
  const std::string unreserved =
      "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const std::vector<Vector> vectors = {
      {"get-vanilla", Suite("GET", {}), "host;x-amz-date",
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"get-vanilla-query-order-key-case",
       Suite("GET", {{"Param2", "value2"}, {"Param1", "value1"}}), "host;x-amz-date",
       "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
      {"get-vanilla-query-unreserved", Suite("GET", {{unreserved, unreserved}}), "host;x-amz-date",
       "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
      {"get-header-key-duplicate",
       Suite("GET", {},
             {{"My-Header1", "value2"}, {"My-Header1", "value2"}, {"My-Header1", "value1"}}),
       "host;my-header1;x-amz-date",
       "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
      {"get-header-value-trim",
       Suite("GET", {}, {{"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}}),
       "host;my-header1;my-header2;x-amz-date",
       "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
      {"get-utf8", Suite("GET", {}, {}, "/\xE1\x88\xB4"), "host;x-amz-date",
       "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
      {"get-space", Suite("GET", {}, {}, "/example space/"), "host;x-amz-date",
       "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
      {"post-vanilla", Suite("POST", {}), "host;x-amz-date",
       "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
      {"post-x-www-form-urlencoded",
       Suite("POST", {}, {{"Content-Type", "application/x-www-form-urlencoded"}}, "/",
             "Param1=value1"),
       "content-type;host;x-amz-date",
       "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
  };
  for (const Vector& vector : vectors) {
    const NamedValues added =
        SignHeaders(vector.input, {.region = "us-east-1", .service = "service"}, kSuiteKeys,
                    At("2015-08-30T12:36:00Z"));
    EXPECT_EQ(Find(added, "authorization"),
              "AWS4-HMAC-SHA256 "
              "Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=" +
                  std::string(vector.signed_headers) + ", Signature=" + vector.signature)
        << vector.name;
    EXPECT_EQ(Find(added, "x-amz-date"), "20150830T123600Z");
    EXPECT_EQ(Find(added, "x-amz-content-sha256"), "");
  }
}

TEST(SigV4Test, SignsTheExamplesOfS3) {
  const auto s3 = [](SigningInput input) {
    input.host = "examplebucket.s3.amazonaws.com";
    return input;
  };
  const std::vector<Vector> vectors = {
      {"get object", s3(Suite("GET", {}, {{"Range", "bytes=0-9"}}, "/test.txt")),
       "host;range;x-amz-content-sha256;x-amz-date",
       "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
      {"put object",
       s3(Suite("PUT", {},
                {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                 {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                "/test%24file.text", "Welcome to Amazon S3.")),
       "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
       "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
      {"get lifecycle", s3(Suite("GET", {{"lifecycle", ""}})),
       "host;x-amz-content-sha256;x-amz-date",
       "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
      {"list objects", s3(Suite("GET", {{"max-keys", "2"}, {"prefix", "J"}})),
       "host;x-amz-content-sha256;x-amz-date",
       "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
  };
  for (const Vector& vector : vectors) {
    const NamedValues added = SignHeaders(vector.input, {.region = "us-east-1", .service = "s3"},
                                          kS3Keys, At("2013-05-24T00:00:00Z"));
    EXPECT_THAT(Find(added, "authorization"),
                ::testing::EndsWith("SignedHeaders=" + std::string(vector.signed_headers) +
                                    ", Signature=" + vector.signature))
        << vector.name;
    EXPECT_EQ(Find(added, "x-amz-content-sha256"), vector.input.payload_hash);
  }
}

TEST(SigV4Test, PresignsTheExampleOfS3) {
  const SigningInput input{.method = "GET",
                           .host = "examplebucket.s3.amazonaws.com",
                           .path = "/test.txt",
                           .query = {},
                           .headers = {},
                           .payload_hash = std::string(kUnsignedPayload)};
  EXPECT_EQ(PresignQuery(input, {.region = "us-east-1", .service = "s3"}, kS3Keys,
                         At("2013-05-24T00:00:00Z"), std::chrono::seconds(86'400)),
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2F"
            "us-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&"
            "X-Amz-SignedHeaders=host&X-Amz-Signature="
            "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

TEST(SigV4Test, SessionTokensAreSentAndSigned) {
  Credentials keys = kS3Keys;
  keys.session_token = "token+/=";
  const NamedValues added = SignHeaders(Suite("GET", {}), {.region = "r", .service = "s3"}, keys,
                                        At("2013-05-24T00:00:00Z"));
  EXPECT_EQ(Find(added, "x-amz-security-token"), "token+/=");
  EXPECT_THAT(Find(added, "authorization"),
              ::testing::HasSubstr("x-amz-date;x-amz-security-token"));
  EXPECT_THAT(PresignQuery(Suite("GET", {}), {.region = "r", .service = "s3"}, keys,
                           At("2013-05-24T00:00:00Z"), std::chrono::seconds(1)),
              ::testing::HasSubstr("X-Amz-Security-Token=token%2B%2F%3D"));
}

TEST(SigV4Test, QueriesAreSortedAsEncoded) {
  EXPECT_EQ(CanonicalQuery({{"b", "2"}, {"a", "x y"}, {"a", "/"}, {"a-", ""}, {"é", "+"}}),
            "%C3%A9=%2B&a=%2F&a=x%20y&a-=&b=2");
}

}  // namespace
}  // namespace tarn::storage::aws
