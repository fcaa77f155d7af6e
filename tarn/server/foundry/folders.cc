#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"
#include "tarn/server/foundry/places.h"
#include "tarn/tree/lookup.h"
#include "tarn/tree/permission.h"
#include "tarn/tree/tree.h"

namespace tarn::server::foundry {

using metastore::SqlTransaction;
using nlohmann::json;

namespace {

constexpr size_t kBatchMax = 1000;

Result<http::Response> Create(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string parent, RequiredText(body, "parentFolderRid"));
  TARN_ASSIGN_OR_RETURN(const std::string name, RequiredText(body, "displayName"));
  json answer;
  std::string made = parent;
  TARN_RETURN_IF_ERROR(Audited(
      deps, context, "folder.create", made, metastore::Durability::kDurable,
      [&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(
            const Place place,
            GetPlace(deps, sql, context, PlaceKind::kFolder, parent, access::Role::kEditor,
                     {.name = "CreateFolderPermissionDenied", .parameters = {}}));
        TARN_ASSIGN_OR_RETURN(const tree::Node node, deps.catalog.deps().tree.Create(
                                                         sql, {.rid = {},
                                                               .parent = place.located.node.rid,
                                                               .name = name,
                                                               .type = tree::NodeType::kFolder,
                                                               .description = {},
                                                               .by = context.principal.user_id}));
        made = node.rid.ToString();
        TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, node.rid));
        answer = FolderJson(located);
        return Status::Ok();
      }));
  return JsonResponse(answer);
}

Result<http::Response> Get(const FoundryDeps& deps, RequestContext& context) {
  json answer;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const Place place, GetPlace(deps, sql, context, PlaceKind::kFolder,
                                                      context.Path("folderRid")));
    answer = FolderJson(place.located);
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

Result<http::Response> GetBatch(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadBatch(context, kBatchMax));
  json data = json::object();
  for (const json& entry : body) {
    TARN_ASSIGN_OR_RETURN(const std::string rid, RequiredText(entry, "folderRid"));
    TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
      const Result<Place> place = GetPlace(deps, sql, context, PlaceKind::kFolder, rid);
      if (place.ok()) {
        data[rid] = FolderJson(place->located);
      }
      const ErrorCode code = place.status().code();
      return code == ErrorCode::kNotFound || code == ErrorCode::kInvalidArgument ? Status::Ok()
                                                                                 : StatusOf(place);
    }));
  }
  return JsonResponse({{"data", std::move(data)}});
}

/// Rights reach down, so whoever sees the folder sees all that is in it.
Result<http::Response> Children(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, 2000, 2000));
  json data = json::array();
  std::string token;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    data = json::array();
    TARN_ASSIGN_OR_RETURN(const Place place, GetPlace(deps, sql, context, PlaceKind::kFolder,
                                                      context.Path("folderRid")));
    TARN_ASSIGN_OR_RETURN(const tree::ChildrenPage page,
                          tree::ListChildren(sql, {.parent = place.located.node.rid,
                                                   .page_size = page_size,
                                                   .page_token = PageTokenOf(context)}));
    tree::LocatedNode child = place.located;
    for (const tree::Node& node : page.nodes) {
      child.node = node;
      child.path = place.located.path + "/" + node.name;
      child.project = node.type == tree::NodeType::kProject ? node.rid : place.located.project;
      child.trash_status = place.located.trash_status == tree::TrashStatus::kNotTrashed
                               ? tree::TrashStatus::kNotTrashed
                               : tree::TrashStatus::kAncestorTrashed;
      data.push_back(ResourceJson(child));
    }
    token = page.next_page_token;
    return Status::Ok();
  }));
  return JsonResponse(
      PageJson(std::move(data), token.empty() ? std::nullopt : std::optional(token)));
}

/// Moves and renames; needs Editor on both ends.
Result<http::Response> Replace(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("folderRid");
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string parent, RequiredText(body, "parentFolderRid"));
  TARN_ASSIGN_OR_RETURN(const std::string name, RequiredText(body, "displayName"));
  const Denial denial = {.name = "ReplaceFolderPermissionDenied",
                         .parameters = {{"folderRid", rid}}};
  json answer;
  TARN_RETURN_IF_ERROR(Audited(
      deps, context, "folder.replace", rid, metastore::Durability::kDurable,
      [&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(const Place place, GetPlace(deps, sql, context, PlaceKind::kFolder,
                                                          rid, access::Role::kEditor, denial));
        const tree::Node& node = place.located.node;
        Rid target = node.parent;
        if (parent != node.parent.ToString()) {
          TARN_ASSIGN_OR_RETURN(const Place other, GetPlace(deps, sql, context, PlaceKind::kFolder,
                                                            parent, access::Role::kEditor, denial));
          target = other.located.node.rid;
        }
        TARN_RETURN_IF_ERROR(deps.catalog.deps().tree.Replace(
            sql, node.rid, {.parent = target, .name = name}, context.principal.user_id));
        TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, node.rid));
        answer = FolderJson(located);
        return Status::Ok();
      }));
  return JsonResponse(answer);
}

constexpr access::Scope kRead = access::Scope::kFilesystemRead;
constexpr access::Scope kWrite = access::Scope::kFilesystemWrite;

constexpr FoundryRoute kRoutes[] = {
    {"POST", "/filesystem/folders", kWrite, Create},
    {"POST", "/filesystem/folders/getBatch", kRead, GetBatch, Stability::kStable,
     RouteEffect::kReadOnly},
    {"GET", "/filesystem/folders/{folderRid}", kRead, Get},
    {"PUT", "/filesystem/folders/{folderRid}", kWrite, Replace, Stability::kPreview},
    {"GET", "/filesystem/folders/{folderRid}/children", std::nullopt, Children},
};

}  // namespace

std::span<const FoundryRoute> FolderRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
