#include "tarn/task/source_watch.h"

#include <filesystem>
#include <fstream>

#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::task {
namespace {

namespace fs = std::filesystem;

TEST(SourceWatchTest, SeesAFolderGoAndComeBack) {
  const TemporaryDirectory directory;
  const fs::path folder = directory.path() / "in";
  fs::create_directory(folder);
  const SourceWatch watch("file://" + folder.string());
  EXPECT_OK(watch.Check());
  std::ofstream(folder / "a") << "x";
  EXPECT_OK(watch.Check());
  fs::rename(folder, directory.path() / "away");
  EXPECT_THAT(watch.Check(), FailsWith(ErrorCode::kUnavailable, folder.string()));
  fs::create_directory(folder);
  EXPECT_THAT(watch.Check(), FailsWith(ErrorCode::kUnavailable, "replaced"));
  fs::remove(folder);
  fs::rename(directory.path() / "away", folder);
  EXPECT_OK(watch.Check());
  fs::remove_all(folder);
  std::ofstream(folder.string()) << "x";
  EXPECT_THAT(watch.Check(), FailsWith(ErrorCode::kUnavailable, "no folder"));
}

TEST(SourceWatchTest, WatchesFoldersOnly) {
  EXPECT_OK(SourceWatch("s3://bucket/x").Check());
  EXPECT_OK(SourceWatch("file:///nowhere/at/all").Check());
}

}  // namespace
}  // namespace tarn::task
