#include <nlohmann/json.hpp>

#include "tarn/access/organization.h"
#include "tarn/base/json_text.h"
#include "tarn/catalog/pointer_store.h"
#include "tarn/query/union_view.h"
#include "tarn/server/foundry/places.h"
#include "tarn/tree/labels.h"
#include "tarn/tree/lookup.h"
#include "tarn/tree/permission.h"
#include "tarn/tree/tree.h"

namespace tarn::server::foundry {

using metastore::SqlTransaction;
using nlohmann::json;

namespace {

constexpr size_t kBatchMax = 1000;
constexpr std::chrono::minutes kLookInterval{1};  // A look within it is not written again.

Denial ResourceDenial(const char* name, const std::string& rid) {
  return {.name = name, .parameters = {{"resourceRid", rid}}};
}

Result<json> ReadResource(const FoundryDeps& deps, SqlTransaction& sql,
                          const RequestContext& context, std::string_view rid) {
  TARN_ASSIGN_OR_RETURN(const Place place, GetPlace(deps, sql, context, PlaceKind::kResource, rid));
  return ResourceJson(place.located);
}

/// Keeps for getRecentlyViewed that the caller looked; reads stay reads when it just did.
Status RememberLook(const FoundryDeps& deps, const RequestContext& context, const Rid& rid) {
  const std::string& user = context.principal.user_id;
  const Timestamp now = deps.clock.Now();
  bool fresh = false;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const std::vector<tree::Look> looks, tree::ListLooks(sql, user));
    for (const tree::Look& look : looks) {
      fresh = fresh || (look.resource == rid && now - look.time < kLookInterval);
    }
    return Status::Ok();
  }));
  if (fresh) {
    return Status::Ok();
  }
  return deps.database.Write(
      [&](SqlTransaction& sql) {
        return tree::RecordLook(sql, user, {.resource = rid, .time = now});
      },
      metastore::Durability::kLazy);
}

Result<http::Response> Get(const FoundryDeps& deps, RequestContext& context) {
  json answer;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(answer, ReadResource(deps, sql, context, context.Path("resourceRid")));
    return Status::Ok();
  }));
  TARN_ASSIGN_OR_RETURN(const Rid rid, Rid::Parse(context.Path("resourceRid")));
  TARN_RETURN_IF_ERROR(RememberLook(deps, context, rid));
  return JsonResponse(answer);
}

/// True for what a batch leaves out in silence.
bool IsLeftOut(const Status& status) {
  return status.code() == ErrorCode::kNotFound || status.code() == ErrorCode::kInvalidArgument;
}

Result<http::Response> GetBatch(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadBatch(context, kBatchMax));
  json data = json::object();
  for (const json& entry : body) {
    TARN_ASSIGN_OR_RETURN(const std::string rid, RequiredText(entry, "resourceRid"));
    TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
      const Result<json> one = ReadResource(deps, sql, context, rid);
      if (one.ok()) {
        data[rid] = *one;
      }
      return IsLeftOut(one.status()) ? Status::Ok() : StatusOf(one);
    }));
  }
  return JsonResponse({{"data", std::move(data)}});
}

/// What is hidden gives the same answer as what is not there.
Result<json> ReadByPath(const FoundryDeps& deps, SqlTransaction& sql, const RequestContext& context,
                        const std::string& path) {
  TARN_ASSIGN_OR_RETURN(const tree::Node node, tree::GetByPath(sql, path));
  Result<json> resource = ReadResource(deps, sql, context, node.rid.ToString());
  if (resource.status().code() == ErrorCode::kNotFound) {
    return Status::NotFound("nothing at path " + JsonString(path))
        .WithReason("PathNotFound", JsonObject({{"path", path}}));
  }
  return resource;
}

