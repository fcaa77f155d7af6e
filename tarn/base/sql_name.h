// Names in SQL text that we build.
#pragma once

#include <string>
#include <string_view>

namespace tarn {

/// `name` as a quoted identifier of standard SQL: any characters but NUL, which ends up removed.
std::string QuoteSqlName(std::string_view name);

}  // namespace tarn
