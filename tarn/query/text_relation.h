// Text files of a dataset as SQL: the CSV family, read as the dataset's schema says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/dataset/schema.h"
#include "tarn/format/field_type.h"

namespace tarn::query {

/// What a schema's `customMetadata.textParserParams` asks for. Value.
struct TextOptions {
  std::string delimiter = ",";  // One character.
  std::string quote = "\"";     // One character; empty = no quoting.
  int64_t skip_lines = 1;       // Of each file.
  std::vector<std::string> null_values;
  bool null_on_error = false;  // A value that does not fit becomes NULL instead of an error.
  bool drop_jagged = false;    // A row of another length is left out instead of an error.
  friend bool operator==(const TextOptions&, const TextOptions&) = default;
};

/// Nothing when the schema is not for text files. `dataframeReader: CSV` alone means comma, double
/// quotes and one line of names in each file; a TextDataFrameReader takes what its parameters say.
/// Errors: kInvalidArgument on values that cannot be; kUnimplemented for parameters that add
/// columns and for parsers other than CSV_PARSER, MULTILINE_CSV_PARSER and SIMPLE_PARSER.
Result<std::optional<TextOptions>> ReadTextOptions(const dataset::DatasetSchema& schema);

/// "SELECT …": the files one after the other, columns by position, each value cast to its field's
/// type. Unquoted empty values are NULL. Errors: kInvalidArgument for a type SQL lacks.
Result<std::string> BuildTextScan(const std::vector<format::Field>& fields,
                                  const std::vector<std::string>& uris, const TextOptions& options);

}  // namespace tarn::query
