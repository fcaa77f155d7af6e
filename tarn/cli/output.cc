#include "tarn/cli/output.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace tarn::cli {

namespace {

/// Characters of UTF-8 text; good enough for columns.
size_t WidthOf(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string FormatRow(const std::vector<std::string>& cells, const std::vector<size_t>& widths) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    line += cells[i];
    if (i + 1 < cells.size()) {
      line.append(widths[i] - WidthOf(cells[i]) + 2, ' ');
    }
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string EscapeForTerminal(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      escaped += "\\\\";
    } else if (c == '\n') {
      escaped += "\\n";
    } else if (c == '\t') {
      escaped += "\\t";
    } else if (c == '\r') {
      escaped += "\\r";
    } else if (byte < 0x20 || byte == 0x7F) {
      escaped += fmt::format("\\x{:02x}", byte);
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string FormatTable(const Table& table) {
  std::vector<std::vector<std::string>> lines(1);
  for (const std::string& column : table.columns) {
    lines.front().push_back(EscapeForTerminal(column));
  }
  for (const std::vector<std::string>& row : table.rows) {
    std::vector<std::string> cells;
    for (const std::string& cell : row) {
      cells.push_back(EscapeForTerminal(cell));
    }
    cells.resize(table.columns.size());
    lines.push_back(std::move(cells));
  }
  std::vector<size_t> widths(table.columns.size(), 0);
  for (const std::vector<std::string>& cells : lines) {
    for (size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], WidthOf(cells[i]));
    }
  }
  std::string text;
  for (const std::vector<std::string>& cells : lines) {
    text += FormatRow(cells, widths);
  }
  return text;
}

Table TableOf(const nlohmann::json& objects, const std::vector<std::string>& columns) {
  Table table{.columns = columns, .rows = {}};
  for (const nlohmann::json& object : objects) {
    std::vector<std::string> row;
    for (const std::string& column : columns) {
      row.push_back(object.is_object() && object.contains(column) ? CellOf(object.at(column)) : "");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table FieldsOf(const nlohmann::json& object) {
  Table table{.columns = {"FIELD", "VALUE"}, .rows = {}};
  if (object.is_object()) {
    for (const auto& [name, value] : object.items()) {
      table.rows.push_back({name, CellOf(value)});
    }
  }
  return table;
}

std::string CellOf(const nlohmann::json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  return value.is_null() ? std::string()
                         : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Status Output::Show(const nlohmann::json& document, const Table& table) {
  return Show(document, FormatTable(table));
}

Status Output::Show(const nlohmann::json& document, std::string_view line) {
  if (format_ == OutputFormat::kJson) {
    return Write(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  TARN_RETURN_IF_ERROR(Write(line));
  return line.empty() || line.ends_with('\n') ? Status::Ok() : Write("\n");
}

Status Output::Raw(std::string_view bytes) { return Write(bytes); }

Status Output::Write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stream_) != bytes.size() ||
      std::fflush(stream_) != 0) {
    return Status::Unavailable("write to standard output: it is closed or full");
  }
  return Status::Ok();
}

}  // namespace tarn::cli
