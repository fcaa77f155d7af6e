#include "tarn/dataset/changes/change_list.h"

#include <random>
#include <set>

#include "tarn/dataset/dataset_fixture.h"

namespace tarn::dataset::changes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ChangeListTest, PathsComeBack) {
  const std::vector<std::string> paths = {
      "a", "a/b", "a/bc", "b", std::string(300, 'c'), std::string(300, 'c') + "d"};
  EXPECT_THAT(DecodePaths(paths.front(), EncodePaths(paths)), IsOkAndHolds(paths));
  EXPECT_THAT(DecodePaths("a", ""), IsOkAndHolds(ElementsAre("a")));
}

TEST(ChangeListTest, DamageIsFound) {
  const std::string more = EncodePaths({"abc", "abd", "abdef", "b"});
  for (size_t size = 1; size < more.size(); ++size) {
    const auto decoded = DecodePaths("abc", std::string_view(more).substr(0, size));
    EXPECT_TRUE(!decoded.ok() || decoded->size() < 4) << size;
  }
  EXPECT_THAT(DecodePaths("a", std::string("\x05\x01x", 3)), Fails(ErrorCode::kCorruption));
  EXPECT_THAT(DecodePaths("a", std::string("\x01\x09x", 3)), Fails(ErrorCode::kCorruption));
  EXPECT_THAT(DecodePaths("a", std::string(10, '\xFF')), Fails(ErrorCode::kCorruption));
}

class ChangeListStoreTest : public DatasetFixture {};

// Adding and removing in any order against a set.
TEST_F(ChangeListStoreTest, ListsHoldWhatWasAddedAndNotRemoved) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Place place{.line = 77, .ordinal = 1};
  std::set<std::string> expected;
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
    for (int step = 0; step < 60; ++step) {
      std::vector<WrittenPath> added;
      for (auto i = static_cast<int>(random() % 40); i > 0; --i) {
        const std::string path = "p" + std::to_string(random() % 2000);
        if (expected.insert(path).second) {
          added.push_back({.path = path, .replaces = random() % 2 == 0});
        }
      }
      TARN_RETURN_IF_ERROR(AddPaths(sql, place, added));
      for (auto i = static_cast<int>(random() % 20); i > 0 && !expected.empty(); --i) {
        const auto path = std::next(expected.begin(), random() % expected.size());
        TARN_RETURN_IF_ERROR(RemovePath(sql, place, {.path = *path, .replaces = false}));
        expected.erase(path);
      }
    }
    EXPECT_THAT(RemovePath(sql, place, {.path = "none"}), Fails(ErrorCode::kCorruption));
    std::set<std::string> taken;
    while (true) {
      TARN_ASSIGN_OR_RETURN(const std::vector<std::string> list, TakeFirstList(sql, place));
      if (list.empty()) {
        break;
      }
      for (const std::string& path : list) {
        EXPECT_TRUE(taken.insert(path).second) << path;
      }
    }
    EXPECT_EQ(taken, expected);
    return Status::Ok();
  }));
}

TEST_F(ChangeListStoreTest, OnlyListsWithReplacedPathsAreLookedAt) {
  const Place place{.line = 77, .ordinal = 1};
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(AddPaths(sql, place, {{.path = "b"}, {.path = "a"}}));
    TARN_RETURN_IF_ERROR(AddPaths(sql, place, {{.path = "d", .replaces = true}, {.path = "c"}}));
    EXPECT_THAT(PathsAmongReplaced(sql, place, 10), IsOkAndHolds(ElementsAre("c", "d")));
    TARN_RETURN_IF_ERROR(RemovePath(sql, place, {.path = "d", .replaces = true}));
    EXPECT_THAT(PathsAmongReplaced(sql, place, 10), IsOkAndHolds(IsEmpty()));
    return Status::Ok();
  }));
}

}  // namespace
}  // namespace tarn::dataset::changes
