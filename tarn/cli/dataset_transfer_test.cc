#include "tarn/cli/dataset_transfer.h"

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tarn/cli/exit_code.h"
#include "tarn/cli/scripted_server.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::cli {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(DatasetTransferTest, PlansFilesFoldersAndNames) {
  const TemporaryDirectory directory;
  std::filesystem::create_directories(directory.path() / "d" / "sub");
  std::ofstream(directory.path() / "d" / "sub" / "b [1].csv") << "b";
  std::ofstream(directory.path() / "d" / "a") << "a";
  std::ofstream(directory.path() / "*") << "star";
  const std::string base = directory.path().string();
  ASSERT_OK_AND_ASSIGN(const std::vector<LocalFile> files,
                       PlanUploads({base + "/d", base + "/*"}, "raw/"));
  EXPECT_EQ(files, (std::vector<LocalFile>{{base + "/d/a", "raw/a"},
                                           {base + "/d/sub/b [1].csv", "raw/sub/b [1].csv"},
                                           {base + "/*", "raw/*"}}));
  EXPECT_EQ(ExitCodeOf(PlanUploads({base + "/none"}, "").status()), kExitUsage);
  EXPECT_EQ(ExitCodeOf(PlanUploads({"-"}, "").status()), kExitUsage);
}

TEST(DatasetTransferTest, TwoFilesOfOneNameAreRefused) {
  const TemporaryDirectory directory;
  const std::string base = directory.path().string();
  for (const char* folder : {"a", "b"}) {
    std::filesystem::create_directories(directory.path() / folder);
    std::ofstream(directory.path() / folder / "f") << folder;
  }
  EXPECT_THAT(PlanUploads({base + "/a", base + "/b"}, ""),
              FailsWith(ErrorCode::kInvalidArgument, "would both be f"));
  EXPECT_THAT(PlanUploads({base + "/a/f", base + "/b/f"}, "x/"),
              FailsWith(ErrorCode::kInvalidArgument, "would both be x/f"));
}

TEST(DatasetTransferTest, DownloadsNeverLeaveTheirFolder) {
  EXPECT_THAT(PlanDownload("/x", "a/b c"), IsOkAndHolds(std::string("/x/a/b c")));
  EXPECT_THAT(PlanDownload("/x", "..a"), IsOkAndHolds(std::string("/x/..a")));
  for (const std::string path : {"", "/etc", "../a", "a/../b", "a/..", ".", "a//b", "a/"}) {
    EXPECT_THAT(PlanDownload("/x", path), Fails(ErrorCode::kInvalidArgument)) << path;
  }
  EXPECT_THAT(PlanDownload("/x", std::string("a\0b", 3)), Fails(ErrorCode::kInvalidArgument));
}

TEST(DatasetTransferTest, AFailedDownloadLeavesNothing) {
  ScriptedServer server([](const SeenRequest& request) {
    return request.target.find("good") != std::string::npos
               ? ScriptedAnswer{.body = "whole"}
               : ScriptedAnswer{.raw = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"};
  });
  const TemporaryDirectory directory;
  CommandContext context;
  context.url = server.url();
  const std::string good = (directory.path() / "sub" / "good").string();
  EXPECT_THAT(DownloadOne(context, "ri.x", "a/good", "", good), IsOkAndHolds(uint64_t{5}));
  EXPECT_EQ(ReadFile(good), "whole");
  EXPECT_EQ(server.lines()[0], "GET /api/v2/datasets/ri.x/files/a%2Fgood/content");
  EXPECT_THAT(DownloadOne(context, "ri.x", "bad", "", (directory.path() / "bad").string()),
              Fails(ErrorCode::kUnavailable));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

}  // namespace
}  // namespace tarn::cli
