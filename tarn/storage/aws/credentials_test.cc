#include "tarn/storage/aws/credentials.h"

#include <cstdlib>
#include <fstream>

#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::storage::aws {
namespace {

class CredentialsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
                             "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE"}) {
      ::unsetenv(name);
    }
    ::setenv("HOME", directory_.path().c_str(), 1);
  }
  void TearDown() override { SetUp(); }

  std::string Write(const std::string& text) {
    const std::string path = directory_.path() / "keys";
    std::ofstream(path) << text;
    return path;
  }
  Result<std::optional<Credentials>> Get(const CredentialOptions& options) {
    TARN_ASSIGN_OR_RETURN(const auto source, OpenCredentials(options, http_, clock_));
    return source->Get();
  }

  TemporaryDirectory directory_;
  SystemClock clock_;
  http::HttpClient http_{{}};
};

TEST_F(CredentialsTest, GivenKeysComeFirst) {
  ::setenv("AWS_ACCESS_KEY_ID", "env", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "env-secret", 1);
  ASSERT_OK_AND_ASSIGN(const auto given,
                       Get({.access_key_id = "a", .secret_access_key = "b", .session_token = "c"}));
  EXPECT_EQ(given, (Credentials{"a", "b", "c"}));
  ASSERT_OK_AND_ASSIGN(const auto environment, Get({}));
  EXPECT_EQ(environment, (Credentials{"env", "env-secret", ""}));
  ASSERT_OK_AND_ASSIGN(const auto none, Get({.anonymous = true}));
  EXPECT_EQ(none, std::nullopt);
}

TEST_F(CredentialsTest, HalfAPairIsRefused) {
  const Status status = StatusOf(Get({.access_key_id = "a"}));
  EXPECT_THAT(status, FailsWith(ErrorCode::kInvalidArgument, "together"));
}

TEST_F(CredentialsTest, FilesAreReadAgainWhenTheyChange) {
  const std::string path = Write("[default]\naws_access_key_id=1\naws_secret_access_key=2\n");
  ASSERT_OK_AND_ASSIGN(const auto source, OpenCredentials({.file = path}, http_, clock_));
  EXPECT_THAT(source->Get(), IsOkAndHolds(std::optional(Credentials{"1", "2", ""})));
  Write("[default]\naws_access_key_id=3\naws_secret_access_key=4\naws_session_token=5\n");
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_THAT(source->Get(), IsOkAndHolds(std::optional(Credentials{"3", "4", "5"})));
}

TEST_F(CredentialsTest, NoCredentialsSayWhereTheyWereLookedFor) {
  EXPECT_THAT(Get({}), FailsWith(ErrorCode::kUnauthenticated, "AWS_ACCESS_KEY_ID"));
  EXPECT_THAT(Get({.file = "/nowhere"}), FailsWith(ErrorCode::kInvalidArgument, "/nowhere"));
  const std::string path = Write("[other]\naws_access_key_id=1\naws_secret_access_key=2\n");
  EXPECT_THAT(Get({.file = path}), FailsWith(ErrorCode::kUnauthenticated, "\"default\""));
  EXPECT_OK(Get({.file = path, .profile = "other"}));
}

TEST_F(CredentialsTest, ProfilesAreParsed) {
  const char* text =
      "# a comment\n; another\n[ a ]\r\n aws_access_key_id = A \r\naws_secret_access_key=S=/+\n"
      "region = x\nnonsense\n[b]\naws_access_key_id=B\n[c]\n";
  EXPECT_THAT(ParseProfile(text, "a"), IsOkAndHolds(std::optional(Credentials{"A", "S=/+", ""})));
  EXPECT_THAT(ParseProfile(text, "b"), FailsWith(ErrorCode::kInvalidArgument, "\"b\" lacks"));
  EXPECT_THAT(ParseProfile(text, "d"), IsOkAndHolds(std::optional<Credentials>()));
  EXPECT_THAT(ParseProfile("", "d"), IsOkAndHolds(std::optional<Credentials>()));
  EXPECT_OK(ParseProfile("[", "d"));
}

TEST_F(CredentialsTest, ErrorsDoNotShowSecrets) {
  const std::string path = Write("[default]\naws_access_key_id=\naws_secret_access_key=hushhush\n");
  const Status status = StatusOf(Get({.file = path}));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.ToString(), ::testing::Not(::testing::HasSubstr("hushhush")));
}

}  // namespace
}  // namespace tarn::storage::aws