Result<http::Response> GetByPath(const FoundryDeps& deps, RequestContext& context) {
  const std::optional<std::string> path = context.query.Find("path");
  if (!path) {
    return Status::InvalidArgument("query parameter path is missing")
        .WithReason("InvalidParameter", JsonObject({{"parameter", "path"}, {"found", ""}}));
  }
  json answer;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(answer, ReadByPath(deps, sql, context, *path));
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

Result<http::Response> GetByPathBatch(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadBatch(context, kBatchMax));
  json data = json::array();
  for (const json& entry : body) {
    TARN_ASSIGN_OR_RETURN(const std::string path, RequiredText(entry, "path"));
    TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
      Result<json> one = ReadByPath(deps, sql, context, path);
      if (one.ok()) {
        data.push_back(*std::move(one));
      }
      return IsLeftOut(one.status()) ? Status::Ok() : StatusOf(one);
    }));
  }
  return JsonResponse({{"data", std::move(data)}});
}

Result<http::Response> GetRecentlyViewed(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> asked, QueryInt(context, "limit"));
  TARN_ASSIGN_OR_RETURN(const int limit, CheckedPageSize(asked, 100, 100));
  json data = json::array();
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    data = json::array();
    TARN_ASSIGN_OR_RETURN(const std::vector<tree::Look> looks,
                          tree::ListLooks(sql, context.principal.user_id));
    for (const tree::Look& look : looks) {
      const Result<json> resource = ReadResource(deps, sql, context, look.resource.ToString());
      if (resource.ok() && data.size() < static_cast<size_t>(limit)) {
        data.push_back({{"resource", *resource}, {"lastViewed", FormatTimestamp(look.time)}});
      } else if (!IsLeftOut(resource.status())) {
        TARN_RETURN_IF_ERROR(StatusOf(resource));
      }
    }
    return Status::Ok();
  }));
  return JsonResponse({{"data", std::move(data)}});
}

Result<http::Response> Trash(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("resourceRid");
  TARN_RETURN_IF_ERROR(
      Audited(deps, context, "resource.trash", rid, metastore::Durability::kDurable,
              [&](SqlTransaction& sql) -> Status {
                const Result<Place> place =
                    GetPlace(deps, sql, context, PlaceKind::kResource, rid, access::Role::kEditor,
                             ResourceDenial("DeleteResourcePermissionDenied", rid));
                if (place.status().reason() == "GetSpaceResourceNotSupported") {
                  return Status::InvalidArgument("a space cannot be put into the trash")
                      .WithReason("TrashingSpaceNotSupported", JsonObject({{"resourceRid", rid}}));
                }
                TARN_RETURN_IF_ERROR(StatusOf(place));
                return deps.catalog.deps().tree.Trash(sql, place->located.node.rid,
                                                      context.principal.user_id);
              }));
  return NoContent();
}

Result<http::Response> Restore(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("resourceRid");
  TARN_RETURN_IF_ERROR(
      Audited(deps, context, "resource.restore", rid, metastore::Durability::kDurable,
              [&](SqlTransaction& sql) -> Status {
                TARN_ASSIGN_OR_RETURN(
                    const Place place,
                    GetPlace(deps, sql, context, PlaceKind::kResource, rid, access::Role::kEditor,
                             ResourceDenial("RestoreResourcePermissionDenied", rid)));
                return deps.catalog.deps().tree.Restore(sql, place.located.node.rid,
                                                        context.principal.user_id);
              }));
  return NoContent();
}

/// Takes away what the rooms own of a node that is gone; bytes go in the sweep.
Status RemoveOwned(const FoundryDeps& deps, SqlTransaction& sql, const tree::Node& node) {
  switch (node.type) {
    case tree::NodeType::kDataset: {
      TARN_ASSIGN_OR_RETURN(const dataset::DatasetRid dataset,
                            dataset::DatasetRid::Parse(node.rid.ToString()));
      TARN_RETURN_IF_ERROR(query::RemoveUnionView(sql, dataset));
      const Status deleted = deps.datasets.DeleteDataset(sql, dataset);
      return deleted.code() == ErrorCode::kNotFound ? Status::Ok() : deleted;
    }
    case tree::NodeType::kTable:
    case tree::NodeType::kView: {
      const Status dropped = catalog::DropObject(sql, node.rid);
      return dropped.code() == ErrorCode::kNotFound ? Status::Ok() : dropped;
    }
    default:
      return Status::Ok();
  }
}

