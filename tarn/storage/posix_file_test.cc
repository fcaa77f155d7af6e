#include "tarn/storage/posix_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::storage {
namespace {

TEST(PosixFileTest, ErrorsNameTheKeyAndSayWhatToDo) {
  EXPECT_THAT(ErrnoStatus(ENOENT, "cannot read", "a"), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(ErrnoStatus(EACCES, "cannot read", "a"), Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(ErrnoStatus(ENOSPC, "cannot write", "a/b"),
              FailsWith(ErrorCode::kResourceExhausted, "cannot write \"a/b\": the disk is full"));
  EXPECT_THAT(ErrnoStatus(EDQUOT, "cannot write", "a"), Fails(ErrorCode::kResourceExhausted));
  EXPECT_THAT(ErrnoStatus(EMFILE, "cannot open", "a"), Fails(ErrorCode::kResourceExhausted));
  EXPECT_THAT(ErrnoStatus(EROFS, "cannot write", "a"),
              FailsWith(ErrorCode::kUnavailable, "the file system is read-only"));
  EXPECT_THAT(ErrnoStatus(EIO, "cannot read", "a"), Fails(ErrorCode::kUnavailable));
  EXPECT_THAT(ErrnoStatus(ENAMETOOLONG, "cannot write", "a"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(ErrnoStatus(ENOTDIR, "cannot write", "a"), Fails(ErrorCode::kFailedPrecondition));
}

TEST(PosixFileTest, DescriptorsCloseOnceAndMove) {
  FileDescriptor first(::open("/", O_RDONLY | O_DIRECTORY));
  const int number = first.get();
  ASSERT_GE(number, 0);
  FileDescriptor second = std::move(first);
  EXPECT_FALSE(first.valid());
  EXPECT_EQ(second.get(), number);
  second = FileDescriptor();
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

using OpenFunction = FileDescriptor (*)(int, const std::string&, int);

class OpenBeneathTest : public ::testing::TestWithParam<OpenFunction> {
 protected:
  OpenBeneathTest() {
    std::filesystem::create_directories(root_ / "a" / "b");
    std::ofstream(root_ / "a" / "b" / "file") << "inside";
    std::ofstream(directory_.path() / "outside") << "outside";
    std::filesystem::create_symlink("../outside", root_ / "out");
    std::filesystem::create_directory_symlink("a", root_ / "link");
    std::filesystem::create_directory_symlink("/", root_ / "a" / "top");
    root_fd_ = FileDescriptor(::open(root_.c_str(), O_RDONLY | O_DIRECTORY));
  }
  // The errno of opening, 0 = it opened.
  int Open(const std::string& path, int flags = O_RDONLY) {
    const FileDescriptor file = GetParam()(root_fd_.get(), path, flags);
    return file.valid() ? 0 : errno;
  }

  TemporaryDirectory directory_;
  const std::filesystem::path root_ = directory_.path() / "root";
  FileDescriptor root_fd_;
};

TEST_P(OpenBeneathTest, OpensWhatLiesBelow) {
  EXPECT_EQ(Open("a/b/file"), 0);
  EXPECT_EQ(Open("a/b/file", O_PATH), 0);
  EXPECT_EQ(Open("a/b", O_RDONLY | O_DIRECTORY), 0);
  EXPECT_EQ(Open("", O_RDONLY | O_DIRECTORY), 0);
  EXPECT_EQ(Open("a/missing"), ENOENT);
  EXPECT_EQ(Open("a/b/file/x"), ENOTDIR);
}

TEST_P(OpenBeneathTest, NeverLeavesTheDirectoryNorFollowsLinks) {
  for (const char* path : {"../outside", "a/../../outside", ".."}) {
    EXPECT_NE(Open(path), 0) << path;
  }
  for (const char* path : {"out", "link/b/file", "a/top/etc/passwd", "link"}) {
    EXPECT_NE(Open(path), 0) << path;
    EXPECT_NE(Open(path, O_PATH), 0) << path;
  }
}

INSTANTIATE_TEST_SUITE_P(InOneCall, OpenBeneathTest, ::testing::Values(&OpenBeneath));
INSTANTIATE_TEST_SUITE_P(ByLevels, OpenBeneathTest, ::testing::Values(&OpenBeneathByLevels));

}  // namespace
}  // namespace tarn::storage
