#include "tarn/storage/s3/s3_options.h"

#include "test/support/matchers.h"

namespace tarn::storage::s3 {
namespace {

TEST(S3OptionsTest, UrisNameBucketAndPrefix) {
  struct Case {
    const char* uri;
    const char* scheme;
    const char* bucket;
    const char* prefix;
  };
  for (const Case& c : {Case{"s3://bucket", "s3", "bucket", ""},
                        {"s3://b-1.x/", "s3", "b-1.x", ""},
                        {"s3a://bucket/a/b/", "s3", "bucket", "a/b"},
                        {"gs://bucket/a b", "gs", "bucket", "a b"}}) {
    ASSERT_OK_AND_ASSIGN(const S3Options options, WithUri({}, c.uri));
    EXPECT_EQ(options.scheme, c.scheme);
    EXPECT_EQ(options.bucket, c.bucket);
    EXPECT_EQ(options.prefix, c.prefix);
  }
  for (const char* uri : {"", "s3:", "s3://", "s3:///x", "s3://Bucket", "s3://ab", "s3://bucket//x",
                          "s3://bucket/../x", "http://bucket/x", "s3://user:pw@host/x"}) {
    EXPECT_THAT(WithUri({}, uri), Fails(ErrorCode::kInvalidArgument)) << uri;
  }
}

TEST(S3OptionsTest, EndpointsLoseThePortOfTheirScheme) {
  ASSERT_OK_AND_ASSIGN(const Endpoint plain, ParseEndpoint("http://127.0.0.1:9000/"));
  EXPECT_EQ(plain.host, "127.0.0.1:9000");
  EXPECT_EQ(plain.path, "");
  ASSERT_OK_AND_ASSIGN(const Endpoint tls, ParseEndpoint("https://h.example:443/s3/"));
  EXPECT_EQ(tls.scheme, "https");
  EXPECT_EQ(tls.host, "h.example");
  EXPECT_EQ(tls.path, "/s3");
  for (const char* text :
       {"", "h:1", "ftp://h", "http://", "http://u@h", "http://h/?x", "http:// h"}) {
    EXPECT_THAT(ParseEndpoint(text), Fails(ErrorCode::kInvalidArgument)) << text;
  }
}

}  // namespace
}  // namespace tarn::storage::s3
