#include "tarn/access/scope.h"

#include <array>

namespace tarn::access {

namespace {

// In the order of Scope.
constexpr std::array<std::string_view, 12> kNames = {
    "api:datasets-read",       "api:datasets-write", "api:filesystem-read",
    "api:filesystem-write",    "api:iceberg-read",   "api:iceberg-write",
    "api:admin-read",          "api:admin-write",    "api:sql-queries-read",
    "api:sql-queries-execute", "api:pipelines-read", "api:pipelines-write",
};

}  // namespace

std::string_view ScopeName(Scope scope) { return kNames.at(static_cast<size_t>(scope)); }

Result<Scope> ParseScope(std::string_view text) {
  std::string known;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames.at(i) == text) {
      return static_cast<Scope>(i);
    }
    known.append(known.empty() ? "" : ", ").append(kNames.at(i));
  }
  return Status::InvalidArgument("no scope \"" + std::string(text) + "\"; there are " + known);
}

ScopeSet ScopeSet::All() { return {.bits = (1U << kNames.size()) - 1}; }

ScopeSet ScopeSet::Of(const std::vector<Scope>& scopes) {
  ScopeSet set;
  for (const Scope scope : scopes) {
    set.bits |= 1U << static_cast<unsigned>(scope);
  }
  return set;
}

Result<ScopeSet> ScopeSet::Parse(std::string_view text) {
  ScopeSet set;
  while (!text.empty()) {
    const size_t blank = text.find(' ');
    const std::string_view name = text.substr(0, blank);
    if (!name.empty()) {
      TARN_ASSIGN_OR_RETURN(const Scope scope, ParseScope(name));
      set.bits |= 1U << static_cast<unsigned>(scope);
    }
    text = blank == std::string_view::npos ? std::string_view() : text.substr(blank + 1);
  }
  return set;
}

std::string ScopeSet::ToString() const {
  std::string text;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (Contains(static_cast<Scope>(i))) {
      text.append(text.empty() ? "" : " ").append(kNames.at(i));
    }
  }
  return text;
}

}  // namespace tarn::access
