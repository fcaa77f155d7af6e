// RecordError: why one record of a source cannot become a row. The list is closed; the names are
// the `error_code` values of dead-letter datasets and are documented in docs/formats.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tarn::format {

enum class RecordError : uint8_t {
  kNone,
  kBadJson,       // bad_json: the text breaks the grammar of JSON.
  kBadUtf8,       // bad_utf8: bytes that are not UTF-8, or an escape naming half a surrogate pair.
  kTooDeep,       // too_deep: more than 512 arrays and objects inside each other.
  kTooLarge,      // too_large: longer than `max_record`.
  kTruncated,     // truncated: the input ended inside the record.
  kNotAnObject,   // not_an_object: valid JSON, but no object, so it has no columns.
  kTypeMismatch,  // type_mismatch: a value does not fit the declared type of its column.
  kTooManyColumns,  // too_many_columns: the record would add more columns than are allowed.
  kBadEnvelope,     // bad_envelope: not a change event, or one that misses what it must have.
};

/// Stable name, e.g. "bad_json"; "none" for kNone.
std::string_view RecordErrorName(RecordError error);

/// What is wrong with one record. Nothing is allocated while `code` is kNone.
struct RecordFailure {
  RecordError code = RecordError::kNone;
  uint64_t position_bytes = 0;  // Offset from the first byte of the record, where known.
  std::string text;             // For people: what was found, e.g. "expected ':' after a name".

  [[nodiscard]] bool ok() const { return code == RecordError::kNone; }
  friend bool operator==(const RecordFailure&, const RecordFailure&) = default;
};

}  // namespace tarn::format
