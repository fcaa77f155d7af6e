#include "test/stores/store_server.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>
#include <vector>

#include "tarn/base/check.h"
#include "tarn/storage/s3/s3_client.h"
#include "test/support/loopback.h"
#include "test/support/temporary_directory.h"

namespace tarn::test {

namespace {

constexpr std::chrono::seconds kStartDeadline{60};

std::string ProgramOf(const char* service) {
  const std::string command =
      std::string(TARN_SERVICES_PYTHON " " TARN_SERVICES_SCRIPT " ") + service;
  FILE* pipe = ::popen(command.c_str(), "re");
  TARN_CHECK(pipe != nullptr);
  char line[4096] = "";
  const char* got = std::fgets(line, sizeof line, pipe);
  TARN_CHECK(::pclose(pipe) == 0 && got != nullptr);
  std::string path(line);
  path.pop_back();
  return path;
}

// A process and its folder; both go with this object.
class Process {
 public:
  Process() = default;
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] std::string folder() const { return folder_.path().string(); }

  void Start(const std::vector<std::string>& command) {
    const std::string log = folder() + "/log";
    std::vector<char*> arguments;
    for (const std::string& word : command) {
      arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    pid_ = ::fork();
    TARN_CHECK(pid_ >= 0);
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::setenv("GOMAXPROCS", "2", 1);
      // SeaweedFS: one volume for a bucket instead of seven.
      ::setenv("WEED_MASTER_VOLUME_GROWTH_COPY_1", "1", 1);
      (void)::freopen(log.c_str(), "w", stdout);
      ::dup2(1, 2);
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
  }

  // Waits until a list of buckets is answered at all.
  void AwaitAnswer(const std::string& endpoint) {
    storage::http::HttpClient http({});
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      const storage::http::Answer answer = http.Send({.url = endpoint + "/"});
      if (answer.transport.ok() && answer.status < 500) {
        return;
      }
      const bool ended = ::waitpid(pid_, nullptr, WNOHANG) != 0;
      if (ended || std::chrono::steady_clock::now() - begin > kStartDeadline) {
        std::ifstream log(folder() + "/log");
        const std::string text((std::istreambuf_iterator<char>(log)), {});
        internal::CheckFailed("the store's server starts", __FILE__, __LINE__, text);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

 private:
  TemporaryDirectory folder_;
  pid_t pid_ = 0;
};

StoreServer ServerAt(int port) {
  return {
      .endpoint = "http://127.0.0.1:" + std::to_string(port), .address = "127.0.0.1", .port = port};
}

StoreServer StartVersitygw(Process& process) {
  const StoreServer server = ServerAt(FreePort());
  const std::string data = process.folder() + "/data";
  std::filesystem::create_directory(data);
  process.Start({ProgramOf("versitygw"), "--port", "127.0.0.1:" + std::to_string(server.port),
                 "--access", "test", "--secret", "testtest", "--region", "us-east-1", "--quiet",
                 "posix", data});
  process.AwaitAnswer(server.endpoint);
  return server;
}

StoreServer StartSeaweedfs(Process& process) {
  const StoreServer server = ServerAt(FreePort());
  const std::string config = process.folder() + "/s3.json";
  std::ofstream(config) << R"({"identities":[{"name":"admin","credentials":[)"
                           R"({"accessKey":"test","secretKey":"testtest"}],)"
                           R"("actions":["Admin","Read","Write","List","Tagging"]}]})";
  const std::string roles = process.folder() + "/iam.json";
  std::ofstream(roles)
      << R"({"sts":{"tokenDuration":"1h","maxSessionLength":"12h","issuer":"tarn-test",)"
         R"("signingKey":"YS1zaWduaW5nLWtleS1vZi10aGlydHktdHdvLWJ5dGVz"},)"
         R"("policy":{"defaultEffect":"Deny","storeType":"memory"},)"
         R"("roleStore":{"storeType":"memory"},)"
         R"("policies":[{"name":"All","document":{"Version":"2012-10-17","Statement":[)"
         R"({"Effect":"Allow","Action":["s3:*"],"Resource":["*"]}]}}],)"
         R"("roles":[{"roleName":"Vended","roleArn":")"
      << kVendedRole
      << R"(","trustPolicy":{"Version":"2012-10-17","Statement":[{"Effect":"Allow",)"
         R"("Principal":{"AWS":"*"},"Action":["sts:AssumeRole"]}]},"attachedPolicies":["All"]}]})";
  const std::string data = process.folder() + "/data";
  std::filesystem::create_directory(data);
  std::vector<std::string> command = {ProgramOf("seaweedfs"),
                                      "server",
                                      "-dir=" + data,
                                      "-ip=127.0.0.1",
                                      "-ip.bind=127.0.0.1",
                                      "-filer",
                                      "-s3",
                                      "-s3.config=" + config,
                                      "-s3.iam.config=" + roles,
                                      "-volume.max=1000",
                                      "-master.volumeSizeLimitMB=64",
                                      "-s3.port=" + std::to_string(server.port)};
  for (const char* name :
       {"-master.port", "-master.port.grpc", "-volume.port", "-volume.port.grpc", "-filer.port",
        "-filer.port.grpc", "-s3.port.grpc", "-s3.port.iceberg"}) {
    command.push_back(std::string(name) + "=" + std::to_string(FreePort()));
  }
  process.Start(command);
  process.AwaitAnswer(server.endpoint);
  return server;
}

}  // namespace

int FreePort() {
  int port = 0;
  ::close(BindLoopback(port));
  return port;
}

const StoreServer& Versitygw() {
  static Process process;
  static const StoreServer server = StartVersitygw(process);
  return server;
}

const StoreServer& Seaweedfs() {
  static Process process;
  static const StoreServer server = StartSeaweedfs(process);
  return server;
}

storage::s3::S3Options NewBucket(const StoreServer& server) {
  static std::atomic<int> count{0};
  storage::s3::S3Options options;
  options.bucket = "tarn-" + std::to_string(++count);
  options.endpoint = server.endpoint;
  options.credentials.access_key_id = "test";
  options.credentials.secret_access_key = "testtest";
  options.part_bytes = 5ULL << 20;
  options.retry.wait_first = std::chrono::milliseconds(5);
  options.retry.wait_max = std::chrono::milliseconds(200);
  return options;
}

void MakeBucket(const storage::s3::S3Options& options) {
  SystemClock clock;
  SystemSleeper sleeper;
  const auto client = storage::s3::S3Client::Open(options, {clock, sleeper}).value();
  Status made;
  // A server that has just started may not have room for data yet.
  for (int i = 0; i < 100; ++i) {
    made = client->CreateBucket();
    if (made.ok()) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  internal::CheckFailed("a bucket can be made", __FILE__, __LINE__, made.ToString());
}

}  // namespace tarn::test
