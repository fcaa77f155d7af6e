#include "tarn/cli/command_line.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tarn/cli/exit_code.h"
#include "tarn/cli/scripted_server.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::cli {
namespace {

using nlohmann::json;

struct Outcome {
  int exit_code = 0;
  std::string out;
  std::string err;
};

Outcome RunCommand(std::vector<std::string> arguments, const Callbacks& callbacks = {}) {
  arguments.insert(arguments.begin(), "tarn");
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(argument.c_str());
  }
  Outcome outcome;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  outcome.exit_code = Run(static_cast<int>(argv.size()), argv.data(), callbacks);
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

/// A dataset "p/d" with one open transaction at a time.
ScriptedAnswer DatasetScript(const SeenRequest& request) {
  const auto contains = [&](std::string_view text) {
    return request.target.find(text) != std::string::npos;
  };
  if (contains("/resources?path=")) {
    return contains("p%2Fd")
               ? ScriptedAnswer{.body = R"({"rid":"ri.d"})"}
               : ScriptedAnswer{.status = 404, .body = R"({"error":{"name":"PathNotFound",
                                                          "message":"nothing there"}})"};
  }
  if (contains("/upload")) {
    return contains("clash")
               ? ScriptedAnswer{.status = 409, .body = R"({"errorName":"Clash","parameters":{}})"}
               : ScriptedAnswer{.body = R"({"path":"f","sizeBytes":"3"})"};
  }
  if (contains("/transactions/ri.t/") || contains("/transactions?") ||
      request.target.ends_with("/transactions")) {
    return {.body = R"({"rid":"ri.t","status":"COMMITTED"})"};
  }
  if (contains("/files?") || request.target.ends_with("/files")) {
    return contains("pageToken") ? ScriptedAnswer{.body = R"({"data":[{"path":"b"}]})"}
                                 : ScriptedAnswer{.body = R"({"data":[{"path":"a\u001b"}],
                                                              "nextPageToken":"n/+"})"};
  }
  return {.status = 404, .body = "{}"};
}

