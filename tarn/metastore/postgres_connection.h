// PostgresConnection: one connection to PostgreSQL with its prepared statements, and the
// translation of SQLSTATEs. Private to this room.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tarn/metastore/connection.h"

struct pg_conn;
struct pg_result;

namespace tarn::metastore {

enum class PostgresRole { kReader, kWriter };

struct PostgresConnectionOptions {
  std::string url;  // postgresql://… or what else libpq reads; may hold a password.
  PostgresRole role = PostgresRole::kReader;
  std::chrono::milliseconds lock_wait_max{10'000};
  std::chrono::milliseconds idle_transaction_max{10'000};
  size_t statements_max = 512;
};

/// "postgresql://HOST:PORT/DATABASE": what may be shown of a URL. kInvalidArgument, without its
/// text, when libpq cannot read it.
Result<std::string> ShownPostgresUrl(const std::string& url);

/// One user at a time.
class PostgresConnection final : public Connection {
 public:
  /// Errors: kUnavailable when the server does not answer or refuses; kFailedPrecondition when it
  /// is too old, keeps no UTF-8, or no schema is in the search path.
  static Result<std::unique_ptr<PostgresConnection>> Open(const PostgresConnectionOptions& options);
  ~PostgresConnection() override;
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  /// Runs statements separated by ';' without arguments, in one round trip.
  Status RunScript(const std::string& sql) override;
  /// A failed constraint undoes its statement alone: changes run in a savepoint of their own, in
  /// the same round trip.
  Result<int64_t> Execute(std::string_view sql, const SqlArguments& arguments) override;
  /// Rows come as they are read; those that `row` does not want are still sent. A statement inside
  /// `row` first takes the rest of the rows into memory.
  Status Query(std::string_view sql, const SqlArguments& arguments,
               const RowCallback& row) override;
  /// Costs a round trip. 0 when no identity was given in this session.
  Result<int64_t> LastInsertId() override;
  Status BeginRead() override;
  Status EndRead() override { return RunScript("ROLLBACK"); }

  [[nodiscard]] bool InTransaction() const override;
  /// A statement failed in the open transaction: all that can follow is to roll back.
  [[nodiscard]] bool HasFailed() const override;
  /// The server or the network closed it: nothing runs on it any more.
  [[nodiscard]] bool IsLost() const override;
  /// Whether a statement that may change rows ran since the flag was taken last.
  bool TakeChanged();
  /// The first schema of the search path, where all tables are.
  [[nodiscard]] const std::string& schema() const { return schema_; }

 private:
  using ResultPointer = std::unique_ptr<pg_result, void (*)(pg_result*)>;
  struct Prepared;
  struct Stream;
  class RowOf;

  PostgresConnection(pg_conn* handle, PostgresConnectionOptions options, std::string shown);
  Status Configure();
  Result<Prepared*> Describe(std::string_view sql, const SqlArguments& arguments);
  Result<ResultPointer> RunChange(Prepared& prepared, const SqlArguments& arguments);
  Status StreamRows(Prepared& prepared, const SqlArguments& arguments, const RowCallback& row);
  bool SendPrepared(const Prepared& prepared, const SqlArguments& arguments);
  bool SendPrepare(const Prepared& prepared);
  /// Takes what is still on the wire into the memory of the query that it belongs to.
  void KeepRest();
  ResultPointer Receive();
  Status Failure(const pg_result* result, std::string_view doing) const;
  Status Lost(std::string_view doing) const;

  pg_conn* handle_;
  PostgresConnectionOptions options_;
  std::string shown_;
  std::string schema_;
  bool changed_ = false;
  Stream* on_wire_ = nullptr;  // The query whose rows are being received.
  int64_t names_ = 0;
  std::unordered_map<std::string, std::unique_ptr<Prepared>> statements_;  // By types and text.
};

}  // namespace tarn::metastore
