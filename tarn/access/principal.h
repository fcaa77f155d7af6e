// Principal: on whose behalf a call runs.
#pragma once

#include <string>

#include "tarn/access/scope.h"

namespace tarn::access {

/// A user or service user with the scopes of the token that named it. Value.
///
/// Groups are not in it: the Authorizer looks them up, so a long-lived worker sees changes.
struct Principal {
  std::string user_id;  // UUID text.
  std::string username;
  std::string token_id;  // Empty inside the server (tasks).
  ScopeSet scopes;
  friend bool operator==(const Principal&, const Principal&) = default;
};

}  // namespace tarn::access
