#include "tarn/storage/object_key.h"

#include "test/support/matchers.h"

namespace tarn::storage {
namespace {

TEST(ObjectKeyTest, MessagesNameTheKeyAndTheFault) {
  EXPECT_THAT(CheckKey("a/../b"),
              FailsWith(ErrorCode::kInvalidArgument, "\"a/../b\": it has a segment"));
  EXPECT_THAT(CheckKey("a//b"), FailsWith(ErrorCode::kInvalidArgument, "empty segment"));
  EXPECT_THAT(CheckKey(""), FailsWith(ErrorCode::kInvalidArgument, "it is empty"));
  EXPECT_THAT(CheckKey(std::string(1025, 'a')),
              FailsWith(ErrorCode::kInvalidArgument, "… (1025 bytes): it has more than 1024"));
  EXPECT_THAT(CheckKey("a\xFF"), FailsWith(ErrorCode::kInvalidArgument, "not UTF-8"));
  EXPECT_OK(CheckKey("..a/b../.../.b"));
}

TEST(ObjectKeyTest, FileUrisOfAllForms) {
  for (const char* uri :
       {"file:///data/in", "file:/data/in", "file://localhost/data/in", "/data/in"}) {
    EXPECT_THAT(PathOfFileUri(uri), IsOkAndHolds(std::string("/data/in"))) << uri;
  }
  EXPECT_THAT(PathOfFileUri("file:///"), IsOkAndHolds(std::string("/")));
  EXPECT_THAT(PathOfFileUri("file:///a%20b"), IsOkAndHolds(std::string("/a%20b")));
  for (const char* uri :
       {"", "data/in", "s3://data/in", "file://host/data", "file:data", "//a", "file:////a"}) {
    EXPECT_THAT(PathOfFileUri(uri), Fails(ErrorCode::kInvalidArgument)) << uri;
  }
}

}  // namespace
}  // namespace tarn::storage
