#include "tarn/access/role.h"

#include <array>
#include <string>

#include "tarn/base/json_text.h"

namespace tarn::access {

namespace {

struct Named {
  Role role;
  std::string_view name;
  std::string_view id;
};

constexpr std::array<Named, 4> kRoles = {{
    {Role::kDiscoverer, "Discoverer", "compass:discover"},
    {Role::kViewer, "Viewer", "compass:view"},
    {Role::kEditor, "Editor", "compass:edit"},
    {Role::kOwner, "Owner", "compass:manage"},
}};

}  // namespace

std::string_view RoleName(Role role) {
  for (const Named& named : kRoles) {
    if (named.role == role) {
      return named.name;
    }
  }
  return "None";
}

std::string_view RoleId(Role role) {
  for (const Named& named : kRoles) {
    if (named.role == role) {
      return named.id;
    }
  }
  return "";
}

Result<Role> ParseRole(std::string_view text) {
  std::string known;
  for (const Named& named : kRoles) {
    if (named.id == text || named.name == text) {
      return named.role;
    }
    known.append(known.empty() ? "" : ", ").append(named.id);
  }
  return Status::InvalidArgument("no role \"" + std::string(text) + "\"; there are " + known)
      .WithReason("InvalidRoleIds", "{\"requestedRoleIds\":[" + JsonString(text) + "]}");
}

}  // namespace tarn::access
