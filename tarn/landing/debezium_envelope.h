// DebeziumEnvelope: a record of a Debezium stream taken apart into operation, position, times and
// images. Pure: it reads parsed JSON and decides nothing about tables.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/format/json_tape.h"
#include "tarn/format/logical_schema.h"
#include "tarn/format/record_error.h"

namespace tarn::landing {

enum class DebeziumKind : uint8_t {
  kChange,        // Goes to the landing dataset.
  kTombstone,     // Null value behind a delete: skipped, counted.
  kMessage,       // op "m", a logical decoding message: skipped, counted.
  kTransaction,   // BEGIN or END of the transaction topic: skipped, counted.
  kHeartbeat,     // Heartbeat topic: skipped, counted.
  kSchemaChange,  // DDL of the schema history topic: skipped, counted.
};

/// One event. Views point into the record or into the envelope: valid until its next Open.
struct DebeziumEvent {
  DebeziumKind kind = DebeziumKind::kChange;
  char operation = 0;      // 'I' (c), 'U' (u), 'D' (d), 'L' (r), 'T' (t).
  std::string_view table;  // "schema.table"; "database.table" where the source has no schema.
  std::string_view topic;  // Of a {key, value, topic} record, else empty.
  /// Position in the source; byte order is source order. PostgreSQL: lsn, 20 digits. MySQL: number
  /// of the log file (20 digits), position (20) and row (10), joined by ':'. SQL Server:
  /// commit_lsn, change_lsn and event_serial_no (20). Oracle: commit_scn (20; scn before the
  /// commit) and scn (20). Others: the commit time in microseconds (20 digits), for MongoDB with
  /// ord (10). What is no number is kept as it is.
  std::string_view position;
  std::optional<int64_t> commit_time_micros;  // source.ts_us, ts_ns or ts_ms; else the event's.
  std::string_view transaction;               // Id in the source; empty = none.
  format::JsonValue after;  // False or null: none. An image that is JSON text is opened.
  format::JsonValue before;
  format::JsonValue key;  // Payload of the key; false: none.
  /// Members of `row()` whose value the source did not send (unavailable-value placeholder).
  std::vector<std::string_view> unavailable;
  /// Types of before and after, of the key; null without an embedded schema.
  const format::LogicalSchema* row_schema = nullptr;
  const format::LogicalSchema* key_schema = nullptr;

  /// The row's columns: the after image, before for a delete; false for a truncate.
  [[nodiscard]] format::JsonValue row() const { return operation == 'D' ? before : after; }
};

struct DebeziumEnvelopeOptions {
  std::string unavailable_value = "__debezium_unavailable_value";
  size_t schemas_max = 1000;  // Distinct embedded schemas kept; the oldest are dropped.
};

/// Opens records. One owner thread: it keeps parsed schemas and reused buffers.
class DebeziumEnvelope {
 public:
  explicit DebeziumEnvelope(DebeziumEnvelopeOptions options = {});
  ~DebeziumEnvelope();
  DebeziumEnvelope(const DebeziumEnvelope&) = delete;
  DebeziumEnvelope& operator=(const DebeziumEnvelope&) = delete;

  /// Understands a bare value ({before, after, source, op, …}), with or without {schema, payload}
  /// around it, and {key, value, topic?, headers?} whose key and value may be either.
  /// A null record or value is a tombstone. Flattened values (columns beside __op, __deleted,
  /// __source_lsn, …) are understood too; their row keeps those members.
  /// Errors: kBadEnvelope (no op, an unknown op, an operation without its image).
  format::RecordFailure Open(format::JsonValue record, DebeziumEvent& event);
  /// The same for a Kafka message (set event.topic before, for flattened values), whose key and
  /// value are documents of their own; `key` may be false (no key), `value` false or null
  /// (tombstone).
  format::RecordFailure Open(format::JsonValue key, format::JsonValue value, DebeziumEvent& event);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tarn::landing
