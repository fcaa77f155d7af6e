// LandingRows: records of files or messages into rows with header columns. No I/O.
//
// Parses, opens envelopes, appends values to columns, and notes what could not be taken. The rows
// of a file that turns out not to count can be taken back until they are handed over.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/format/json_columns.h"
#include "tarn/format/json_splitter.h"
#include "tarn/landing/dead_letter.h"
#include "tarn/landing/debezium_envelope.h"
#include "tarn/landing/landing_spec.h"
#include "tarn/landing/message_columns.h"
#include "tarn/landing/source_keys.h"
#include "tarn/source/files/file_position.h"

namespace tarn::landing {

/// How much of a source is read at once: small enough to stay in the processor's cache.
inline constexpr uint64_t kReadBytes = 256ULL << 10;

/// Counted since the task was opened.
struct LandingCounts {
  int64_t rows = 0;
  int64_t rejected = 0;
  int64_t skipped = 0;    // on_bad_record: skip.
  int64_t filtered = 0;   // Other tables, tombstones behind change events, messages of databases.
  int64_t truncates = 0;  // Of a source's table; they are rows, too.
  int64_t files = 0;
  int64_t bytes = 0;
  friend bool operator==(const LandingCounts&, const LandingCounts&) = default;
};

/// One owner thread.
class LandingRows {
 public:
  /// `columns` and `keys`: found so far. Errors: kInvalidArgument on declared columns that clash.
  static Result<std::unique_ptr<LandingRows>> Make(const LandingSpec& spec,
                                                   format::ColumnSet columns, SourceKeys keys = {});
  ~LandingRows();
  LandingRows(const LandingRows&) = delete;
  LandingRows& operator=(const LandingRows&) = delete;

  /// Takes a message: a record, or several as a file would hold them. Only with spec.kafka, as the
  /// functions about files are only for files.
  /// Errors: kFailedPrecondition with on_bad_record: stop, naming partition, offset and reason.
  Status TakeMessage(const LandedMessage& message);

  /// A file begins, `position` is that of its first piece.
  void StartFile(const source::files::FilePosition& position);
  /// Takes bytes of the file.
  /// Errors: kFailedPrecondition with on_bad_record: stop, naming file, row and reason.
  Status Feed(std::string_view bytes);
  /// The file has ended and counts. Errors: as Feed.
  Status FinishFile();
  /// Where another life of the task could go on in the open file, if all records so far were
  /// committed. Nothing where that cannot be, such as inside an array of records.
  [[nodiscard]] std::optional<source::files::FileResume> Resume() const;
  /// The rows of the open file so far are committed: DropFile leaves them alone.
  void KeepFile();
  /// Takes the rows and dead letters of the file back that were not handed over yet; returns how
  /// many of them had been handed over before.
  int64_t DropFile();
  /// Rejects a whole file.
  void RejectFile(const source::files::FilePosition& position, std::string_view code,
                  std::string_view text);

  [[nodiscard]] int64_t row_count() const;   // Not handed over yet.
  [[nodiscard]] int64_t size_bytes() const;  // Of them, roughly.
  /// True when so much waits that TakeRows and TakeDeadLetters should be called: pieces stay in the
  /// processor's cache, and memory bounded.
  [[nodiscard]] bool IsPieceFull() const;
  /// Hands the rows over: user columns in order of appearance behind the header columns. Null when
  /// there are none.
  Result<std::shared_ptr<arrow::RecordBatch>> TakeRows(Timestamp landed);
  std::vector<DeadLetter> TakeDeadLetters();
  [[nodiscard]] format::ColumnSet column_set() const;
  [[nodiscard]] const SourceKeys& source_keys() const;
  [[nodiscard]] const LandingCounts& counts() const;
  [[nodiscard]] const format::JsonCounters& json_counters() const;

 private:
  struct State;
  explicit LandingRows(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tarn::landing
