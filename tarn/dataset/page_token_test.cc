#include "tarn/dataset/page_token.h"

#include "test/support/matchers.h"

namespace tarn::dataset {
namespace {

TEST(PageTokenTest, AnyBytesRoundTrip) {
  for (size_t size = 0; size < 40; ++size) {
    const std::vector<std::string> fields = {std::string(size, '\xFF'), "", std::string("a\0b", 3)};
    const std::string token = EncodePageToken(TokenKind::kFiles, fields);
    EXPECT_EQ(token.find_first_of("+/= "), std::string::npos);
    EXPECT_THAT(DecodePageToken(TokenKind::kFiles, 3, token), IsOkAndHolds(fields));
  }
}

TEST(PageTokenTest, ATokenOfAnotherListingIsRefused) {
  const std::string token = EncodePageToken(TokenKind::kFiles, {"a"});
  EXPECT_THAT(DecodePageToken(TokenKind::kBranches, 1, token), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(DecodePageToken(TokenKind::kFiles, 2, token), Fails(ErrorCode::kInvalidArgument));
}

TEST(PageTokenTest, EveryDamagedCharacterIsFound) {
  const std::string token = EncodePageToken(TokenKind::kFiles, {"abc", "de"});
  for (size_t i = 0; i < token.size(); ++i) {
    std::string damaged = token;
    damaged[i] = damaged[i] == 'A' ? 'B' : 'A';
    EXPECT_THAT(DecodePageToken(TokenKind::kFiles, 2, damaged), Fails(ErrorCode::kInvalidArgument))
        << i;
    EXPECT_THAT(DecodePageToken(TokenKind::kFiles, 2, token.substr(0, i)),
                Fails(ErrorCode::kInvalidArgument))
        << i;
  }
  EXPECT_EQ(StatusOf(DecodePageToken(TokenKind::kFiles, 2, "%%")).reason(), "InvalidPageToken");
}

}  // namespace
}  // namespace tarn::dataset