TEST(CommandLineTest, UsageErrorsAreTwo) {
  EXPECT_EQ(RunCommand({}).exit_code, 2);
  EXPECT_EQ(RunCommand({"frobnicate"}).exit_code, 2);
  EXPECT_EQ(RunCommand({"dataset", "put"}).exit_code, 2);
  EXPECT_EQ(RunCommand({"sql", "SELECT 1", "--format", "xml"}).exit_code, 2);
  const Outcome outcome = RunCommand({"dataset", "create", "no-slash"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, testing::StartsWith("tarn: "));
  EXPECT_EQ(outcome.out, "");
}

TEST(CommandLineTest, HelpAndVersion) {
  const Outcome help = RunCommand({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* command : {"serve", "run", "dataset", "sql", "pipeline", "task", "status",
                              "table", "view", "folder", "user", "token", "version"}) {
    EXPECT_THAT(help.out, testing::HasSubstr(command));
  }
  EXPECT_TRUE(json::parse(RunCommand({"version", "--json"}).out).contains("version"));
}

TEST(CommandLineTest, ServeIsACallback) {
  ServeOptions seen;
  const Callbacks callbacks{.serve = [&seen](const ServeOptions& options) {
    seen = options;
    return Status::Unavailable("port taken");
  }};
  const Outcome outcome =
      RunCommand({"serve", "--home", "/h", "--listen", "127.0.0.1:0"}, callbacks);
  EXPECT_EQ(outcome.exit_code, kExitTransient);
  EXPECT_EQ(seen.home, "/h");
  EXPECT_EQ(seen.listen, "127.0.0.1:0");
  EXPECT_EQ(RunCommand({"serve"}).exit_code, kExitOther);
}

TEST(CommandLineTest, AnAbsentServerIsTransient) {
  EXPECT_EQ(RunCommand({"status", "--url", "http://127.0.0.1:1"}).exit_code, kExitTransient);
}

TEST(CommandLineTest, PutUploadsInOneTransaction) {
  ScriptedServer server(DatasetScript);
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "f") << "abc";
  const Outcome outcome =
      RunCommand({"--url", server.url(), "dataset", "put", "p/d", (directory.path() / "f").string(),
                  "--branch", "a b/c", "--type", "APPEND", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["files"][0]["path"], "f");
  EXPECT_EQ(server.lines(), (std::vector<std::string>{
                                "GET /tarn/v1/resources?path=p%2Fd",
                                "POST /api/v2/datasets/ri.d/transactions?branchName=a%20b%2Fc",
                                "POST /api/v2/datasets/ri.d/files/f/upload?transactionRid=ri.t",
                                "POST /api/v2/datasets/ri.d/transactions/ri.t/commit"}));
  EXPECT_EQ(server.seen()[1].body, R"({"transactionType":"APPEND"})");
  EXPECT_EQ(server.seen()[2].body, "abc");
}

TEST(CommandLineTest, AFailedPutAborts) {
  ScriptedServer server(DatasetScript);
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "clash") << "abc";
  const Outcome outcome = RunCommand(
      {"--url", server.url(), "dataset", "put", "p/d", (directory.path() / "clash").string()});
  EXPECT_EQ(outcome.exit_code, kExitConflict);
  EXPECT_THAT(outcome.err, testing::HasSubstr("(Clash)"));
  EXPECT_EQ(server.lines().back(), "POST /api/v2/datasets/ri.d/transactions/ri.t/abort");
}

TEST(CommandLineTest, ListingsFollowPagesAndEscape) {
  ScriptedServer server(DatasetScript);
  const Outcome text = RunCommand({"--url", server.url(), "dataset", "ls", "p/d", "pre/"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, testing::HasSubstr("a\\x1b"));
  EXPECT_EQ(server.lines().back(),
            "GET /api/v2/datasets/ri.d/files?pathPrefix=pre%2F&pageToken=n%2F%2B");
  const Outcome listed = RunCommand({"--url", server.url(), "dataset", "ls", "ri.d", "--json"});
  EXPECT_EQ(json::parse(listed.out).size(), 2U);
}

TEST(CommandLineTest, FailuresKeepTheirNameAndCode) {
  ScriptedServer server(DatasetScript);
  const Outcome text = RunCommand({"--url", server.url(), "dataset", "show", "p/none"});
  EXPECT_EQ(text.exit_code, kExitNotFound);
  EXPECT_EQ(text.err, "tarn: nothing there (PathNotFound)\n");
  const Outcome structured =
      RunCommand({"--url", server.url(), "dataset", "show", "p/none", "--json"});
  EXPECT_EQ(structured.out, "");
  EXPECT_EQ(json::parse(structured.err)["error"]["name"], "PathNotFound");
}

TEST(CommandLineTest, SqlPassesNumbersThroughUntouched) {
  const std::string rows = R"([{"n":12345678901234567890.123456789012345678}])";
  ScriptedServer server([&rows](const SeenRequest& request) {
    return request.head.find("text/csv") != std::string::npos
               ? ScriptedAnswer{.body = "n\n12345678901234567890.123456789012345678\n"}
               : ScriptedAnswer{.body = rows};
  });
  EXPECT_EQ(RunCommand({"--url", server.url(), "sql", "SELECT n", "--json"}).out, rows + "\n");
  EXPECT_EQ(RunCommand({"--url", server.url(), "sql", "SELECT n", "--at", "2026-01-01"}).out,
            "n\n12345678901234567890.123456789012345678\n");
  EXPECT_EQ(json::parse(server.seen()[1].body)["at"], "2026-01-01");
}

TEST(CommandLineTest, JsonWinsOverOtherFormsOfText) {
  ScriptedServer server([](const SeenRequest& request) {
    return ScriptedAnswer{
        .body = request.head.find("text/csv") != std::string::npos ? "n\n1\n" : R"([{"n":1}])"};
  });
  for (const char* format : {"csv", "table", "json"}) {
    EXPECT_EQ(
        RunCommand({"--url", server.url(), "sql", "SELECT n", "--format", format, "--json"}).out,
        "[{\"n\":1}]\n");
  }
  EXPECT_EQ(RunCommand({"sql", "SELECT n", "--format", "arrow", "--json"}).exit_code, kExitUsage);
  EXPECT_EQ(RunCommand({"sql", "SELECT n", "--format", "xml", "--json"}).exit_code, kExitUsage);
}

TEST(CommandLineTest, TheMetastoreIsACallback) {
  MetastoreOptions seen;
  Callbacks callbacks;
  callbacks.export_metastore = [&](const MetastoreOptions& options) -> Result<std::string> {
    seen = options;
    return std::string("wrote 1 row");
  };
  const Outcome done = RunCommand({"metastore", "export", "x", "--home", "h"}, callbacks);
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(done.out, "wrote 1 row\n");
  EXPECT_EQ(seen.home, "h");
  EXPECT_EQ(seen.file, "x");
  EXPECT_EQ(RunCommand({"metastore", "export", "y"}, callbacks).exit_code, 0);
  EXPECT_EQ(seen.file, "y");
  EXPECT_EQ(json::parse(RunCommand({"metastore", "check", "--json"}).err)["error"]["code"],
            "Unimplemented");
  EXPECT_EQ(RunCommand({"metastore", "export"}, callbacks).exit_code, kExitUsage);
  EXPECT_EQ(RunCommand({"metastore"}).exit_code, kExitUsage);
  EXPECT_EQ(RunCommand({"metastore", "frobnicate"}).exit_code, kExitUsage);
}

TEST(CommandLineTest, RunOnceFollowsToTheEnd) {
  int polls = 0;
  std::string end = R"({"state":"SUCCEEDED"})";
  ScriptedServer server([&](const SeenRequest& request) {
    if (request.target == "/tarn/v1/pipelines") {
      return ScriptedAnswer{.body = R"({"name":"p q"})"};
    }
    if (request.target == "/tarn/v1/pipelines/p%20q:runOnce") {
      return ScriptedAnswer{.body = R"({"runId":"r1"})"};
    }
    return ScriptedAnswer{.body = ++polls < 3 ? R"({"state":"RUNNING"})" : end};
  });
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "p.yaml").string();
  std::ofstream(file) << "pipeline: p q\n";
  EXPECT_EQ(RunCommand({"--url", server.url(), "run", file, "--once"}).exit_code, 0);
  EXPECT_EQ(server.seen()[0].body, "pipeline: p q\n");
  end = R"({"state":"FAILED","error":{"task":"p q.t","name":"Corrupt","message":"bad file"}})";
  const Outcome failed = RunCommand({"--url", server.url(), "run", file, "--once"});
  EXPECT_EQ(failed.exit_code, kExitOther);
  EXPECT_EQ(failed.err, "tarn: p q.t: bad file (Corrupt)\n");
  EXPECT_EQ(RunCommand({"run", file + ".none"}).exit_code, kExitUsage);
}

TEST(CommandLineTest, VariablesGoBesideTheFile) {
  ScriptedServer server(
      [](const SeenRequest&) { return ScriptedAnswer{.body = R"({"valid":true,"name":"p"})"}; });
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "p.yaml").string();
  const std::string yaml = "pipeline: p\nsources: {in: {uri: \"${TARN_TEST_A}/${TARN_TEST_B}\"}}\n";
  std::ofstream(file) << yaml;
  ::setenv("TARN_TEST_A", "se\"cret", 1);
  ::unsetenv("TARN_TEST_B");
  EXPECT_EQ(RunCommand({"--url", server.url(), "pipeline", "validate", file}).exit_code, 0);
  ::unsetenv("TARN_TEST_A");
  const json sent = json::parse(server.seen()[0].body);
  EXPECT_EQ(sent["yaml"], yaml);
  EXPECT_EQ(sent["variables"], json({{"TARN_TEST_A", "se\"cret"}}));
  EXPECT_EQ(RunCommand({"--url", server.url(), "pipeline", "validate", file}).exit_code, 0);
  EXPECT_EQ(server.seen()[1].body, yaml);
}

