// PostgresServer: a PostgreSQL of a test's own, in a temporary folder, on loopback.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/temporary_directory.h"

namespace tarn {

/// One owner thread, which must outlive the server: it ends with the thread that started it.
class PostgresServer {
 public:
  enum class Sync { kOn, kOff };
  /// Installs nothing: aborts when PostgreSQL is not there or does not start.
  explicit PostgresServer(Sync sync);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  /// Makes an empty schema; returns the URL that works in it, through `port` when it is given.
  std::string NewSchema(int port = 0);
  [[nodiscard]] int port() const { return port_; }
  /// Runs statements as the owner of everything; returns the first value of the last, "" without.
  std::string Run(const std::string& sql);
  /// Ends it as a crash would, without writing back what is in memory.
  void Crash();
  void Start();

 private:
  TemporaryDirectory folder_;
  Sync sync_;
  int port_ = 0;
  pid_t pid_ = 0;
  int schemas_ = 0;
};

/// The server that the tests of this process share, made by the first call.
PostgresServer& SharedPostgres();

/// A relay of TCP connections that looks at what clients send. Threads: any.
class TcpRelay {
 public:
  enum class Verdict {
    kPass,
    kDrop,       // The server never sees it; both connections close.
    kLoseReply,  // The server acts; what it says is lost, and both connections close.
  };
  using Script = std::function<Verdict(std::string_view sent)>;

  TcpRelay(int port, Script script);
  ~TcpRelay();
  TcpRelay(const TcpRelay&) = delete;
  TcpRelay& operator=(const TcpRelay&) = delete;
  [[nodiscard]] int port() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace tarn
