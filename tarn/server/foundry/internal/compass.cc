// /compass and /multipass/api/me: places and the caller, for the vendor's older tools.
#include <nlohmann/json.hpp>

#include "tarn/access/directory.h"
#include "tarn/access/organization.h"
#include "tarn/base/json_text.h"
#include "tarn/server/foundry/internal/internal_api.h"
#include "tarn/server/foundry/places.h"
#include "tarn/server/foundry/principals.h"
#include "tarn/tree/lookup.h"
#include "tarn/tree/tree.h"

namespace tarn::server::foundry::internal {

using metastore::Durability;
using metastore::SqlTransaction;
using nlohmann::json;

namespace {

Denial CompassDenial(const std::string& rid) {
  return {.name = "Compass:PermissionDenied", .parameters = {{"rid", rid}}};
}

json CompassJson(const Place& place) {
  const tree::LocatedNode& located = place.located;
  const tree::Node& node = located.node;
  json operations = json::array({"compass:discover"});
  if (place.role >= access::Role::kViewer) {
    operations.push_back("compass:view");
  }
  if (place.role >= access::Role::kEditor) {
    operations.push_back("compass:edit");
  }
  if (place.role >= access::Role::kOwner) {
    operations.push_back("compass:manage");
  }
  json object = {
      {"rid", node.rid.ToString()},
      {"name", node.name},
      {"path", located.path},
      {"created",
       {{"userId", UserIdOnWire(node.created_by)}, {"time", FormatTimestamp(node.created)}}},
      {"modified",
       {{"userId", UserIdOnWire(node.updated_by)}, {"time", FormatTimestamp(node.updated)}}},
      {"lastModified", ToMillis(node.updated)},
      {"directlyTrashed", located.trash_status == tree::TrashStatus::kDirectlyTrashed},
      {"inTrash", located.trash_status != tree::TrashStatus::kNotTrashed},
      {"isAutosave", false},
      {"isHidden", false},
      {"operations", std::move(operations)},
      {"urlVariables", json::object()}};
  if (!node.description.empty()) {
    object["description"] = node.description;
  }
  return object;
}

/// 204 is how this service says that there is none.
Result<http::Response> Answer(const FoundryDeps& deps, const RequestContext& context,
                              const std::function<Result<Rid>(SqlTransaction&)>& find) {
  std::optional<json> answer;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    const Result<Rid> rid = find(sql);
    if (rid.status().code() == ErrorCode::kNotFound) {
      return Status::Ok();
    }
    TARN_RETURN_IF_ERROR(StatusOf(rid));
    const Result<Place> place =
        GetPlace(deps, sql, context, PlaceKind::kGrantable, rid->ToString());
    if (place.ok()) {
      answer = CompassJson(*place);
    }
    return place.status().code() == ErrorCode::kNotFound ? Status::Ok() : StatusOf(place);
  }));
  return answer ? JsonResponse(*answer) : NoContent();
}

Result<http::Response> GetByRid(const FoundryDeps& deps, RequestContext& context) {
  return Answer(deps, context, [&](SqlTransaction&) -> Result<Rid> {
    Result<Rid> rid = Rid::Parse(context.Path("rid"));
    return rid.ok() ? rid : PlaceNotFound(PlaceKind::kResource, context.Path("rid"));
  });
}

Result<http::Response> GetByPath(const FoundryDeps& deps, RequestContext& context) {
  const std::string path = context.query.Find("path").value_or("");
  return Answer(deps, context, [&](SqlTransaction& sql) -> Result<Rid> {
    TARN_ASSIGN_OR_RETURN(const tree::Node node, tree::GetByPath(sql, path));
    return node.rid;
  });
}

Result<http::Response> GetPathOf(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("rid");
  json path;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const Place place,
                          GetPlace(deps, sql, context, PlaceKind::kGrantable, rid));
    path = place.located.path;
    return Status::Ok();
  }));
  return JsonResponse(path);
}

Result<std::vector<std::string>> RidsIn(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  return TextList(json{{"rids", body}}, "rids");
}

/// Paths by RID; what is unknown or hidden is left out.
Result<http::Response> GetPaths(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> rids, RidsIn(context));
  json paths = json::object();
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    for (const std::string& rid : rids) {
      const Result<Place> place = GetPlace(deps, sql, context, PlaceKind::kGrantable, rid);
      if (place.ok()) {
        paths[rid] = place->located.path;
      }
    }
    return Status::Ok();
  }));
  return JsonResponse(paths);
}

Result<http::Response> CreateFolder(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string name, RequiredText(body, "name"));
  TARN_ASSIGN_OR_RETURN(const std::string parent, RequiredText(body, "parentId"));
  json answer;
  std::string made = parent;
  const Status created = Audited(
      deps, context, "folder.create", made, Durability::kDurable,
      [&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(const Place folder,
                              GetPlace(deps, sql, context, PlaceKind::kFolder, parent,
                                       access::Role::kEditor, CompassDenial(parent)));
        TARN_ASSIGN_OR_RETURN(const tree::Node node, deps.catalog.deps().tree.Create(
                                                         sql, {.rid = {},
                                                               .parent = folder.located.node.rid,
                                                               .name = name,
                                                               .type = tree::NodeType::kFolder,
                                                               .description = {},
                                                               .by = context.principal.user_id}));
        made = node.rid.ToString();
        TARN_ASSIGN_OR_RETURN(const Place place,
                              GetPlace(deps, sql, context, PlaceKind::kFolder, made));
        answer = CompassJson(place);
        return Status::Ok();
      });
  if (created.reason() == "ResourceNameAlreadyExists") {
    return created.WithReason("Compass:DuplicateName", created.details());
  }
  TARN_RETURN_IF_ERROR(NamedBy("Compass", created));
  return JsonResponse(answer);
}