TEST(CommandLineTest, ARunThatTheServerGaveUpIsTransient) {
  ScriptedServer server([&](const SeenRequest& request) {
    if (request.target == "/tarn/v1/pipelines") {
      return ScriptedAnswer{.body = R"({"name":"p"})"};
    }
    if (request.method == "POST") {
      return ScriptedAnswer{.body = R"({"runId":"r1"})"};
    }
    return ScriptedAnswer{.body = R"({"state":"FAILED","error":{"task":null,"name":"Stopping",
                                      "code":"Unavailable","message":"the server stops"}})"};
  });
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "p.yaml").string();
  std::ofstream(file) << "pipeline: p\n";
  const Outcome outcome = RunCommand({"--url", server.url(), "run", file, "--once"});
  EXPECT_EQ(outcome.exit_code, kExitTransient);
  EXPECT_EQ(outcome.err, "tarn: run: the server stops (Stopping)\n");
}

TEST(CommandLineTest, ARunThatTheServerForgotIsTransient) {
  ScriptedServer server([&](const SeenRequest& request) {
    if (request.target == "/tarn/v1/pipelines") {
      return ScriptedAnswer{.body = R"({"name":"p"})"};
    }
    return request.method == "POST"
               ? ScriptedAnswer{.body = R"({"runId":"r1"})"}
               : ScriptedAnswer{.status = 404,
                                .body = R"({"errorCode":"NOT_FOUND","errorName":"RunNotFound"})"};
  });
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "p.yaml").string();
  std::ofstream(file) << "pipeline: p\n";
  const Outcome outcome = RunCommand({"--url", server.url(), "run", file});
  EXPECT_EQ(outcome.exit_code, kExitTransient);
  EXPECT_THAT(outcome.err, testing::HasSubstr("pipeline p is running"));
  EXPECT_THAT(outcome.err, testing::HasSubstr("run it again"));
}

