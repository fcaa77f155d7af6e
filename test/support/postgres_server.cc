#include "test/support/postgres_server.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <utility>

#include <libpq-fe.h>
#include <pwd.h>

#include "tarn/base/check.h"
#include "test/support/loopback.h"

namespace tarn {

namespace {

constexpr std::chrono::seconds kStartDeadline{60};

// Where Debian puts the newest PostgreSQL.
std::string ProgramFolder() {
  std::string newest;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/postgresql", none)) {
    if (std::filesystem::exists(entry.path() / "bin" / "initdb")) {
      newest = std::max(newest, (entry.path() / "bin").string());
    }
  }
  TARN_CHECK(!newest.empty());  // ./dev installs postgresql-15.
  return newest;
}

// PostgreSQL refuses to run as root.
const passwd* OtherUser() {
  if (::geteuid() != 0) {
    return nullptr;
  }
  const passwd* user = ::getpwnam("postgres");
  return user != nullptr ? user : ::getpwnam("nobody");
}

pid_t Spawn(const std::vector<std::string>& command, const std::string& log) {
  const passwd* user = OtherUser();
  std::vector<char*> arguments;
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  TARN_CHECK(child >= 0);
  if (child == 0) {
    (void)::freopen(log.c_str(), "a", stdout);
    ::dup2(1, 2);
    if (user != nullptr && (::setgid(user->pw_gid) != 0 || ::setuid(user->pw_uid) != 0)) {
      ::_exit(126);
    }
    ::prctl(PR_SET_PDEATHSIG, SIGQUIT);  // After setuid, which forgets it.
    (void)::chdir("/");
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  return child;
}

std::string TextOf(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string UrlOf(int port) {
  return "postgresql://tarn@127.0.0.1:" + std::to_string(port) + "/postgres";
}

}  // namespace

PostgresServer::PostgresServer(Sync sync) : sync_(sync) {
  const std::string folder = folder_.path().string();
  if (const passwd* user = OtherUser()) {
    TARN_CHECK(::chown(folder.c_str(), user->pw_uid, user->pw_gid) == 0);
  }
  const pid_t made = Spawn({ProgramFolder() + "/initdb", "-D", folder + "/data", "-U", "tarn", "-A",
                            "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"},
                           folder + "/log");
  int status = 0;
  TARN_CHECK(::waitpid(made, &status, 0) == made);
  if (status != 0) {
    internal::CheckFailed("initdb makes a cluster", __FILE__, __LINE__, TextOf(folder + "/log"));
  }
  ::close(test::BindLoopback(port_));
  Start();
}

PostgresServer::~PostgresServer() { Crash(); }

void PostgresServer::Start() {
  const std::string folder = folder_.path().string();
  std::vector<std::string> command = {ProgramFolder() + "/postgres", "-D", folder + "/data", "-p",
                                      std::to_string(port_)};
  for (const std::string& setting :
       {std::string("listen_addresses=127.0.0.1"), "unix_socket_directories=" + folder,
        std::string("max_connections=200"), std::string("shared_buffers=64MB"),
        std::string("deadlock_timeout=100ms"),
        std::string(sync_ == Sync::kOn ? "fsync=on" : "fsync=off")}) {
    command.insert(command.end(), {"-c", setting});
  }
  pid_ = Spawn(command, folder + "/log");
  const auto begin = std::chrono::steady_clock::now();
  while (PQping(UrlOf(port_).c_str()) != PQPING_OK) {
    if (std::chrono::steady_clock::now() - begin > kStartDeadline ||
        ::waitpid(pid_, nullptr, WNOHANG) != 0) {
      internal::CheckFailed("PostgreSQL starts", __FILE__, __LINE__, TextOf(folder + "/log"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void PostgresServer::Crash() {
  if (pid_ > 0) {
    ::kill(pid_, SIGQUIT);  // No checkpoint; the log is replayed at the next start.
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
}

std::string PostgresServer::Run(const std::string& sql) {
  PGconn* connection = PQconnectdb(UrlOf(port_).c_str());
  PGresult* result = PQexec(connection, sql.c_str());
  const ExecStatusType status = PQresultStatus(result);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
    internal::CheckFailed("the statement runs", __FILE__, __LINE__,
                          sql + ": " + PQerrorMessage(connection));
  }
  std::string value;
  if (PQntuples(result) > 0 && PQnfields(result) > 0) {
    value = PQgetvalue(result, 0, 0);
  }
  PQclear(result);
  PQfinish(connection);
  return value;
}

std::string PostgresServer::NewSchema(int port) {
  const std::string name = "t" + std::to_string(++schemas_);
  Run("CREATE SCHEMA " + name);
  return UrlOf(port == 0 ? port_ : port) + "?options=-csearch_path%3D" + name;
}

PostgresServer& SharedPostgres() {
  static PostgresServer server(PostgresServer::Sync::kOn);
  return server;
}

// One thread accepts, one serves each connection.
class TcpRelay::Core {
 public:
  Core(int port, Script script) : target_(port), script_(std::move(script)) {
    listener_ = test::BindLoopback(port_);
    TARN_CHECK(::listen(listener_, 64) == 0);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~Core() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (std::thread& thread : threads_) {
      thread.join();
    }
    ::close(listener_);
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  [[nodiscard]] int port() const { return port_; }

 private:
  void Accept() {
    while (!stopping_) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client >= 0) {
        threads_.emplace_back([this, client] { Serve(client); });
      }
    }
  }

  void Serve(int client) {
    const int server = test::ConnectLoopback(target_);
    pollfd ends[2] = {{.fd = client, .events = POLLIN, .revents = 0},
                      {.fd = server, .events = POLLIN, .revents = 0}};
    bool open = server >= 0;
    while (open && !stopping_) {
      if (::poll(ends, 2, 50) <= 0) {
        continue;
      }
      if (ends[0].revents != 0) {
        open = PassToServer(client, server);
      }
      if (open && ends[1].revents != 0) {
        open = Pass(server, client);
      }
    }
    ::close(client);
    if (server >= 0) {
      ::close(server);
    }
  }

  static bool Pass(int from, int to) {
    char buffer[65536];
    const ssize_t got = ::recv(from, buffer, sizeof buffer, 0);
    return got > 0 && test::SendAll(to, {buffer, static_cast<size_t>(got)});
  }

  bool PassToServer(int client, int server) {
    char buffer[65536];
    const ssize_t got = ::recv(client, buffer, sizeof buffer, 0);
    if (got <= 0) {
      return false;
    }
    const std::string_view sent(buffer, static_cast<size_t>(got));
    Verdict verdict = Verdict::kPass;
    {
      const std::lock_guard lock(mutex_);
      verdict = script_(sent);
    }
    if (verdict == Verdict::kDrop || !test::SendAll(server, sent)) {
      return false;
    }
    if (verdict == Verdict::kLoseReply) {
      (void)::recv(server, buffer, sizeof buffer, 0);
      return false;
    }
    return true;
  }

  const int target_;
  const Script script_;
  std::mutex mutex_;  // One call of script_ at a time.
  int port_ = 0;
  int listener_ = -1;
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;  // Of the acceptor, then of the destructor.
  std::thread acceptor_;
};

TcpRelay::TcpRelay(int port, Script script)
    : core_(std::make_unique<Core>(port, std::move(script))) {}
TcpRelay::~TcpRelay() = default;
int TcpRelay::port() const { return core_->port(); }

}  // namespace tarn
