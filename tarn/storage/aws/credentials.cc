#include "tarn/storage/aws/credentials.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace tarn::storage::aws {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kRenewBefore{5};

std::string Environment(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): tarn never sets its environment while threads run.
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

class FixedCredentials final : public CredentialSource {
 public:
  explicit FixedCredentials(std::optional<Credentials> credentials)
      : credentials_(std::move(credentials)) {}
  Result<std::optional<Credentials>> Get() override { return credentials_; }

 private:
  const std::optional<Credentials> credentials_;
};

// The metadata service of a machine, version 2: a session token first, then the role's keys.
Result<Credentials> AskMetadata(http::HttpClient& http, const std::string& url) {
  const auto call = [&](const http::Request& request) -> Result<std::string> {
    http::Answer answer = http.Send(request);
    if (!answer.transport.ok()) {
      return answer.transport;
    }
    if (!answer.ok()) {
      return Status(ErrorCode::kUnauthenticated,
                    fmt::format("the machine's metadata service answered {}", answer.status));
    }
    return std::move(answer.body);
  };
  http::Request request{.method = "PUT", .url = url + "/latest/api/token"};
  request.headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "300"}};
  request.answer_timeout = std::chrono::milliseconds(2'000);
  TARN_ASSIGN_OR_RETURN(const std::string token, call(request));
  const std::string roles = url + "/latest/meta-data/iam/security-credentials/";
  request.method = "GET";
  request.headers = {{"X-aws-ec2-metadata-token", token}};
  request.url = roles;
  TARN_ASSIGN_OR_RETURN(const std::string role, call(request));
  request.url = roles + role.substr(0, role.find('\n'));
  TARN_ASSIGN_OR_RETURN(const std::string text, call(request));
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  const auto field = [&](const char* name) {
    const bool there =
        document.is_object() && document.contains(name) && document[name].is_string();
    return there ? document[name].get<std::string>() : std::string();
  };
  Credentials found{.access_key_id = field("AccessKeyId"),
                    .secret_access_key = field("SecretAccessKey"),
                    .session_token = field("Token")};
  if (found.access_key_id.empty() || found.secret_access_key.empty()) {
    return Status(ErrorCode::kUnauthenticated, "the machine's metadata service gave no keys");
  }
  TARN_ASSIGN_OR_RETURN(found.expires, ParseTimestamp(field("Expiration")));
  return found;
}

Result<std::string> ReadSmallFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file.good() || text.str().size() > (1U << 20)) {
    return Status::Unavailable("cannot read the credentials file " + path);
  }
  return text.str();
}

// File, then metadata service.
class FoundCredentials final : public CredentialSource {
 public:
  FoundCredentials(CredentialOptions options, http::HttpClient& http, const Clock& clock)
      : options_(std::move(options)), http_(http), clock_(clock) {}

  Result<std::optional<Credentials>> Get() override {
    const std::lock_guard lock(mutex_);
    TARN_RETURN_IF_ERROR(LookIntoFile());
    if (from_file_) {
      return from_file_;
    }
    if (options_.instance_metadata == InstanceMetadata::kOff) {
      return Status(
          ErrorCode::kUnauthenticated,
          fmt::format("no credentials: none are configured, AWS_ACCESS_KEY_ID is not set "
                      "and {} has no profile \"{}\"",
                      options_.file.empty() ? "no file" : options_.file, options_.profile));
    }
    if (!temporary_ || clock_.Now() + kRenewBefore >= *temporary_->expires) {
      Result<Credentials> fresh = AskMetadata(http_, options_.metadata_url);
      if (fresh.ok()) {
        temporary_ = std::move(fresh).value();
      } else if (!temporary_ || clock_.Now() >= *temporary_->expires) {
        return fresh.status().WithContext("credentials of this machine");
      }
    }
    return temporary_;
  }

