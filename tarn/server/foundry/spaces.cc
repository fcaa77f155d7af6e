#include <nlohmann/json.hpp>

#include "tarn/access/organization.h"
#include "tarn/base/json_text.h"
#include "tarn/server/foundry/enrollment.h"
#include "tarn/server/foundry/places.h"
#include "tarn/tree/labels.h"
#include "tarn/tree/lookup.h"
#include "tarn/tree/permission.h"
#include "tarn/tree/tree.h"

namespace tarn::server::foundry {

using metastore::SqlTransaction;
using nlohmann::json;

namespace {

constexpr std::string_view kRoleSet = "compass";

/// The tree's refusals in the words that these operations declare.
Status AsSpaceError(const Status& status, std::string_view space) {
  const std::string& reason = status.reason();
  if (reason == "MissingDisplayName" || reason == "InvalidDisplayName" ||
      reason == "ResourceNameAlreadyExists") {
    return Status::InvalidArgument(status.message()).WithReason("SpaceNameInvalid");
  }
  return reason == "ResourceNotFound" ? PlaceNotFound(PlaceKind::kSpace, space) : status;
}

/// The settings that a request gives; the rest keeps its default.
Result<json> SettingsIn(const json& body) {
  json settings = json::object();
  for (const char* member : {"fileSystemId", "usageAccountRid", "defaultRoleSetId"}) {
    TARN_ASSIGN_OR_RETURN(const std::optional<std::string> text, OptionalText(body, member));
    if (text) {
      settings[member] = *text;
    }
  }
  const std::string role_set = settings.value("defaultRoleSetId", std::string(kRoleSet));
  if (role_set != kRoleSet) {
    return Status::NotFound("there is no role set " + JsonString(role_set) + ", only compass")
        .WithReason("RoleSetNotFound", JsonObject({{"roleSetRid", role_set}}));
  }
  if (settings.contains("usageAccountRid") &&
      !IsRid(settings["usageAccountRid"].get<std::string>())) {
    return Status::InvalidArgument("usageAccountRid is no resource identifier")
        .WithReason("SpaceInvalidArgument");
  }
  return settings;
}

Result<http::Response> List(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, 1000, 1000));
  json data = json::array();
  std::string token = PageTokenOf(context);
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    data = json::array();
    TARN_ASSIGN_OR_RETURN(const tree::ChildrenPage page,
                          tree::ListChildren(sql, {.parent = tree::RootRid(),
                                                   .page_size = page_size,
                                                   .page_token = PageTokenOf(context)}));
    for (const tree::Node& node : page.nodes) {
      TARN_ASSIGN_OR_RETURN(const access::Role role,
                            tree::RoleOn(sql, deps.authorizer, context.principal, node.rid));
      if (role == access::Role::kNone) {
        continue;
      }
      TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, node.rid));
      TARN_ASSIGN_OR_RETURN(json space, SpaceJson(sql, located));
      data.push_back(std::move(space));
    }
    token = page.next_page_token;
    return Status::Ok();
  }));
  return JsonResponse(
      PageJson(std::move(data), token.empty() ? std::nullopt : std::optional(token)));
}

Result<http::Response> Get(const FoundryDeps& deps, RequestContext& context) {
  json answer;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const Place place, GetPlace(deps, sql, context, PlaceKind::kSpace,
                                                      context.Path("spaceRid")));
    TARN_ASSIGN_OR_RETURN(answer, SpaceJson(sql, place.located));
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

Status AddOrganizations(SqlTransaction& sql, const Rid& space,
                        const std::vector<std::string>& organizations, tree::LabelKind kind) {
  for (const std::string& organization : organizations) {
    TARN_RETURN_IF_ERROR(tree::AddLabel(sql, space, kind, organization));
  }
  return Status::Ok();
}

