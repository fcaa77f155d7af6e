// Places: what the filesystem routes share: spaces, projects, folders and resources as a request
// names them, what the caller may do there, and how they look on the wire.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tarn/access/grant.h"
#include "tarn/access/role.h"
#include "tarn/server/foundry/foundry_api.h"
#include "tarn/tree/node.h"

namespace tarn::server::foundry {

/// As what a request names a place; decides which error it gets.
enum class PlaceKind {
  kSpace,
  kProject,
  kFolder,
  kResource,
  kGrantable,  // A resource or a space, which is none but has roles too.
};

/// SpaceNotFound, ProjectNotFound, FolderNotFound or ResourceNotFound.
Status PlaceNotFound(PlaceKind kind, std::string_view rid);

/// A place that is there and that the caller may see.
struct Place {
  tree::LocatedNode located;
  access::Role role = access::Role::kNone;
};

/// Errors: PlaceNotFound on what is no identifier, missing, hidden, or of another kind;
/// GetRootFolderNotSupported for the root; InvalidFolder for a folder that is none;
/// GetSpaceResourceNotSupported for a space as a resource; `denial` below `role`.
Result<Place> GetPlace(const FoundryDeps& deps, metastore::SqlTransaction& sql,
                       const RequestContext& context, PlaceKind kind, std::string_view rid,
                       access::Role role = access::Role::kDiscoverer, const Denial& denial = {});

/// "1 of 3 organizations" checks: the organizations of a request, all of which exist.
/// Errors: OrganizationsNotFound naming those that do not.
Result<std::vector<std::string>> KnownOrganizations(metastore::SqlTransaction& sql,
                                                    std::vector<std::string> rids);
/// The organizations of a space or project; without any of its own, the first one's.
Result<std::vector<std::string>> OrganizationsOf(metastore::SqlTransaction& sql, const Rid& rid);

/// Errors: InvalidRoleIds naming all unknown ones.
Result<std::vector<access::Role>> ParseRoles(const std::vector<std::string>& ids);

// Reads settings and organizations beside the node.
Result<nlohmann::json> SpaceJson(metastore::SqlTransaction& sql, const tree::LocatedNode& space);
Result<nlohmann::json> ProjectJson(metastore::SqlTransaction& sql,
                                   const tree::LocatedNode& project);
nlohmann::json FolderJson(const tree::LocatedNode& folder);
nlohmann::json ResourceJson(const tree::LocatedNode& resource);

}  // namespace tarn::server::foundry
