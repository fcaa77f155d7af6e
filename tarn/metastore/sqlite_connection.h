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

#include "tarn/metastore/database.h"

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
class SqliteConnection {
 public:
  /// A writer creates the file when it is missing and turns the write-ahead log on.
  /// Errors: kCorruption, kUnavailable; kFailedPrecondition for a database of another program.
  static Result<std::unique_ptr<SqliteConnection>> Open(const ConnectionOptions& options);
  ~SqliteConnection();
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  /// Runs statements separated by ';' without arguments.
  Status RunScript(const std::string& sql);
  Result<int64_t> Execute(std::string_view sql, const SqlArguments& arguments);
  Status Query(std::string_view sql, const SqlArguments& arguments, const RowCallback& row);
  [[nodiscard]] int64_t LastInsertId() const;
  /// False also after SQLite gave a transaction up by itself (disk full, I/O error).
  [[nodiscard]] bool InTransaction() const;
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

/// A transaction as functions see it. Remembers the first failure after which its work cannot be
/// trusted, so that a function which swallows it fails all the same.
class SqliteTransaction final : public SqlTransaction {
 public:
  explicit SqliteTransaction(SqliteConnection& connection) : connection_(connection) {}
  Result<int64_t> Execute(std::string_view sql, const SqlArguments& arguments) override;
  Status Query(std::string_view sql, const SqlArguments& arguments,
               const RowCallback& row) override;
  int64_t LastInsertId() override { return connection_.LastInsertId(); }

  [[nodiscard]] const Status& failure() const { return failure_; }

 private:
  void Remember(const Status& status);

  SqliteConnection& connection_;
  Status failure_;
};

/// Runs `function` with a last catch, and returns the transaction's own failure if it had one.
Status RunFunction(SqliteConnection& connection, const SqlFunction& function);

}  // namespace tarn::metastore
