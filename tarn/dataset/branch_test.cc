#include "tarn/dataset/branch.h"

#include <string>

#include "test/support/matchers.h"

namespace tarn::dataset {
namespace {

std::string Repeat(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    all += text;
  }
  return all;
}

TEST(BranchTest, SlashesSpacesAndUnicodeAreLegal) {
  for (const std::string& name :
       {std::string("master"), std::string("feature/my-branch"), std::string("a b"),
        std::string("#?%2F"), std::string("\xC3\xA4\xF0\x9F\x98\x80"), std::string("river."),
        std::string("deadbeef"), Repeat("\xC3\xA4", 256)}) {
    EXPECT_OK(CheckBranchName(name)) << name;
  }
}

TEST(BranchTest, BadNamesAreNamed) {
  for (const std::string& name :
       {std::string(), std::string(" a"), std::string("a "), std::string("\xC2\xA0x"),
        std::string("x\xE3\x80\x80"), std::string("a\nb"), std::string("\t"),
        std::string("a\0b", 3), std::string("a\x7F"), std::string("a\xC2\x85z"),
        std::string("ri.foundry.main.branch.1"),
        std::string("ri.foundry.main.transaction.00000000-0000-0000-0000-000000000000"),
        std::string("01234567-89ab-cdef-0123-456789abcdef"),
        std::string("01234567-89AB-CDEF-0123-456789ABCDEF"), std::string("\xFF"),
        Repeat("\xC3\xA4", 257)}) {
    const Status status = CheckBranchName(name);
    EXPECT_THAT(status, Fails(ErrorCode::kInvalidArgument)) << name;
    EXPECT_EQ(status.reason(), "InvalidBranchName");
  }
}

}  // namespace
}  // namespace tarn::dataset
