#include "tarn/cli/csv_text.h"

#include <fmt/core.h>

namespace tarn::cli {

namespace {

/// Takes one field off `text`, with the separator behind it. Empty on an open quote.
struct Field {
  std::string text;
  bool ends_record = false;
};

Result<Field> TakeField(std::string_view& text) {
  Field field;
  if (text.starts_with('"')) {
    text.remove_prefix(1);
    for (;;) {
      const size_t quote = text.find('"');
      if (quote == std::string_view::npos) {
        return Status::Corruption("read CSV: a quoted field does not end");
      }
      field.text += text.substr(0, quote);
      text.remove_prefix(quote + 1);
      if (!text.starts_with('"')) {
        break;
      }
      field.text += '"';
      text.remove_prefix(1);
    }
  }
  const size_t end = text.find_first_of(",\n");
  std::string_view rest = text.substr(0, end);
  field.ends_record = end == std::string_view::npos || text[end] == '\n';
  if (field.ends_record && rest.ends_with('\r')) {
    rest.remove_suffix(1);
  }
  field.text += rest;
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return field;
}

}  // namespace

Result<Table> ParseCsv(std::string_view text) {
  Table table;
  size_t record_number = 0;
  while (!text.empty()) {
    std::vector<std::string> record;
    for (bool done = false; !done;) {
      TARN_ASSIGN_OR_RETURN(Field field, TakeField(text));
      record.push_back(std::move(field.text));
      done = field.ends_record;
    }
    if (record_number == 0) {
      table.columns = std::move(record);
    } else if (record.size() != table.columns.size()) {
      return Status::Corruption(fmt::format("read CSV: record {} has {} fields, the header has {}",
                                            record_number, record.size(), table.columns.size()));
    } else {
      table.rows.push_back(std::move(record));
    }
    ++record_number;
  }
  return table;
}

}  // namespace tarn::cli
