// Reads CSV (RFC 4180) as the server writes it, to show it as a table.
#pragma once

#include <string_view>

#include "tarn/base/status.h"
#include "tarn/cli/output.h"

namespace tarn::cli {

/// The first record names the columns. Errors: kCorruption on an open quote or a record of another
/// width, with its number.
Result<Table> ParseCsv(std::string_view text);

}  // namespace tarn::cli
