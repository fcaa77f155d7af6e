#include "tarn/storage/s3/s3_error.h"

#include "test/support/matchers.h"

namespace tarn::storage::s3 {
namespace {

TEST(S3ErrorTest, TheServersWordGoesBeforeTheStatus) {
  EXPECT_EQ(CodeOf(200, ""), ErrorCode::kOk);
  EXPECT_EQ(CodeOf(404, "NoSuchKey"), ErrorCode::kNotFound);
  EXPECT_EQ(CodeOf(404, ""), ErrorCode::kNotFound);
  // A missing bucket is no missing object: deleting from it must not look like success.
  EXPECT_EQ(CodeOf(404, "NoSuchBucket"), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(CodeOf(403, "AccessDenied"), ErrorCode::kPermissionDenied);
  EXPECT_EQ(CodeOf(403, "SignatureDoesNotMatch"), ErrorCode::kUnauthenticated);
  EXPECT_EQ(CodeOf(400, "RequestTimeout"), ErrorCode::kUnavailable);
  EXPECT_EQ(CodeOf(400, "EntityTooLarge"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(503, "SlowDown"), ErrorCode::kResourceExhausted);
  EXPECT_EQ(CodeOf(503, ""), ErrorCode::kUnavailable);
  EXPECT_EQ(CodeOf(409, "ConditionalRequestConflict"), ErrorCode::kUnavailable);
  EXPECT_EQ(CodeOf(412, "PreconditionFailed"), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(CodeOf(501, "NotImplemented"), ErrorCode::kUnimplemented);
  EXPECT_EQ(CodeOf(301, "PermanentRedirect"), ErrorCode::kFailedPrecondition);
}

TEST(S3ErrorTest, OnlySomeFailuresMayHaveHadTheirEffect) {
  for (const int status : {500, 502, 504}) {
    EXPECT_TRUE(MayHaveActed(status)) << status;
  }
  for (const int status : {400, 403, 404, 409, 412, 429, 501, 503}) {
    EXPECT_FALSE(MayHaveActed(status)) << status;
  }
}

TEST(S3ErrorTest, BodiesAreReadAsFarAsTheyGo) {
  const ErrorBody body = ParseErrorBody(
      "<?xml version=\"1.0\"?><Error><Code>X</Code><Message>m</Message><Region>r</Region></Error>");
  EXPECT_EQ(body.code, "X");
  EXPECT_EQ(body.message, "m");
  EXPECT_EQ(body.region, "r");
  EXPECT_EQ(ParseErrorBody("<html><body>no</body></html>").code, "");
  EXPECT_EQ(ParseErrorBody("bad gateway").code, "");
  EXPECT_EQ(ParseErrorBody("").code, "");
}

}  // namespace
}  // namespace tarn::storage::s3
