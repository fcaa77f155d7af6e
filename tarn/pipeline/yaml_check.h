// What a YAML text may not do before it is read as a tree: name itself, or grow without end.
#pragma once

#include <string_view>

#include "tarn/base/status.h"

namespace tarn::pipeline {

/// Follows the aliases (`*name`) of the text without copying what they stand for. Errors:
/// kInvalidArgument with line and column for an alias inside its own anchor, more than 100,000
/// values once all aliases are replaced, and more than 200 levels; a text that is no YAML passes.
Status CheckYaml(std::string_view text);

}  // namespace tarn::pipeline
