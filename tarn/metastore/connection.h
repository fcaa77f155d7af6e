// Connection: what the writer and the readers of a database need of one connection to it. Private
// to this room.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tarn/metastore/database.h"

namespace tarn::metastore {

/// One user at a time.
class Connection {
 public:
  Connection() = default;
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Runs statements separated by ';' without arguments.
  virtual Status RunScript(const std::string& sql) = 0;
  virtual Result<int64_t> Execute(std::string_view sql, const SqlArguments& arguments) = 0;
  virtual Status Query(std::string_view sql, const SqlArguments& arguments,
                       const RowCallback& row) = 0;
  virtual Result<int64_t> LastInsertId() = 0;

  /// Opens and ends a transaction that reads one consistent state.
  virtual Status BeginRead() = 0;
  virtual Status EndRead() = 0;

  [[nodiscard]] virtual bool InTransaction() const = 0;
  /// The transaction that was opened cannot be committed any more.
  [[nodiscard]] virtual bool HasFailed() const = 0;
  /// The other end closed it: nothing runs on it any more.
  [[nodiscard]] virtual bool IsLost() const = 0;
};

/// Runs `function` in the open transaction of `connection`, with a last catch. The first failure
/// after which the work cannot be trusted is returned, also when the function swallowed it.
Status RunFunction(Connection& connection, const SqlFunction& function);

}  // namespace tarn::metastore
