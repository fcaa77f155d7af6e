// GET /tarn/v1/resources: names to RIDs, and listings.
#include <algorithm>
#include <deque>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "tarn/query/resource_name.h"
#include "tarn/server/native/native_api.h"
#include "tarn/tree/permission.h"

namespace tarn::server::native {

namespace {

using metastore::SqlTransaction;
using nlohmann::json;
using tree::Node;

constexpr size_t kResourcesMax = 100'000;  // Of one listing.

Result<json> ToJson(SqlTransaction& sql, const Node& node) {
  TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, node.rid));
  return json{{"rid", node.rid.ToString()},
              {"type", tree::NodeTypeName(node.type)},
              {"name", node.name},
              {"path", located.path},
              {"parentFolderRid", node.parent.ToString()}};
}

// The node below a project at "a/b/c", if there is one.
Result<std::optional<Node>> FindBelowProject(SqlTransaction& sql, std::string_view path) {
  std::optional<Node> node;
  const size_t slash = path.find('/');
  Result<Node> project = query::FindProject(sql, path.substr(0, slash));
  if (!project.ok()) {
    return project.status().code() == ErrorCode::kNotFound
               ? node
               : Result<std::optional<Node>>(project.status());
  }
  node = *std::move(project);
  while (node && path.find('/') != std::string_view::npos) {
    path.remove_prefix(path.find('/') + 1);
    TARN_ASSIGN_OR_RETURN(node, tree::FindChild(sql, node->rid, path.substr(0, path.find('/'))));
  }
  return node;
}

// "/Space/project/…", "project/…", a RID, or "folder.name" and "project.folder.name".
Result<Node> FindNamed(NativeApi& api, SqlTransaction& sql, const RequestContext& context,
                       const std::string& path) {
  if (IsRid(path)) {
    TARN_ASSIGN_OR_RETURN(const Rid rid, Rid::Parse(path));
    return tree::GetNode(sql, rid);
  }
  if (path.starts_with('/')) {
    return tree::GetByPath(sql, path);
  }
  TARN_ASSIGN_OR_RETURN(const std::optional<Node> below, FindBelowProject(sql, path));
  if (below) {
    return *below;
  }
  if (path.find('/') != std::string::npos) {
    return tree::GetByPath(sql, path);
  }
  TARN_ASSIGN_OR_RETURN(const Node project,
                        query::FindProject(sql, context.query.Find("project").value_or("default")));
  return query::FindResource(sql,
                             {.principal = context.principal,
                              .authorizer = api.deps.query.authorizer,
                              .project = project.rid,
                              .needed = access::Scope::kFilesystemRead},
                             NameParts(path));
}

Result<http::Response> GetResource(NativeApi& api, RequestContext& context,
                                   const std::string& path) {
  json answer;
  TARN_RETURN_IF_ERROR(api.database().Read([&](SqlTransaction& sql) -> Status {
    const Status absent = Status::NotFound(fmt::format("resource \"{}\" does not exist", path))
                              .WithReason("PathNotFound");
    Result<Node> node = FindNamed(api, sql, context, path);
    if (!node.ok()) {
      return node.status().code() == ErrorCode::kNotFound ? absent : node.status();
    }
    TARN_ASSIGN_OR_RETURN(const access::Role role, tree::RoleOn(sql, api.deps.query.authorizer,
                                                                context.principal, node->rid));
    if (role == access::Role::kNone) {
      return absent;
    }
    TARN_ASSIGN_OR_RETURN(answer, ToJson(sql, *node));
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

// Everything of one type below `roots` that the caller may view.
Result<json> ListBelow(NativeApi& api, SqlTransaction& sql, const RequestContext& context,
                       std::deque<Rid> folders, std::string_view type) {
  json data = json::array();
  while (!folders.empty()) {
    tree::ChildrenRequest request{.parent = folders.front(), .page_token = {}};
    folders.pop_front();
    do {
      TARN_ASSIGN_OR_RETURN(const tree::ChildrenPage page, tree::ListChildren(sql, request));
      for (const Node& node : page.nodes) {
        if (tree::IsFolderLike(node.type)) {
          folders.push_back(node.rid);
        }
        if (!type.empty() && tree::NodeTypeName(node.type) != type) {
          continue;
        }
        TARN_ASSIGN_OR_RETURN(const access::Role role, tree::RoleOn(sql, api.deps.query.authorizer,
                                                                    context.principal, node.rid));
        if (role == access::Role::kNone) {
          continue;
        }
        if (data.size() == kResourcesMax) {
          return Status::InvalidArgument(
              fmt::format("there are more than {} resources: name a project", kResourcesMax));
        }
        TARN_ASSIGN_OR_RETURN(json item, ToJson(sql, node));
        data.push_back(std::move(item));
      }
      request.page_token = page.next_page_token;
    } while (!request.page_token.empty());
  }
  return data;
}

// What the tree holds. Pipelines have their own listing.
Status CheckType(std::string_view type) {
  constexpr std::string_view kTypes[] = {"project", "folder", "dataset", "table", "view"};
  if (type.empty() || std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes)) {
    return Status::Ok();
  }
  return Status::InvalidArgument(
      fmt::format("type is {}, found {}{}", fmt::join(kTypes, ", "), type,
                  type == "pipeline" ? ": see GET /tarn/v1/pipelines" : ""));
}

Result<http::Response> ListResources(NativeApi& api, RequestContext& context) {
  if (const std::optional<std::string> path = context.query.Find("path")) {
    return GetResource(api, context, *path);
  }
  const std::string type = context.query.Find("type").value_or("");
  TARN_RETURN_IF_ERROR(CheckType(type));
  const std::string project = context.query.Find("project").value_or("");
  json data;
  TARN_RETURN_IF_ERROR(api.database().Read([&](SqlTransaction& sql) -> Status {
    Rid root = tree::RootRid();
    if (!project.empty()) {
      TARN_ASSIGN_OR_RETURN(const Node node, query::FindProject(sql, project));
      root = node.rid;
    }
    TARN_ASSIGN_OR_RETURN(data, ListBelow(api, sql, context, {root}, type));
    return Status::Ok();
  }));
  return JsonResponse({{"data", std::move(data)}});
}

constexpr NativeRoute kRoutes[] = {
    {.method = "GET",
     .pattern = "/resources",
     .scope = access::Scope::kFilesystemRead,
     .handler = &ListResources,
     .summary =
         "The resource at a path (/Space/project/…, project/…, a RID or project.folder.name) "
         "as {rid, type, name, path, parentFolderRid}; without path: all of a type.",
     .query = "path project type"},
};

}  // namespace

std::span<const NativeRoute> ResourceRoutes() { return kRoutes; }

}  // namespace tarn::server::native
