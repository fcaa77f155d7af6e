// Roles: what a principal may do with a resource and everything below it.
#pragma once

#include <cstdint>
#include <string_view>

#include "tarn/base/status.h"

namespace tarn::access {

/// Ordered: each role includes the ones before it. The numbers are stored.
enum class Role : uint8_t {
  kNone = 0,
  kDiscoverer = 1,  // Sees that it exists and its name, not content.
  kViewer = 2,
  kEditor = 3,
  kOwner = 4,
};

/// "Owner".
std::string_view RoleName(Role role);
/// Identifier on the wire, e.g. "compass:manage"; empty for kNone.
std::string_view RoleId(Role role);
/// Reads a wire identifier or a name, ignoring nothing.
/// Errors: kInvalidArgument (reason InvalidRoleIds, parameter requestedRoleIds).
Result<Role> ParseRole(std::string_view text);

}  // namespace tarn::access