TEST(CommandLineTest, StatusIsATableWithNotes) {
  ScriptedServer server([](const SeenRequest&) {
    return ScriptedAnswer{.body = R"({"tasks":[{"task":"p.t","state":"RUNNING","lag_seconds":1.26,
        "last_error":"gone","warnings":[{"code":"overwritten","object":"/a","at":"now"}]}]})"};
  });
  const Outcome text = RunCommand({"--url", server.url(), "status"});
  EXPECT_THAT(text.out, testing::HasSubstr("1.3"));
  EXPECT_THAT(text.out, testing::HasSubstr("\np.t: gone\np.t: overwritten /a (now)\n"));
  EXPECT_EQ(
      json::parse(
          RunCommand({"--url", server.url(), "status", "--json"}).out)["tasks"][0]["lag_seconds"],
      1.26);
}

TEST(CommandLineTest, TheSchemaNeedsNoServer) {
  const Outcome outcome = RunCommand({"--url", "http://127.0.0.1:1", "pipeline", "schema"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(json::parse(outcome.out).contains("$defs"));
}

TEST(CommandLineTest, APlanThatIsRefusedIsAConflict) {
  const TemporaryDirectory folder;
  const std::string file = (folder.path() / "p.yaml").string();
  std::ofstream(file) << "pipeline: p\n";
  std::string refused = "false";
  const ScriptedServer server([&](const SeenRequest&) {
    return ScriptedAnswer{.body =
                              R"({"data":[{"object":"p.t","change":"create","effect":"makes it",)"
                              R"("refused":)" +
                              refused + "}]}"};
  });
  const std::vector<std::string> command = {"--url",    server.url(), "--token", "t",
                                            "pipeline", "plan",       file};
  EXPECT_EQ(RunCommand(command).exit_code, kExitOk);
  refused = "true";
  const Outcome outcome = RunCommand(command);
  EXPECT_EQ(outcome.exit_code, kExitConflict);
  EXPECT_THAT(outcome.out, ::testing::HasSubstr("makes it"));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("1 of the changes would be refused"));
}

TEST(CommandLineTest, WhatADoctorFindsIsAFailure) {
  std::string severity = "note";
  const ScriptedServer server([&](const SeenRequest&) {
    return ScriptedAnswer{.body = R"({"data":[{"severity":")" + severity +
                                  R"(","finding":"f","advice":"a"}]})"};
  });
  const std::vector<std::string> command = {"--url", server.url(), "--token", "t",
                                            "table", "doctor",     "p.t"};
  EXPECT_EQ(RunCommand(command).exit_code, kExitOk);
  severity = "warning";
  const Outcome outcome = RunCommand(command);
  EXPECT_EQ(outcome.exit_code, kExitOther);
  EXPECT_THAT(outcome.out, ::testing::HasSubstr("warning"));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("p.t: 0 errors, 1 warnings"));
  severity = "error";
  EXPECT_EQ(RunCommand(command).exit_code, kExitOther);
}