Result<http::Response> Create(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string name, RequiredText(body, "displayName"));
  TARN_ASSIGN_OR_RETURN(const std::string enrollment, RequiredText(body, "enrollmentRid"));
  TARN_ASSIGN_OR_RETURN(const auto description, OptionalText(body, "description"));
  TARN_ASSIGN_OR_RETURN(const json settings, SettingsIn(body));
  TARN_ASSIGN_OR_RETURN(const auto organizations, TextList(body, "organizations"));
  TARN_ASSIGN_OR_RETURN(const auto deletion, TextList(body, "deletionPolicyOrganizations"));
  json answer;
  std::string made;
  const Status created = Audited(
      deps, context, "space.create", made, metastore::Durability::kDurable,
      [&](SqlTransaction& sql) -> Status {
        TARN_RETURN_IF_ERROR(RequireAdmin(
            deps, sql, context, {.name = "CreateSpacePermissionDenied", .parameters = {}}));
        TARN_RETURN_IF_ERROR(CheckEnrollment(sql, enrollment));
        TARN_RETURN_IF_ERROR(StatusOf(KnownOrganizations(sql, organizations)));
        TARN_RETURN_IF_ERROR(StatusOf(KnownOrganizations(sql, deletion)));
        TARN_ASSIGN_OR_RETURN(
            const tree::Node node,
            deps.catalog.deps().tree.Create(sql, {.rid = {},
                                                  .parent = tree::RootRid(),
                                                  .name = name,
                                                  .type = tree::NodeType::kSpace,
                                                  .description = description.value_or(""),
                                                  .by = context.principal.user_id}));
        made = node.rid.ToString();
        TARN_RETURN_IF_ERROR(
            AddOrganizations(sql, node.rid, organizations, tree::LabelKind::kOrganization));
        TARN_RETURN_IF_ERROR(
            AddOrganizations(sql, node.rid, deletion, tree::LabelKind::kDeletionOrganization));
        TARN_RETURN_IF_ERROR(tree::WriteSettings(sql, node.rid, settings.dump()));
        TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, node.rid));
        TARN_ASSIGN_OR_RETURN(answer, SpaceJson(sql, located));
        return Status::Ok();
      });
  TARN_RETURN_IF_ERROR(AsSpaceError(created, made));
  return JsonResponse(answer);
}

Result<http::Response> Replace(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("spaceRid");
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string name, RequiredText(body, "displayName"));
  TARN_ASSIGN_OR_RETURN(const auto description, OptionalText(body, "description"));
  TARN_ASSIGN_OR_RETURN(const json given, SettingsIn(body));
  json answer;
  const Status replaced = Audited(
      deps, context, "space.replace", rid, metastore::Durability::kDurable,
      [&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(
            const Place place,
            GetPlace(deps, sql, context, PlaceKind::kSpace, rid, access::Role::kOwner,
                     {.name = "ReplaceSpacePermissionDenied", .parameters = {{"spaceRid", rid}}}));
        const Rid& space = place.located.node.rid;
        tree::Tree& tree = deps.catalog.deps().tree;
        TARN_RETURN_IF_ERROR(tree.Rename(sql, space, name, context.principal.user_id));
        TARN_RETURN_IF_ERROR(tree.Describe(
            sql, space, {.description = description.value_or(""), .documentation = {}},
            context.principal.user_id));
        TARN_ASSIGN_OR_RETURN(const std::string text, tree::ReadSettings(sql, space));
        json settings = json::parse(text);
        settings.update(given);
        TARN_RETURN_IF_ERROR(tree::WriteSettings(sql, space, settings.dump()));
        TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, space));
        TARN_ASSIGN_OR_RETURN(answer, SpaceJson(sql, located));
        return Status::Ok();
      });
  TARN_RETURN_IF_ERROR(AsSpaceError(replaced, rid));
  return JsonResponse(answer);
}

Result<http::Response> Delete(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("spaceRid");
  TARN_RETURN_IF_ERROR(Audited(
      deps, context, "space.delete", rid, metastore::Durability::kDurable,
      [&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(
            const Place place,
            GetPlace(deps, sql, context, PlaceKind::kSpace, rid, access::Role::kOwner,
                     {.name = "DeleteSpacePermissionDenied", .parameters = {{"spaceRid", rid}}}));
        return deps.catalog.deps().tree.DeleteSpace(sql, place.located.node.rid);
      }));
  return NoContent();
}

constexpr access::Scope kRead = access::Scope::kFilesystemRead;
constexpr access::Scope kWrite = access::Scope::kFilesystemWrite;

constexpr FoundryRoute kRoutes[] = {
    {"GET", "/filesystem/spaces", kRead, List},
    {"POST", "/filesystem/spaces", kWrite, Create, Stability::kPreview},
    {"GET", "/filesystem/spaces/{spaceRid}", kRead, Get, Stability::kPreview},
    {"PUT", "/filesystem/spaces/{spaceRid}", kWrite, Replace, Stability::kPreview},
    {"DELETE", "/filesystem/spaces/{spaceRid}", kWrite, Delete, Stability::kPreview},
};

}  // namespace

std::span<const FoundryRoute> SpaceRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