Result<http::Response> PermanentlyDelete(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("resourceRid");
  TARN_RETURN_IF_ERROR(
      Audited(deps, context, "resource.permanentlyDelete", rid, metastore::Durability::kDurable,
              [&](SqlTransaction& sql) -> Status {
                TARN_ASSIGN_OR_RETURN(
                    const Place place,
                    GetPlace(deps, sql, context, PlaceKind::kResource, rid, access::Role::kOwner,
                             ResourceDenial("PermanentlyDeleteResourcePermissionDenied", rid)));
                tree::Tree& tree = deps.catalog.deps().tree;
                TARN_ASSIGN_OR_RETURN(const std::vector<tree::Node> gone,
                                      tree.PermanentlyDelete(sql, place.located.node.rid));
                for (const tree::Node& node : gone) {
                  TARN_RETURN_IF_ERROR(RemoveOwned(deps, sql, node));
                }
                return Status::Ok();
              }));
  return NoContent();
}

/// The markings of a request, none of which is an organization's.
Result<std::vector<std::string>> MarkingsIn(SqlTransaction& sql, const json& body) {
  TARN_ASSIGN_OR_RETURN(std::vector<std::string> ids, TextList(body, "markingIds"));
  TARN_ASSIGN_OR_RETURN(const std::vector<access::Organization> organizations,
                        access::ListOrganizations(sql));
  json of_organizations = json::array();
  json malformed = json::array();
  for (const std::string& id : ids) {
    for (const access::Organization& organization : organizations) {
      if (organization.marking_id == id) {
        of_organizations.push_back(id);
      }
    }
    if (id.empty() || id.size() > tree::kLabelBytesMax) {
      malformed.push_back(id);
    }
  }
  if (!of_organizations.empty()) {
    return Status::InvalidArgument("organizations are added to projects, not as markings")
        .WithReason("OrganizationMarkingNotSupported",
                    json({{"markingIds", of_organizations}}).dump());
  }
  if (!malformed.empty()) {
    return Status::NotFound("a marking id has 1 to 256 bytes")
        .WithReason("MarkingNotFound", json({{"markingIds", malformed}}).dump());
  }
  return ids;
}

using LabelChange = Status (*)(SqlTransaction&, const Rid&, tree::LabelKind, std::string_view);

Result<http::Response> ChangeMarkings(const FoundryDeps& deps, RequestContext& context,
                                      const char* action, const char* denial, LabelChange change) {
  const std::string& rid = context.Path("resourceRid");
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_RETURN_IF_ERROR(Audited(
      deps, context, action, rid, metastore::Durability::kDurable,
      [&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(const Place place,
                              GetPlace(deps, sql, context, PlaceKind::kResource, rid,
                                       access::Role::kOwner, ResourceDenial(denial, rid)));
        TARN_ASSIGN_OR_RETURN(const std::vector<std::string> ids, MarkingsIn(sql, body));
        for (const std::string& id : ids) {
          TARN_RETURN_IF_ERROR(change(sql, place.located.node.rid, tree::LabelKind::kMarking, id));
        }
        return Status::Ok();
      }));
  return NoContent();
}

Result<http::Response> AddMarkings(const FoundryDeps& deps, RequestContext& context) {
  return ChangeMarkings(deps, context, "resource.addMarkings", "AddMarkingsPermissionDenied",
                        tree::AddLabel);
}

Result<http::Response> RemoveMarkings(const FoundryDeps& deps, RequestContext& context) {
  return ChangeMarkings(deps, context, "resource.removeMarkings", "RemoveMarkingsPermissionDenied",
                        tree::RemoveLabel);
}