Result<http::Response> Children(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("rid");
  TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> asked, QueryInt(context, "limit"));
  TARN_ASSIGN_OR_RETURN(const int limit, CheckedPageSize(asked, 1000, 2000));
  json answer = {{"values", json::array()}, {"nextPageToken", nullptr}};
  const Status read = deps.database.Read([&](SqlTransaction& sql) -> Status {
    answer["values"] = json::array();
    TARN_ASSIGN_OR_RETURN(const Place folder,
                          GetPlace(deps, sql, context, PlaceKind::kFolder, rid));
    TARN_ASSIGN_OR_RETURN(const tree::ChildrenPage page,
                          tree::ListChildren(sql, {.parent = folder.located.node.rid,
                                                   .page_size = limit,
                                                   .page_token = PageTokenOf(context)}));
    for (const tree::Node& node : page.nodes) {
      TARN_ASSIGN_OR_RETURN(const Place place, GetPlace(deps, sql, context, PlaceKind::kGrantable,
                                                        node.rid.ToString()));
      answer["values"].push_back(CompassJson(place));
    }
    if (!page.next_page_token.empty()) {
      answer["nextPageToken"] = page.next_page_token;
    }
    return Status::Ok();
  });
  if (read.reason() == "FolderNotFound") {
    return read.WithReason("Compass:NotFound", read.details());
  }
  TARN_RETURN_IF_ERROR(NamedBy("Compass", read));
  return JsonResponse(answer);
}

using TrashChange = Status (tree::Tree::*)(SqlTransaction&, const Rid&, std::string_view);

/// All of them or none.
Result<http::Response> ChangeTrash(const FoundryDeps& deps, RequestContext& context,
                                   const char* action, TrashChange change) {
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> rids, RidsIn(context));
  const std::string resource = rids.size() == 1 ? rids.front() : std::to_string(rids.size());
  TARN_RETURN_IF_ERROR(
      NamedBy("Compass", Audited(deps, context, action, resource, Durability::kDurable,
                                 [&](SqlTransaction& sql) -> Status {
                                   for (const std::string& rid : rids) {
                                     TARN_ASSIGN_OR_RETURN(
                                         const Place place,
                                         GetPlace(deps, sql, context, PlaceKind::kResource, rid,
                                                  access::Role::kEditor, CompassDenial(rid)));
                                     TARN_RETURN_IF_ERROR((deps.catalog.deps().tree.*change)(
                                         sql, place.located.node.rid, context.principal.user_id));
                                   }
                                   return Status::Ok();
                                 })));
  return NoContent();
}

Result<http::Response> AddToTrash(const FoundryDeps& deps, RequestContext& context) {
  return ChangeTrash(deps, context, "resource.trash", &tree::Tree::Trash);
}

Result<http::Response> RestoreFromTrash(const FoundryDeps& deps, RequestContext& context) {
  return ChangeTrash(deps, context, "resource.restore", &tree::Tree::Restore);
}

Result<http::Response> GetMe(const FoundryDeps& deps, RequestContext& context) {
  json answer;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const access::User user, access::GetUser(sql, context.principal.user_id));
    TARN_ASSIGN_OR_RETURN(const access::Organization organization, access::GetOrganization(sql));
    const auto list = [](std::string_view text) { return json::array({text}); };
    answer = {{"id", user.id},
              {"username", user.username},
              {"attributes",
               {{"multipass:realm", list(kRealm)},
                {"multipass:organization", list(organization.name)},
                {"multipass:organization-rid", list(organization.rid.ToString())},
                {"multipass:given-name", list(user.given_name)},
                {"multipass:family-name", list(user.family_name)},
                {"multipass:email:primary", list(user.email)}}}};
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

constexpr access::Scope kRead = access::Scope::kFilesystemRead;
constexpr access::Scope kWrite = access::Scope::kFilesystemWrite;

constexpr FoundryRoute kRoutes[] = {
    {"GET", "/compass/api/resources", kRead, GetByPath},
    {"GET", "/compass/api/resources/{rid}", kRead, GetByRid},
    {"GET", "/compass/api/resources/{rid}/path-json", kRead, GetPathOf},
    {"POST", "/compass/api/batch/paths", kRead, GetPaths, Stability::kStable,
     RouteEffect::kReadOnly},
    {"POST", "/compass/api/batch/trash/add", kWrite, AddToTrash},
    {"POST", "/compass/api/batch/trash/restore", kWrite, RestoreFromTrash},
    {"POST", "/compass/api/folders", kWrite, CreateFolder},
    {"GET", "/compass/api/folders/{rid}/children", kRead, Children},
    {"GET", "/multipass/api/me", access::Scope::kAdminRead, GetMe},
};

}  // namespace

std::span<const FoundryRoute> CompassRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry::internal