  void Forget() override {
    const std::lock_guard lock(mutex_);
    temporary_.reset();
    file_time_.reset();
  }

 private:
  Status LookIntoFile() {
    std::error_code error;
    const fs::file_time_type time = fs::last_write_time(options_.file, error);
    if (error) {
      from_file_.reset();
      return Status::Ok();
    }
    if (file_time_ != time) {
      TARN_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(options_.file));
      Result<std::optional<Credentials>> found = ParseProfile(text, options_.profile);
      if (!found.ok()) {
        return found.status().WithContext(options_.file);
      }
      from_file_ = std::move(found).value();
      file_time_ = time;
    }
    return Status::Ok();
  }

  const CredentialOptions options_;
  http::HttpClient& http_;
  const Clock& clock_;
  std::mutex mutex_;
  std::optional<fs::file_time_type> file_time_;  // Guarded by mutex_, as all below.
  std::optional<Credentials> from_file_;
  std::optional<Credentials> temporary_;
};

}  // namespace

Result<std::optional<Credentials>> ParseProfile(std::string_view text, std::string_view profile) {
  Credentials found;
  bool inside = false;
  bool there = false;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#' || line.front() == ';') {
      continue;
    }
    if (line.front() == '[') {
      inside = Trim(line.substr(1, line.find(']') - 1)) == profile;
      there = there || inside;
      continue;
    }
    const size_t equals = line.find('=');
    if (!inside || equals == std::string_view::npos) {
      continue;
    }
    const std::string_view key = Trim(line.substr(0, equals));
    const std::string value(Trim(line.substr(equals + 1)));
    if (key == "aws_access_key_id") {
      found.access_key_id = value;
    } else if (key == "aws_secret_access_key") {
      found.secret_access_key = value;
    } else if (key == "aws_session_token") {
      found.session_token = value;
    }
  }
  if (!there) {
    return std::optional<Credentials>();
  }
  if (found.access_key_id.empty() || found.secret_access_key.empty()) {
    return Status::InvalidArgument(
        fmt::format("profile \"{}\" lacks aws_access_key_id or aws_secret_access_key", profile));
  }
  return std::optional(found);
}

Result<std::unique_ptr<CredentialSource>> OpenCredentials(const CredentialOptions& options,
                                                          http::HttpClient& http,
                                                          const Clock& clock) {
  if (options.anonymous) {
    return std::make_unique<FixedCredentials>(std::nullopt);
  }
  if (options.access_key_id.empty() != options.secret_access_key.empty()) {
    return Status::InvalidArgument("access key and secret key are needed together");
  }
  Credentials given{.access_key_id = options.access_key_id,
                    .secret_access_key = options.secret_access_key,
                    .session_token = options.session_token};
  const bool file_named = !options.file.empty() || !options.profile.empty();
  if (given.access_key_id.empty() && !file_named) {
    given = {.access_key_id = Environment("AWS_ACCESS_KEY_ID"),
             .secret_access_key = Environment("AWS_SECRET_ACCESS_KEY"),
             .session_token = Environment("AWS_SESSION_TOKEN")};
  }
  if (!given.access_key_id.empty() && !given.secret_access_key.empty()) {
    return std::make_unique<FixedCredentials>(given);
  }
  CredentialOptions where = options;
  if (!where.file.empty() && !fs::exists(where.file)) {
    return Status::InvalidArgument("there is no credentials file " + where.file);
  }
  if (where.file.empty()) {
    where.file = Environment("AWS_SHARED_CREDENTIALS_FILE");
  }
  if (where.file.empty() && !Environment("HOME").empty()) {
    where.file = Environment("HOME") + "/.aws/credentials";
  }
  if (where.profile.empty()) {
    const std::string profile = Environment("AWS_PROFILE");
    where.profile = profile.empty() ? "default" : profile;
  }
  return std::make_unique<FoundCredentials>(std::move(where), http, clock);
}

}  // namespace tarn::storage::aws
