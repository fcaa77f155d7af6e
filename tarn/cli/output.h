// What commands print: one table for people, or with --json exactly one document for programs.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tarn/base/status.h"

namespace tarn::cli {

enum class OutputFormat { kText, kJson };

/// Rows of text under headings. Value.
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

/// Lays a table out: columns padded, two blanks apart, control characters escaped ("\n", "\x1b").
/// No rows: only the headings.
std::string FormatTable(const Table& table);

/// Control characters, DEL and backslash as \n, \t, \xNN, \\; UTF-8 stays.
std::string EscapeForTerminal(std::string_view text);

/// Rows of an array of objects, one column per member; missing members are empty cells.
Table TableOf(const nlohmann::json& objects, const std::vector<std::string>& columns);
/// Two columns: the members of one object and their values.
Table FieldsOf(const nlohmann::json& object);
/// Strings as they are, null as nothing, the rest as JSON.
std::string CellOf(const nlohmann::json& value);

/// Standard output of one command. One owner thread.
class Output {
 public:
  Output(OutputFormat format, std::FILE* stream) : format_(format), stream_(stream) {}

  [[nodiscard]] OutputFormat format() const { return format_; }
  /// In JSON mode the document, else the table.
  Status Show(const nlohmann::json& document, const Table& table);
  /// In JSON mode the document, else the line.
  Status Show(const nlohmann::json& document, std::string_view line);
  /// Raw bytes, whatever the format (file content, CSV, Arrow).
  Status Raw(std::string_view bytes);

 private:
  Status Write(std::string_view bytes);

  OutputFormat format_;
  std::FILE* stream_;
};

}  // namespace tarn::cli
