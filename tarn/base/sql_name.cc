#include "tarn/base/sql_name.h"

namespace tarn {

std::string QuoteSqlName(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') {
      out += "\"\"";
    } else if (c != '\0') {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace tarn
