// Arrow rows as a table function: registered sources and the scan over them. Only for this room.
//
// One function, tarn_arrow_source(id), is registered per instance; a session gives it a name by a
// temporary view. Ids are bound to the connection that registered them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/engine/duck_handles.h"
#include "tarn/engine/engine.h"

namespace tarn::engine {

/// The first failure of a scan, kept so that its code survives the way through the engine.
class FailureSlot {
 public:
  void Set(const Status& status);
  /// The failure, and forgets it.
  Status Take();

 private:
  std::mutex mutex_;
  Status status_;
};

/// What a scan reads: batches at hand, or readers opened per scan. Immutable once registered.
struct ArrowSource {
  std::shared_ptr<arrow::Schema> schema;
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches{};  // Pieces of at most 128k rows.
  ReaderFactory factory{};                                     // Set = batches is empty.
  int64_t row_count = 0;
  uint64_t connection_id = 0;
  std::shared_ptr<FailureSlot> failure{};
};

/// All sources of an instance. Threads: any.
class ArrowSourceRegistry {
 public:
  /// Registers the table function on the instance behind `connection`, which stays open for
  /// conversions as long as the registry is used.
  Status Install(duckdb_connection connection);
  int64_t Add(std::shared_ptr<const ArrowSource> source);
  void Remove(int64_t id);
  [[nodiscard]] std::shared_ptr<const ArrowSource> Find(int64_t id) const;
  [[nodiscard]] duckdb_connection connection() const { return connection_; }

 private:
  duckdb_connection connection_ = nullptr;
  mutable std::mutex mutex_;
  int64_t next_id_ = 1;
  std::map<int64_t, std::shared_ptr<const ArrowSource>> sources_;
};

/// The engine's types of the columns of `schema`.
/// Errors: kInvalidArgument naming the column whose type has no counterpart.
Result<std::vector<TypeHandle>> EngineTypes(duckdb_connection connection,
                                            const arrow::Schema& schema);

}  // namespace tarn::engine
