// TextInference: delimiter, names and column types of CSV files. Only for infer_schema.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/engine/engine.h"
#include "tarn/format/field_type.h"
#include "tarn/query/text_relation.h"

namespace tarn::query {

/// What the values of a column so far allow.
struct TextColumn {
  std::string name;
  bool any = false;  // Some value is not empty.
  bool is_long = true;
  bool is_double = true;
  bool is_boolean = true;
  bool is_date = true;
  bool is_timestamp = true;

  [[nodiscard]] format::FieldKind kind() const;
};

/// Reads file after file. One owner thread.
class TextInference {
 public:
  explicit TextInference(engine::Session& session) : session_(session) {}

  /// Takes one more file in; returns the number of rows looked at. The first one decides delimiter,
  /// quote and header. Errors: kInvalidArgument when the file has other columns than the first one,
  /// or rows of another length.
  Result<int64_t> Add(const std::string& uri, std::optional<int64_t> rows_max);

  [[nodiscard]] std::vector<format::Field> Fields() const;
  [[nodiscard]] const TextOptions& options() const { return options_; }

 private:
  struct Dialect;
  Result<Dialect> Sniff(const std::string& uri);

  engine::Session& session_;
  bool has_first_ = false;
  TextOptions options_;
  std::vector<TextColumn> columns_;
};

}  // namespace tarn::query
