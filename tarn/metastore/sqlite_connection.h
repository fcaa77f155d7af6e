// SqliteConnection: one SQLite connection with its prepared statements, and the translation of
// SQLite's result codes. Private to this room.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tarn/metastore/connection.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tarn::metastore {

enum class ConnectionMode { kReader, kWriter };

struct ConnectionOptions {
  std::filesystem::path path;
  ConnectionMode mode = ConnectionMode::kReader;
  std::string vfs;  // Empty = default.
  std::chrono::milliseconds busy_wait_max{5'000};
  int64_t cache_bytes = 8LL << 20;
  size_t statements_max = 512;
};

/// One user at a time.
class SqliteConnection final : public Connection {
 public:
  /// A writer creates the file when it is missing and turns the write-ahead log on.
  /// Errors: kCorruption, kUnavailable; kFailedPrecondition for a database of another program.
  static Result<std::unique_ptr<SqliteConnection>> Open(const ConnectionOptions& options);
  ~SqliteConnection() override;
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  /// Runs statements separated by ';' without arguments.
  Status RunScript(const std::string& sql) override;
  Result<int64_t> Execute(std::string_view sql, const SqlArguments& arguments) override;
  Status Query(std::string_view sql, const SqlArguments& arguments,
               const RowCallback& row) override;
  Result<int64_t> LastInsertId() override;
  Status BeginRead() override { return Execute("BEGIN", {}).status(); }
  Status EndRead() override { return Execute("ROLLBACK", {}).status(); }
  /// False also after SQLite gave a transaction up by itself (disk full, I/O error).
  [[nodiscard]] bool InTransaction() const override;
  [[nodiscard]] bool HasFailed() const override { return !InTransaction(); }
  [[nodiscard]] bool IsLost() const override { return false; }
  /// Failure of an SQLite call on this connection, `code` being its result.
  [[nodiscard]] Status Failure(int code, std::string_view doing) const;
  [[nodiscard]] sqlite3* handle() const { return handle_; }

 private:
  struct Entry {
    sqlite3_stmt* statement = nullptr;
    bool in_use = false;
  };
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  class Use;

  SqliteConnection(sqlite3* handle, ConnectionOptions options);
  Status Configure();
  Status CheckOwner();
  Result<Use> Prepare(std::string_view sql, const SqlArguments& arguments);
  Result<sqlite3_stmt*> Compile(std::string_view sql);
  Status Bind(sqlite3_stmt* statement, std::string_view sql, const SqlArguments& arguments);
  void DropIdleStatements();

  sqlite3* handle_;
  ConnectionOptions options_;
  std::unordered_map<std::string, Entry, TextHash, std::equal_to<>> statements_;
};

}  // namespace tarn::metastore
