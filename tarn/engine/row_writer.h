// Rows as text: JSON, newline-delimited JSON, CSV and an aligned table for terminals.
//
// Values are exact: 64-bit integers and decimals as JSON numbers with all digits, timestamps as
// ISO-8601 with six fractional digits (Z for instants), binary as lower-case hexadecimal, NaN and
// infinities as strings, DATE 2026-01-31, TIME HH:MM:SS.ffffff, UUID lower-case, nested as JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"

namespace tarn::engine {

enum class RowFormat {
  kJson,       // One array of objects.
  kJsonLines,  // One object per line.
  kCsv,        // RFC 4180 with a header; NULL is an empty field, an empty string is "".
  kTable,      // Columns aligned by the first batch.
};

/// Takes pieces of the text in order; a failure ends the writing.
using TextSink = std::function<Status(std::string_view)>;

/// Streams batches of one schema as text. One owner thread. Memory: one batch of text.
class RowWriter {
 public:
  virtual ~RowWriter() = default;
  virtual Status Write(const arrow::RecordBatch& batch) = 0;
  /// Writes what closes the text; call once, also when there were no rows.
  virtual Status Finish() = 0;
};

/// Errors: kUnimplemented when the schema has a type that cannot be written.
Result<std::unique_ptr<RowWriter>> MakeRowWriter(RowFormat format,
                                                 std::shared_ptr<arrow::Schema> schema,
                                                 TextSink sink);

/// Appends one value as JSON text to `out`.
Status AppendJsonValue(const arrow::Array& array, int64_t row, std::string& out);
/// Appends `text` as a JSON string with quotes. Invalid UTF-8 becomes U+FFFD.
void AppendJsonString(std::string_view text, std::string& out);

}  // namespace tarn::engine
