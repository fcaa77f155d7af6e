#include "tarn/storage/local_listing.h"

#include <fcntl.h>

#include <filesystem>
#include <fstream>

#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::storage {
namespace {

TEST(LocalListingTest, MetaHasMicrosecondsAndAnEtagOfNanoseconds) {
  struct stat status{};
  status.st_ino = 0x1F;
  status.st_size = 3;
  status.st_mtim = {.tv_sec = 2, .tv_nsec = 999'999'999};
  const ObjectMeta meta = MetaOf("a", status);
  EXPECT_EQ(meta.modified, FromMicros(2'999'999));
  EXPECT_EQ(meta.size_bytes, 3u);
  status.st_mtim.tv_nsec = 999'999'998;
  EXPECT_NE(MetaOf("a", status).etag, meta.etag);
}

TEST(LocalListingTest, AFolderMayBeReadTwice) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "a") << "x";
  const FileDescriptor open(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY));
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto entries, ReadDirectory(open.get(), "root"));
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(entries[0].name, "a");
    EXPECT_EQ(entries[0].kind, EntryKind::kFile);
  }
}

TEST(LocalListingTest, ALargeFolderIsListedPageByPage) {
  const TemporaryDirectory directory;
  for (int i = 0; i < 250; ++i) {
    std::ofstream(directory.path() / std::to_string(i)) << i;
  }
  const FileDescriptor root(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY));
  ListRequest request{.prefix = {}, .start_after = {}, .limit = 100};
  std::vector<size_t> sizes;
  for (bool more = true; more;) {
    ASSERT_OK_AND_ASSIGN(const ListPage page, ListDirectories(root.get(), request, {}));
    sizes.push_back(page.objects.size());
    request.start_after = page.objects.back().key;
    more = page.truncated;
  }
  EXPECT_THAT(sizes, ::testing::ElementsAre(100u, 100u, 50u));
}

}  // namespace
}  // namespace tarn::storage