Result<http::Response> ListMarkings(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, 1000, 1000));
  std::vector<std::pair<std::string, json>> sorted;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    sorted.clear();
    TARN_ASSIGN_OR_RETURN(const Place place, GetPlace(deps, sql, context, PlaceKind::kResource,
                                                      context.Path("resourceRid")));
    TARN_ASSIGN_OR_RETURN(const std::vector<std::string> ids,
                          tree::ListLabels(sql, place.located.node.rid, tree::LabelKind::kMarking));
    for (const std::string& id : ids) {
      sorted.emplace_back(id, id);
    }
    return Status::Ok();
  }));
  TARN_ASSIGN_OR_RETURN(const json page, PageOfList(sorted, page_size, PageTokenOf(context)));
  return JsonResponse(page);
}

/// Organizations of the project, and the markings of the resource and of everything above it.
Result<http::Response> GetAccessRequirements(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("resourceRid");
  json organizations = json::array();
  json markings = json::array();
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    organizations = json::array();
    markings = json::array();
    TARN_ASSIGN_OR_RETURN(
        const Place place,
        GetPlace(deps, sql, context, PlaceKind::kResource, rid, access::Role::kViewer,
                 ResourceDenial("GetAccessRequirementsPermissionDenied", rid)));
    const tree::LocatedNode& located = place.located;
    TARN_ASSIGN_OR_RETURN(const std::vector<std::string> of_project,
                          OrganizationsOf(sql, located.project));
    for (const std::string& text : of_project) {
      TARN_ASSIGN_OR_RETURN(const Rid organization, Rid::Parse(text));
      TARN_ASSIGN_OR_RETURN(const access::Organization found,
                            access::GetOrganization(sql, organization));
      organizations.push_back({{"markingId", found.marking_id},
                               {"organizationRid", text},
                               {"isDirectlyApplied", located.node.rid == located.project}});
    }
    TARN_ASSIGN_OR_RETURN(const std::vector<Rid> chain, tree::AncestorChain(sql, located.node.rid));
    for (const Rid& place_rid : chain) {
      TARN_ASSIGN_OR_RETURN(const std::vector<std::string> ids,
                            tree::ListLabels(sql, place_rid, tree::LabelKind::kMarking));
      for (const std::string& id : ids) {
        markings.push_back(
            {{"markingId", id}, {"isDirectlyApplied", place_rid == located.node.rid}});
      }
    }
    return Status::Ok();
  }));
  return JsonResponse({{"organizations", organizations}, {"markings", markings}});
}

constexpr access::Scope kRead = access::Scope::kFilesystemRead;
constexpr access::Scope kWrite = access::Scope::kFilesystemWrite;

constexpr FoundryRoute kRoutes[] = {
    {"POST", "/filesystem/resources/getBatch", kRead, GetBatch, Stability::kStable,
     RouteEffect::kReadOnly},
    {"GET", "/filesystem/resources/getByPath", kRead, GetByPath},
    {"POST", "/filesystem/resources/getByPathBatch", kRead, GetByPathBatch, Stability::kStable,
     RouteEffect::kReadOnly},
    {"GET", "/filesystem/resources/getRecentlyViewed", kRead, GetRecentlyViewed,
     Stability::kPreview},
    {"GET", "/filesystem/resources/{resourceRid}", kRead, Get},
    {"DELETE", "/filesystem/resources/{resourceRid}", kWrite, Trash},
    {"POST", "/filesystem/resources/{resourceRid}/restore", kWrite, Restore},
    {"POST", "/filesystem/resources/{resourceRid}/permanentlyDelete", kWrite, PermanentlyDelete},
    {"POST", "/filesystem/resources/{resourceRid}/addMarkings", kWrite, AddMarkings},
    {"POST", "/filesystem/resources/{resourceRid}/removeMarkings", kWrite, RemoveMarkings},
    {"GET", "/filesystem/resources/{resourceRid}/markings", std::nullopt, ListMarkings},
    {"GET", "/filesystem/resources/{resourceRid}/getAccessRequirements", kRead,
     GetAccessRequirements},
};

}  // namespace

std::span<const FoundryRoute> ResourceRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
