// SqlQueries: statements that run by themselves and whose rows are fetched later.
//
// They live in the process that started them: after a restart they are unknown, and clients run
// them again. Rows are written to an unnamed temporary file, which the system removes with the
// process, whatever ends it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/base/uuid.h"
#include "tarn/query/result_format.h"
#include "tarn/query/run_sql.h"
#include "tarn/server/http/message.h"

namespace tarn::server::foundry {

struct SqlQueriesOptions {
  int running_max = 8;                      // More are refused with kResourceExhausted.
  size_t kept_max = 200;                    // Finished ones; the oldest go first.
  std::chrono::minutes lifetime{60};        // Of finished ones.
  int64_t result_bytes_max = 16LL << 30;    // Of one result.
  std::chrono::milliseconds patience{500};  // Start waits so long for a quick answer.
};

enum class QueryState { kRunning, kSucceeded, kFailed, kCanceled };

/// Value, as it was when read.
struct QueryStatus {
  QueryState state = QueryState::kRunning;
  std::string message;  // Why it failed.
};

/// Starts a statement; may take long. Ends with kCancelled once `stop` is requested.
using QueryStarter =
    std::function<Result<std::unique_ptr<query::RunningQuery>>(const std::stop_token& stop)>;

/// Threads: any. Ends what still runs when it is destroyed.
class SqlQueries {
 public:
  SqlQueries(SqlQueriesOptions options, UuidGenerator& uuids, const Clock& clock);
  ~SqlQueries();
  SqlQueries(const SqlQueries&) = delete;
  SqlQueries& operator=(const SqlQueries&) = delete;

  /// Runs a statement for a user; returns its id. Errors: those of `start`, if they come while this
  /// waits; kResourceExhausted.
  Result<std::string> Start(const std::string& user_id, QueryStarter start,
                            query::ResultFormat format);
  /// Errors of all below: kNotFound, reason SqlQueryNotFound, also for those of other users.
  Result<QueryStatus> GetStatus(const std::string& user_id, const std::string& id);
  /// No longer running: success.
  Status Cancel(const std::string& user_id, const std::string& id);
  /// The rows of one that succeeded, as often as wanted. Errors: kInvalidArgument with the reasons
  /// QueryRunning, QueryFailed (parameter errorMessage) and QueryCanceled.
  Result<http::Response> OpenResult(const std::string& user_id, const std::string& id);

 private:
  class Entry;
  Result<std::shared_ptr<Entry>> Find(const std::string& user_id, const std::string& id);
  void DropOld();  // Called with mutex_ held.

  const SqlQueriesOptions options_;
  UuidGenerator& uuids_;
  const Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;  // By id, which sorts by time.
};

}  // namespace tarn::server::foundry
