#include <nlohmann/json.hpp>

#include "tarn/cli/command_line.h"
#include "tarn/cli/scripted_server.h"
#include "test/support/matchers.h"

namespace tarn::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// A dataset that answers every call with the same document, but for its name and its pages.
class DatasetBranchesTest : public ::testing::Test {
 protected:
  int RunDataset(std::vector<std::string> arguments) {
    std::vector<std::string> all = {"tarn", "--url", server_.url(), "--json", "dataset"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<const char*> argv;
    for (const std::string& argument : all) {
      argv.push_back(argument.c_str());
    }
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = cli::Run(static_cast<int>(argv.size()), argv.data(), {});
    out_ = testing::internal::GetCapturedStdout();
    testing::internal::GetCapturedStderr();
    return code;
  }
  SeenRequest Last() { return server_.seen().back(); }

  static ScriptedAnswer Answer(const SeenRequest& request) {
    if (request.target.find("/resources?path=") != std::string::npos) {
      return {.body = R"({"rid":"ri.d"})"};
    }
    if (request.target.find("/compare") != std::string::npos) {
      return request.target.find("pageToken=n") == std::string::npos
                 ? ScriptedAnswer{.body = R"({"added":[{"path":"a"}],"changed":[],"removed":[],
                                              "nextPageToken":"n"})"}
                 : ScriptedAnswer{.body = R"({"added":[],"changed":[],
                                              "removed":[{"path":"b"}]})"};
    }
    return {.body = R"({"name":"x"})"};
  }

  ScriptedServer server_{Answer};
  std::string out_;
};

TEST_F(DatasetBranchesTest, ABranchIsMadeFromTheBranchAndNotFromItsHead) {
  ASSERT_EQ(RunDataset({"branch", "create", "p/d", "dev", "--from", "master"}), 0);
  EXPECT_EQ(Last().target, "/tarn/v1/datasets/ri.d/branches");
  EXPECT_EQ(json::parse(Last().body), json({{"name", "dev"}, {"fromBranch", "master"}}));
  ASSERT_EQ(RunDataset({"branch", "create", "p/d", "dev", "--from", "ri.t"}), 0);
  EXPECT_EQ(json::parse(Last().body), json({{"name", "dev"}, {"transactionRid", "ri.t"}}));
}

TEST_F(DatasetBranchesTest, ChoicesOfAMergeAreByPath) {
  ASSERT_EQ(RunDataset({"branch", "merge", "p/d", "master", "dev", "--choose", "a=b=source",
                        "--choose", "c=target", "--otherwise", "target"}),
            0);
  EXPECT_EQ(Last().target, "/tarn/v1/datasets/ri.d/branches/master:merge");
  EXPECT_EQ(json::parse(Last().body), json({{"source", "dev"},
                                            {"dryRun", false},
                                            {"choices", {{"a=b", "source"}, {"c", "target"}}},
                                            {"otherwise", "target"}}));
  EXPECT_EQ(RunDataset({"branch", "merge", "p/d", "master", "dev", "--choose", "a=mine"}), 2);
}

TEST_F(DatasetBranchesTest, ADifferenceIsOneDocumentOfAllPages) {
  ASSERT_EQ(RunDataset({"diff", "p/d", "master", "a b"}), 0);
  EXPECT_THAT(Last().target, HasSubstr("to=a%20b"));
  const json document = json::parse(out_);
  EXPECT_EQ(document["added"].size(), 1U);
  EXPECT_EQ(document["removed"].size(), 1U);
  EXPECT_FALSE(document.contains("nextPageToken"));
}

TEST_F(DatasetBranchesTest, RetentionAndSweepCanBeTriedFirst) {
  ASSERT_EQ(RunDataset({"sweep", "--dry-run"}), 0);
  EXPECT_EQ(Last().target, "/tarn/v1/sweep:run");
  EXPECT_EQ(json::parse(Last().body), json({{"dryRun", true}}));
  ASSERT_EQ(RunDataset({"retention", "run"}), 0);
  EXPECT_EQ(json::parse(Last().body), json({{"dryRun", false}}));
}

}  // namespace
}  // namespace tarn::cli
