#include "tarn/dataset/logical_path.h"

#include <string>

#include "test/support/matchers.h"

namespace tarn::dataset {
namespace {

TEST(LogicalPathTest, AnythingThatIsATextIsAName) {
  for (const std::string& path :
       {std::string("a"), std::string("a/b.csv"), std::string("content"), std::string(" "),
        std::string("a%2Fb"), std::string("*?[x]{y}"), std::string("a\\b"), std::string("a\nb\tc"),
        std::string("a\xCC\x88.csv"), std::string("\xC3\xA4.csv"), std::string("..."),
        std::string(".hidden/_x"), std::string("\xF0\x9F\x98\x80"), std::string(4096, 'x')}) {
    EXPECT_OK(CheckLogicalPath(path)) << path;
  }
}

TEST(LogicalPathTest, BadPathsAreNamed) {
  for (const std::string& path :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"), std::string("."),
        std::string(".."), std::string("a/../b"), std::string("a/."), std::string("./a"),
        std::string("a\0b", 3), std::string("\xC3"), std::string("\xC0\xAF"),
        std::string("\xED\xA0\x80"), std::string(4097, 'x')}) {
    const Status status = CheckLogicalPath(path);
    EXPECT_THAT(status, Fails(ErrorCode::kInvalidArgument)) << path;
    EXPECT_EQ(status.reason(), "InvalidFilePath");
    EXPECT_NE(status.details().find("\"filePath\""), std::string::npos);
  }
}

}  // namespace
}  // namespace tarn::dataset
