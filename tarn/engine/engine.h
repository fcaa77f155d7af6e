// Engine: the embedded SQL database (DuckDB) as tarn uses it: Arrow in, SQL, Arrow out.
//
// One Engine is one in-memory instance with its own memory limit, threads and spill directory. It
// has no extensions besides those named at opening, reads no file outside the allowed directories
// and cannot be reconfigured by SQL. This room is the only one that sees DuckDB.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"

namespace tarn::engine {

class DeletedRows;

/// Whether results keep the order of their input where SQL does not ask for one.
enum class RowOrder {
  kPreserve,
  kAny,  // Scales better with threads and needs less memory.
};

struct EngineOptions {
  uint64_t memory_limit_bytes = 512ULL << 20;  // At least 16 MiB.
  int threads = 2;                             // 1..1024
  RowOrder row_order = RowOrder::kPreserve;
  std::string temp_directory{};           // For spilling; created on demand. Empty = never spill.
  uint64_t temp_bytes_max = 64ULL << 30;  // Limit of the spilled bytes.
  // Directories (local paths or URI prefixes such as "s3://bucket/warehouse/") that SQL text may
  // read and write; everything else is refused.
  std::vector<std::string> allowed_directories{};
  std::vector<std::string> extension_files{};  // Signed extensions to load, absolute local paths.
};

/// One value bound to a parameter ($1, $2, …) of a statement; monostate is NULL.
using SqlValue = std::variant<std::monostate, bool, int64_t, double, std::string,
                              std::vector<std::string>, std::vector<int64_t>>;

struct QueryOptions {
  std::vector<SqlValue> parameters{};
  // Batches are joined until they have this many rows, or `batch_bytes` of data.
  int64_t batch_rows = 65'536;
  int64_t batch_bytes = 64LL << 20;
};

/// The rows of one query, in batches. One owner thread, the one of its Session; the session runs
/// no other statement until the stream is destroyed or has ended. Destroying it early cancels the
/// rest of the query.
class ArrowStream {
 public:
  virtual ~ArrowStream() = default;
  /// Known before the first row. Types: result_types.h.
  [[nodiscard]] virtual const std::shared_ptr<arrow::Schema>& schema() const = 0;
  /// The next batch, never an empty one; nullptr at the end.
  /// Errors: as Session::Query, for what only the data shows.
  virtual Result<std::shared_ptr<arrow::RecordBatch>> Next() = 0;
};

/// Opens one more reader over the same rows; called once per scan, from any thread.
using ReaderFactory = std::function<Result<std::shared_ptr<arrow::RecordBatchReader>>()>;

/// One connection. One owner thread for everything but Interrupt.
///
/// Errors of all statements: kInvalidArgument where the text or a value is wrong (syntax, unknown
/// name, failed cast, division of types); kPermissionDenied for what the sandbox refuses;
/// kResourceExhausted when memory and spill space are used up; kCancelled after Interrupt;
/// kNotFound when a file to read is missing; kCorruption when it is broken; kInternal otherwise.
class Session {
 public:
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Starts one statement that gives rows.
  Result<std::unique_ptr<ArrowStream>> Query(std::string_view sql, QueryOptions options = {});
  /// Runs one or more statements and drops their rows; parameters need a single statement.
  Status Execute(std::string_view sql, std::vector<SqlValue> parameters = {});
  /// The columns that Query would give, without running the statement.
  Result<std::shared_ptr<arrow::Schema>> Describe(std::string_view sql);
  /// The engine's plan of a statement, for people.
  Result<std::string> Explain(std::string_view sql);

  /// Makes `batches` readable as the view `name` of this session, without copying values. May be
  /// scanned any number of times, by several threads at once; replaces what had the name before.
  /// Types: bool, signed and unsigned integers, float, double, decimal128, (large) utf8 and
  /// binary, fixed binary, date32, time32/64, timestamps of every unit, uuid, (large) list, fixed
  /// list, struct, map, null, and dictionaries of these. Timestamps with a zone are instants.
  /// Errors: kInvalidArgument on another type, on a batch of another schema or on a repeated
  /// column name (names are compared without case).
  Status RegisterBatches(std::string_view name, std::shared_ptr<arrow::Schema> schema,
                         std::vector<std::shared_ptr<arrow::RecordBatch>> batches);
  /// As RegisterBatches for rows that come one batch after the other: each scan opens a reader of
  /// its own; its batches are spread over the threads, so their order is not kept.
  Status RegisterReader(std::string_view name, std::shared_ptr<arrow::Schema> schema,
                        ReaderFactory factory);
  /// Forgets a registered name. Errors: kNotFound.
  Status Unregister(std::string_view name);
  /// Gives the deleted rows of files a name for scans of this session (scan_sql.h): those of the
  /// file with the index i of a scan are files[i]. Replaces what had the name; an empty list
  /// forgets it. Statements that were started keep what they were started with.
  Status RegisterDeletedRows(std::string_view name, std::vector<DeletedRows> files);

  /// Stops the running statement and refuses later ones with kCancelled, until Resume. Any thread.
  void Interrupt();
  void Resume();

 private:
  friend class Engine;
  struct Core;
  explicit Session(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

/// Resource. Threads: any. Must outlive its sessions, and must not be destroyed after main has
/// returned: DuckDB would touch state of the thread that is gone by then.
class Engine {
 public:
  /// Errors: kInvalidArgument on options out of range; kNotFound for a missing extension file.
  static Result<std::unique_ptr<Engine>> Open(EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Result<std::unique_ptr<Session>> OpenSession();
  /// Version of the library, e.g. "v1.5.5".
  [[nodiscard]] static std::string LibraryVersion();

  struct Core;

 private:
  explicit Engine(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

/// Reads the rest of a stream into one table. For results known to be small.
Result<std::shared_ptr<arrow::Table>> ReadAll(ArrowStream& stream);
/// Adapts a stream for code that takes Arrow's reader.
std::shared_ptr<arrow::RecordBatchReader> MakeReader(std::unique_ptr<ArrowStream> stream);

}  // namespace tarn::engine