TEST(CommandLineTest, AnApplyThatIsRefusedTellsThePlan) {
  const TemporaryDirectory folder;
  const std::string file = (folder.path() / "p.yaml").string();
  std::ofstream(file) << "pipeline: p\n";
  const ScriptedServer server([&](const SeenRequest& request) {
    return request.target.ends_with(":plan")
               ? ScriptedAnswer{.body =
                                    R"({"data":[{"object":"p.a","effect":"fine","refused":false},)"
                                    R"({"object":"p.b","effect":"taken","refused":true},)"
                                    R"({"object":"p.c","effect":"taken too","refused":true}]})"}
               : ScriptedAnswer{.status = 409,
                                .body = R"({"error":{"name":"AlreadyExists","message":"b"}})"};
  });
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"pipeline", "apply", file}, {"run", file}}) {
    std::vector<std::string> full = {"--url", server.url(), "--token", "t"};
    full.insert(full.end(), command.begin(), command.end());
    const Outcome outcome = RunCommand(full);
    EXPECT_EQ(outcome.exit_code, kExitConflict);
    EXPECT_THAT(outcome.err, ::testing::HasSubstr("tarn: p.b: taken\ntarn: p.c: taken too\n"));
    EXPECT_THAT(outcome.err, ::testing::Not(::testing::HasSubstr("fine")));
    full.emplace_back("--json");
    EXPECT_EQ(json::parse(RunCommand(full).err)["error"]["parameters"]["refused"].size(), 2U);
  }
}

TEST(CommandLineTest, AFolderIsNoPipelineFile) {
  const TemporaryDirectory folder;
  std::ofstream(folder.path() / "p.yaml") << "pipeline: p\n";
  const Outcome outcome =
      RunCommand({"--url", "http://127.0.0.1:1", "run", folder.path().string()});
  EXPECT_EQ(outcome.exit_code, kExitUsage);
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("is a folder"));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("p.yaml"));
}

TEST(CommandLineTest, ABranchThatIsHeldIsWaitedForAndItsHolderNamed) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "f") << "abc";
  int refusals = 2;
  const ScriptedServer server([&](const SeenRequest& request) {
    const auto contains = [&](std::string_view text) {
      return request.target.find(text) != std::string::npos;
    };
    if (contains("/transactions?") || request.target.ends_with("/transactions")) {
      return refusals-- > 0
                 ? ScriptedAnswer{.status = 409,
                                  .body = R"({"errorName":"OpenTransactionAlreadyExists",)"
                                          R"("parameters":{"branchName":"master"}})"}
                 : ScriptedAnswer{.body = R"({"rid":"ri.t"})"};
    }
    if (contains("/history")) {
      return ScriptedAnswer{.body = R"({"data":[{"rid":"ri.held","status":"OPEN",)"
                                    R"("createdBy":"u1","createdTime":"today"}]})"};
    }
    return ScriptedAnswer{.body = contains("/users/")      ? R"({"username":"alice"})"
                                  : contains("/branches/") ? R"({"transactionRid":"ri.held"})"
                                                           : R"({"rid":"ri.d","path":"f"})"};
  });
  const std::vector<std::string> put = {"--url", server.url(), "dataset",
                                        "put",   "p/d",        (directory.path() / "f").string()};
  EXPECT_EQ(RunCommand(put).exit_code, kExitOk);
  refusals = 1000;
  std::vector<std::string> impatient = put;
  impatient.insert(impatient.end(), {"--wait", "0"});
  const Outcome outcome = RunCommand(impatient);
  EXPECT_EQ(outcome.exit_code, kExitConflict);
  EXPECT_THAT(outcome.err,
              ::testing::HasSubstr("branch master of p/d is held by transaction ri.held of alice, "
                                   "open since today"));
}

TEST(CommandLineTest, NamesThatTheDiskDoesNotTakeKeepNoOtherFileBack) {
  const TemporaryDirectory directory;
  const std::string longest(255, 'x');
  const std::string longer(256, 'y');
  const ScriptedServer server([&](const SeenRequest& request) {
    const auto contains = [&](std::string_view text) {
      return request.target.find(text) != std::string::npos;
    };
    return ScriptedAnswer{.body = contains("/resources?") ? R"({"rid":"ri.d"})"
                                  : contains("/content")
                                      ? "bytes"
                                      : R"({"data":[{"path":")" + longer +
                                            R"("},{"path":"a"},{"path":"a/b"},{"path":"../c"},)"
                                            R"({"path":")" +
                                            longest + R"("}]})"};
  });
  const std::string to = (directory.path() / "to").string();
  const Outcome outcome =
      RunCommand({"--url", server.url(), "dataset", "get", "p/d", "--to", to, "--json"});
  EXPECT_EQ(outcome.exit_code, kExitOther);
  EXPECT_EQ(json::parse(outcome.out).size(), 2U);
  EXPECT_TRUE(std::filesystem::exists(to + "/a"));
  EXPECT_TRUE(std::filesystem::exists(to + "/" + longest));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr(longer));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("a/b"));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("../c"));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("3 of 5 files"));
}

