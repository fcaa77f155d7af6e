// Names in the SQL of Spark: what stands between backticks.
#pragma once

#include <string>
#include <string_view>

#include "tarn/base/status.h"

namespace tarn::server::foundry {

/// The statement with `name` written as "name", the engine's way; texts, other quoted names and
/// comments stay as they are. Errors: kInvalidArgument on a backtick that is not closed.
Result<std::string> QuoteSparkNames(std::string_view sql);

}  // namespace tarn::server::foundry
