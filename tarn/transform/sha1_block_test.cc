#include "tarn/transform/sha1_block.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "tarn/base/hash.h"

namespace tarn::transform {
namespace {

TEST(Sha1BlockTest, BothWaysAgreeWithTheLibrary) {
  std::string message;
  for (int size = 0; size < 400; ++size) {
    const Sha1Digest expected = Sha1(message);
    Sha1Digest found;
    Sha1Short(message, found.data());
    EXPECT_EQ(found, expected) << size;
    Sha1Portable(message, found.data());
    EXPECT_EQ(found, expected) << size;
    message += static_cast<char>(size * 31 + 7);
  }
}

}  // namespace
}  // namespace tarn::transform
