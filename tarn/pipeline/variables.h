// Variables: `${NAME}` under `sources:` of a pipeline file, and what its values must never reach.
//
// The file keeps the names: values travel and are stored beside it, so that an exported file and
// every message show `${NAME}` and not the secret.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"

namespace tarn::pipeline {

/// Values by name. A name has letters, digits and underscores and begins with no digit.
using Variables = std::map<std::string, std::string, std::less<>>;

/// The names in one text, each once, in order; what is not closed or no name is left out.
std::vector<std::string> FindVariables(std::string_view text);

/// The names that the scalars under `sources:` of a file ask for, each once, in order.
/// Errors: kInvalidArgument for what is no YAML.
Result<std::vector<std::string>> ListVariables(std::string_view yaml);

/// `text` with every `${NAME}` replaced by its value; values are not expanded again.
/// Errors: kInvalidArgument naming the variable that has no value, or a `${` that is not closed.
Result<std::string> ExpandVariables(std::string_view text, const Variables& variables);

/// `text` with the values that occur in it replaced by `${NAME}`, longest first. Values of less
/// than four characters stay: they are no secrets and would tear texts apart.
std::string HideValues(std::string text, const Variables& variables);

}  // namespace tarn::pipeline
