// JsonSplitter: cuts a stream of bytes into JSON documents and parses them.
//
// Understood without being told: one document a line, documents one after the other, documents over
// several lines, arrays whose elements are the records, blank lines, a byte order mark. A malformed
// document becomes one failed record and reading goes on behind it: behind its closing bracket
// where the brackets balance on its line, else at the next line (for a document written over
// several lines: at the next line that starts one and is indented no deeper).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tarn/format/json_tape.h"

namespace tarn::format {

struct JsonSplitterOptions {
  JsonLimits limits;
  bool objects_only = true;  // Other values are failed records (kNotAnObject); their value is kept.
  uint32_t window_bytes = 256U << 10U;  // Parsed at once; larger documents enlarge it for a while.
  uint32_t kept_bytes = 1U << 20U;      // Of a record that is too large: how much text is kept.
};

/// One document of the stream. Valid until the next call on the splitter.
struct JsonRecord {
  JsonValue value;            // False when `failure` is not OK, except for kNotAnObject.
  std::string_view text;      // Raw bytes of the record (kTooLarge: their beginning).
  uint64_t row = 0;           // From 0; failed records count too.
  uint64_t offset_bytes = 0;  // Of the record's first byte in the stream.
  RecordFailure failure;      // Its position counts from the record's first byte.
};

/// One owner thread. Memory: the window, at most about twice max_record, plus the last chunk.
///
///   splitter.Feed(chunk);
///   while (splitter.Next(record)) { … }   // false: feed more
///   splitter.Finish();                    // the stream has ended
///   while (splitter.Next(record)) { … }
class JsonSplitter {
 public:
  explicit JsonSplitter(JsonSplitterOptions options = {});
  ~JsonSplitter();

  /// Appends bytes of the stream (copied).
  void Feed(std::string_view chunk);
  /// No bytes follow.
  void Finish();
  /// Gives the next record. False: more bytes are needed, or, after Finish, the end is reached.
  bool Next(JsonRecord& record);
  /// Starts over with an empty stream, buffers kept; its first byte counts as `offset_bytes`.
  void Reset(uint64_t offset_bytes = 0);
  /// Offset behind the records given so far, from where another splitter could go on. Nothing
  /// inside an array of records or a record that is too large.
  [[nodiscard]] std::optional<uint64_t> ResumeOffset() const;

 private:
  enum class Outcome : uint8_t;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tarn::format
