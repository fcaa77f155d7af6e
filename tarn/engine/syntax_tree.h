// The engine's syntax tree as JSON, and what its functions are. Only for this room's .cc files.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "tarn/base/status.h"
#include "tarn/engine/engine.h"

namespace tarn::engine {

// Keeps the order of members, so that a walk meets the nodes in the order of the text.
using SyntaxTree = nlohmann::ordered_json;

/// Parses statements. Errors: kInvalidArgument on a syntax error or on anything but SELECT.
Result<SyntaxTree> ParseSql(Session& session, std::string_view sql);
/// SQL text of a tree.
Result<std::string> PrintSql(Session& session, const SyntaxTree& tree);

/// The member `name` as text, "" when it is no text.
std::string_view TextOf(const SyntaxTree& node, const char* name);

/// Why a function is refused.
enum class FunctionVerdict {
  kAllowed,
  kForbidden,  // Reads files, settings or the environment, waits, or changes state.
  kVolatile,   // Another value at each call or in each statement.
  kAggregate,
  kTable,  // Gives rows.
};

/// `name` lower-case. Unknown functions are allowed here: binding refuses them.
FunctionVerdict JudgeFunction(std::string_view name, size_t argument_count);
/// True for table functions that people may call.
bool IsAllowedTableFunction(std::string_view name);
/// True for functions whose second argument `x -> …` is a lambda; elsewhere -> is the JSON
/// operator.
bool TakesLambda(std::string_view name);

}  // namespace tarn::engine
