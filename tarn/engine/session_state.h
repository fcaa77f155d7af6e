// What a session and its result stream share, and the running of one statement. Only for this
// room's .cc files.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tarn/engine/arrow_source.h"
#include "tarn/engine/duck_handles.h"
#include "tarn/engine/engine.h"
#include "tarn/engine/live_rows.h"

namespace tarn::engine {

struct Engine::Core {
  // In this order: the registry's connection closes before the database.
  DatabaseHandle database;
  ConnectionHandle conversion_connection;
  ArrowSourceRegistry registry;
  DeletedRowsRegistry deleted_rows;
};

/// Reason of a failure whose own reason the engine lost: when a thread fails, the engine interrupts
/// the others, and what they say of that may come first.
inline constexpr std::string_view kReasonLost = "EngineReasonLost";

/// State of one connection. Owner thread, but for `interrupted`.
struct SessionState {
  std::shared_ptr<Engine::Core> engine;
  ConnectionHandle connection;
  std::atomic<bool> interrupted{false};
  bool streaming = false;  // A result stream is open.
  std::shared_ptr<FailureSlot> failure = std::make_shared<FailureSlot>();
  std::map<std::string, int64_t> sources;  // View name as registered -> source id.

  /// The failure behind an error text, with the code of our own code where that caused it. An
  /// interrupt that nobody asked for is kUnavailable, reason kReasonLost.
  Status Failure(std::string_view text) const;
  /// Number of the connection, which names of this session are bound to.
  [[nodiscard]] uint64_t ConnectionId() const;
  /// kCancelled after an interrupt, kFailedPrecondition while a stream is open.
  Status CheckIdle() const;
};

/// Binds parameters and starts a prepared statement; rows are then fetched from `result`.
Status RunPrepared(SessionState& state, duckdb_prepared_statement statement,
                   const std::vector<SqlValue>& parameters, duckdb_result* result);

/// Starts `sql`, one statement, as a stream. `state` becomes busy until the stream is gone.
Result<std::unique_ptr<ArrowStream>> OpenResultStream(std::shared_ptr<SessionState> state,
                                                      std::string_view sql, QueryOptions options);

}  // namespace tarn::engine
