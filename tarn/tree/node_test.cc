#include "tarn/tree/node.h"

#include "test/support/matchers.h"

namespace tarn::tree {
namespace {

TEST(NodeTest, DisplayNamesHaveOneTo700CharactersOfUtf8) {
  std::string umlauts;
  for (int i = 0; i < 700; ++i) {
    umlauts += "ü";
  }
  for (const std::string& name :
       {std::string("a"), std::string(" "), std::string("a b%2F\\"), umlauts, std::string("..."),
        std::string("\U0001F600"), std::string("line\nbreak")}) {
    EXPECT_OK(CheckDisplayName(name)) << name;
  }
  EXPECT_EQ(CheckDisplayName("").reason(), "MissingDisplayName");
  for (const std::string& name :
       {std::string("."), std::string(".."), std::string("a/b"), std::string("/"), umlauts + "x",
        std::string("\xFF"), std::string("\xC3"), std::string("a\0b", 3)}) {
    const Status status = CheckDisplayName(name);
    EXPECT_THAT(status, Fails(ErrorCode::kInvalidArgument)) << name;
    EXPECT_EQ(status.reason(), "InvalidDisplayName") << name;
  }
  EXPECT_EQ(CheckDisplayName("a/b").details(), R"({"displayName":"a/b"})");
}

TEST(NodeTest, RidsTellFoldersFromResources) {
  const ManualClock clock(FromMicros(0));
  UuidGenerator ids(clock);
  for (const NodeType type : {NodeType::kSpace, NodeType::kProject, NodeType::kFolder}) {
    EXPECT_TRUE(NewRid(type, ids).ToString().starts_with("ri.compass.main.folder."));
    EXPECT_TRUE(IsFolderLike(type));
  }
  EXPECT_TRUE(NewRid(NodeType::kDataset, ids).ToString().starts_with("ri.foundry.main.dataset."));
  EXPECT_TRUE(NewRid(NodeType::kTable, ids).ToString().starts_with("ri.foundry.main.table."));
  EXPECT_FALSE(IsFolderLike(NodeType::kDataset));
  EXPECT_EQ(RootRid().ToString(), "ri.compass.main.folder.0");
}

}  // namespace
}  // namespace tarn::tree
