// Scopes: which families of calls a token may make, whatever its user's roles are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"

namespace tarn::access {

enum class Scope : uint8_t {
  kDatasetsRead,
  kDatasetsWrite,
  kFilesystemRead,
  kFilesystemWrite,
  kIcebergRead,
  kIcebergWrite,
  kAdminRead,
  kAdminWrite,
  kSqlQueriesRead,
  kSqlQueriesExecute,
  kPipelinesRead,
  kPipelinesWrite,
};

/// "api:datasets-read".
std::string_view ScopeName(Scope scope);
/// Errors: kInvalidArgument naming the known ones.
Result<Scope> ParseScope(std::string_view text);

/// A set of scopes. Value.
struct ScopeSet {
  uint32_t bits = 0;

  static ScopeSet All();
  static ScopeSet Of(const std::vector<Scope>& scopes);
  /// Reads names separated by blanks; empty text is the empty set. Errors: kInvalidArgument.
  static Result<ScopeSet> Parse(std::string_view text);

  [[nodiscard]] bool Contains(Scope scope) const {
    return (bits >> static_cast<unsigned>(scope) & 1U) != 0;
  }
  /// Only what both have.
  [[nodiscard]] ScopeSet Intersect(ScopeSet other) const { return {bits & other.bits}; }
  /// Names separated by one blank, in the order of Scope.
  [[nodiscard]] std::string ToString() const;
  friend bool operator==(const ScopeSet&, const ScopeSet&) = default;
};

}  // namespace tarn::access
