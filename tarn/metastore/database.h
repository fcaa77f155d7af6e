// Database: connections and transactions of the metastore. Rooms own their tables and SQL text.
//
// Implementation: SqliteDatabase (sqlite_database.h). The interface leaves room for PostgreSQL:
// one schema and one SQL subset serve both. All implementations run
// database_contract_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tarn/base/status.h"

namespace tarn::metastore {

/// Bytes of a BLOB column, as opposed to TEXT. Value.
struct Blob {
  std::string bytes;
  friend bool operator==(const Blob&, const Blob&) = default;
};

/// One SQL value: NULL, INTEGER, REAL, TEXT or BLOB.
using SqlValue = std::variant<std::monostate, int64_t, double, std::string, Blob>;
using SqlArguments = std::vector<SqlValue>;

/// The current row of a running query. Valid inside the row callback only.
class SqlRow {
 public:
  virtual ~SqlRow() = default;
  [[nodiscard]] virtual int column_count() const = 0;
  [[nodiscard]] virtual bool IsNull(int column) const = 0;
  /// NULL reads as 0 and as empty.
  [[nodiscard]] virtual int64_t Int(int column) const = 0;
  [[nodiscard]] virtual double Real(int column) const = 0;
  /// Also the bytes of a BLOB. The view dies with the callback.
  [[nodiscard]] virtual std::string_view Text(int column) const = 0;
};

enum class RowAction { kContinue, kStop };
/// Called once per row; stops early on kStop or on a failure, which the query then returns.
using RowCallback = std::function<Result<RowAction>(const SqlRow&)>;

/// An open SQL transaction. One owner thread; dies with the function that Read or Write called.
///
/// SQL text uses `?1`-style positions, no engine-specific functions, and is prepared once per
/// connection.
class SqlTransaction {
 public:
  virtual ~SqlTransaction() = default;
  /// Runs a statement without result rows; returns the number of rows it changed.
  /// Errors: kAlreadyExists on a uniqueness violation; kInvalidArgument on other constraints.
  virtual Result<int64_t> Execute(std::string_view sql, const SqlArguments& arguments) = 0;
  virtual Status Query(std::string_view sql, const SqlArguments& arguments,
                       const RowCallback& row) = 0;
  /// Rowid that the last insert into a table with an INTEGER PRIMARY KEY was given.
  virtual int64_t LastInsertId() = 0;
};

/// Whether a reply may leave before the write is safe from a power cut.
enum class Durability {
  kDurable,  // Commits: returns after fsync of the group it travelled in.
  kLazy,     // Starts and registrations: a later durable commit of anything covers them.
};

using SqlFunction = std::function<Status(SqlTransaction&)>;

/// One step of a room's schema. Steps run in order, each once, inside one transaction.
struct Migration {
  std::string room;
  int version = 0;  // 1, 2, 3 … per room.
  std::string sql;  // Statements separated by ';'.
};

/// Threads: any.
class Database {
 public:
  virtual ~Database() = default;

  /// Runs `function` in a read transaction: one consistent state, no waiting on writers.
  /// Keep it short: a read transaction must not outlive 50 ms.
  virtual Status Read(const SqlFunction& function) = 0;

  /// Runs `function` on the writer, alone, atomically, and waits for the durability asked for.
  /// A failure of `function` rolls back its own changes only and is returned as it is.
  /// Errors of its own: kCommitStateUnknown when the group's commit failed in doubt;
  /// kUnavailable while the database cannot be written (disk full, read-only), nothing changed.
  virtual Status Write(const SqlFunction& function, Durability durability) = 0;

  Status Write(const SqlFunction& function) { return Write(function, Durability::kDurable); }

  /// Brings the schema up to date. Errors: kFailedPrecondition when the file was written by a
  /// newer version.
  virtual Status Migrate(const std::vector<Migration>& migrations) = 0;
};

}  // namespace tarn::metastore