TEST(CommandLineTest, ATagIsTakenForABranch) {
  const ScriptedServer server([&](const SeenRequest& request) {
    const auto contains = [&](std::string_view text) {
      return request.target.find(text) != std::string::npos;
    };
    if (contains("at=dev")) {
      return ScriptedAnswer{.body = R"({"transactionRid":"ri.h","kind":"branch"})"};
    }
    if (contains("transactions:at")) {
      return ScriptedAnswer{.body = R"({"transactionRid":"ri.v","kind":"tag"})"};
    }
    return ScriptedAnswer{.body = contains("/files") ? R"({"data":[]})" : R"({"rid":"ri.d"})"};
  });
  const auto last = [&](const std::vector<std::string>& options) {
    std::vector<std::string> command = {"--url", server.url(), "dataset", "ls", "p/d"};
    command.insert(command.end(), options.begin(), options.end());
    EXPECT_EQ(RunCommand(command).exit_code, kExitOk);
    return server.lines().back();
  };
  const std::string files = "GET /api/v2/datasets/ri.d/files";
  EXPECT_EQ(last({"--branch", "v1"}), files + "?endTransactionRid=ri.v");
  EXPECT_EQ(last({"--at", "v1"}), files + "?endTransactionRid=ri.v");
  EXPECT_EQ(last({"--branch", "dev"}), files + "?branchName=dev");
  EXPECT_EQ(last({"--branch", "master"}), files + "?branchName=master");
}

TEST(CommandLineTest, AnAnswerThatBreaksOffIsAskedAbout) {
  std::string known = R"({"error":{"name":"InvalidArgument","message":"cannot cast 'x'"}})";
  const ScriptedServer server([&](const SeenRequest& request) {
    if (request.target.starts_with("/tarn/v1/failures/")) {
      return ScriptedAnswer{.status = known.find("NotFound") != std::string::npos ? 404 : 400,
                            .body = known};
    }
    return ScriptedAnswer{.raw =
                              "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n"
                              "X-Request-Id: 17\r\n\r\n[{}"};
  });
  const std::vector<std::string> command = {"--url", server.url(), "--token", "t",
                                            "sql",   "SELECT 1",   "--json"};
  const Outcome outcome = RunCommand(command);
  EXPECT_EQ(outcome.exit_code, kExitOther);
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("cannot cast"));
  EXPECT_EQ(server.lines().back(), "GET /tarn/v1/failures/17");
  known = R"({"error":{"name":"FailureNotFound","message":"none"}})";
  const Outcome unknown = RunCommand(command);
  EXPECT_EQ(unknown.exit_code, kExitTransient);
  EXPECT_THAT(unknown.err, ::testing::HasSubstr("broke the answer off"));
}

TEST(CommandLineTest, RowsAreATableForPeopleAndGoThroughForPrograms) {
  const ScriptedServer server([&](const SeenRequest& request) {
    const bool as_json = request.head.find("Accept: application/json") != std::string::npos;
    return ScriptedAnswer{.body = as_json ? R"([{"n":12345678901234567890123}])"
                                          : "n\n12345678901234567890123\n"};
  });
  const std::vector<std::vector<std::string>> commands = {
      {"sql", "SELECT 1"}, {"task", "preview", "p.t"}, {"dataset", "read", "ri.d"}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.begin(), {"--url", server.url(), "--token", "t"});
    EXPECT_EQ(RunCommand(command).out, "n\n12345678901234567890123\n") << command[4];
    command.insert(command.begin(), "--json");
    EXPECT_EQ(RunCommand(command).out, "[{\"n\":12345678901234567890123}]\n") << command[5];
  }
}

}  // namespace
}  // namespace tarn::cli
