#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"
#include "tarn/dataset/errors.h"
#include "tarn/query/union_view.h"
#include "tarn/server/foundry/foundry_api.h"
#include "tarn/server/foundry/places.h"
#include "tarn/tree/labels.h"
#include "tarn/tree/lookup.h"
#include "tarn/tree/permission.h"

namespace tarn::server::foundry {

using dataset::DatasetRid;
using dataset::FieldType;
using metastore::SqlTransaction;
using nlohmann::json;
using query::BackingDataset;
using query::UnionKey;
using query::UnionView;

namespace {

Status ViewNotFound(std::string_view rid, std::string_view branch) {
  return Status::NotFound("there is no view " + JsonString(rid) + " on branch " +
                          JsonString(branch))
      .WithReason("ViewNotFound", JsonObject({{"viewDatasetRid", rid}, {"branch", branch}}));
}

Status InvalidBacking(const std::string& what) {
  return Status::InvalidArgument("backingDatasets: " + what)
      .WithReason("InvalidViewBackingDataset");
}

Status InvalidMember(const char* member, const std::string& what) {
  return Status::InvalidArgument("read the request body: \"" + std::string(member) + "\" " + what)
      .WithReason("InvalidBody", JsonObject({{"member", member}}));
}

Result<std::string> BranchIn(const json& body) {
  TARN_ASSIGN_OR_RETURN(const auto branch, OptionalText(body, "branch"));
  const std::string name = branch.value_or(std::string(dataset::kDefaultBranch));
  TARN_RETURN_IF_ERROR(dataset::CheckBranchName(name));
  return name;
}

/// [{"datasetRid","branch"?,"stopPropagatingMarkingIds"}]
Result<std::vector<BackingDataset>> BackingIn(const json& body) {
  const auto list = body.find("backingDatasets");
  if (list == body.end() || !list->is_array()) {
    return InvalidMember("backingDatasets", "must be a list");
  }
  std::vector<BackingDataset> backing;
  for (const json& entry : *list) {
    TARN_ASSIGN_OR_RETURN(const std::string text, RequiredText(entry, "datasetRid"));
    const Result<DatasetRid> rid = DatasetRid::Parse(text);
    if (!rid.ok()) {
      return InvalidBacking(JsonString(text) + " is no dataset");
    }
    BackingDataset one{.dataset = *rid, .branch = {}, .stopped_markings = {}};
    TARN_ASSIGN_OR_RETURN(const auto branch, OptionalText(entry, "branch"));
    one.branch = branch.value_or("");
    TARN_ASSIGN_OR_RETURN(one.stopped_markings, TextList(entry, "stopPropagatingMarkingIds"));
    backing.push_back(std::move(one));
  }
  return backing;
}

/// {"columns",…,"resolution":{"type":"unique"|"duplicate",…}}
Result<std::optional<UnionKey>> KeyIn(const json& body) {
  const auto found = body.find("primaryKey");
  if (found == body.end() || found->is_null()) {
    return std::optional<UnionKey>();
  }
  UnionKey key;
  TARN_ASSIGN_OR_RETURN(key.columns, TextList(*found, "columns"));
  const auto resolution = found->find("resolution");
  if (resolution == found->end()) {
    return InvalidMember("primaryKey", "needs a resolution");
  }
  TARN_ASSIGN_OR_RETURN(const std::string type, RequiredText(*resolution, "type"));
  key.unique = type == "unique";
  if (key.unique) {
    return std::optional<UnionKey>(key);
  }
  const auto strategy = resolution->find("resolutionStrategy");
  if (type != "duplicate" || strategy == resolution->end()) {
    return InvalidMember("resolution", "must be unique, or duplicate with a resolutionStrategy");
  }
  TARN_ASSIGN_OR_RETURN(const std::string strategy_type, RequiredText(*strategy, "type"));
  if (strategy_type != "latestWins") {
    return InvalidMember("resolutionStrategy", "must be latestWins");
  }
  TARN_ASSIGN_OR_RETURN(key.order_columns, TextList(*strategy, "columns"));
  TARN_ASSIGN_OR_RETURN(const auto deletion, OptionalText(*resolution, "deletionColumn"));
  key.deletion_column = deletion.value_or("");
  return std::optional<UnionKey>(key);
}

json KeyJson(const UnionKey& key) {
  json resolution = {{"type", key.unique ? "unique" : "duplicate"}};
  if (!key.unique) {
    resolution["resolutionStrategy"] = {{"type", "latestWins"}, {"columns", key.order_columns}};
    if (!key.deletion_column.empty()) {
      resolution["deletionColumn"] = key.deletion_column;
    }
  }
  return {{"columns", key.columns}, {"resolution", std::move(resolution)}};
}

Result<json> ViewJson(SqlTransaction& sql, const DatasetRid& rid, const std::string& branch,
                      const UnionView& view) {
  TARN_ASSIGN_OR_RETURN(const tree::Node node, tree::GetNode(sql, rid.ToRid()));
  json backing = json::array();
  for (const BackingDataset& one : view.backing) {
    json entry = {{"datasetRid", one.dataset.ToString()},
                  {"stopPropagatingMarkingIds", one.stopped_markings}};
    if (!one.branch.empty()) {
      entry["branch"] = one.branch;
    }
    backing.push_back(std::move(entry));
  }
  json object = {{"viewName", node.name},
                 {"datasetRid", rid.ToString()},
                 {"parentFolderRid", node.parent.ToString()},
                 {"branch", branch},
                 {"backingDatasets", std::move(backing)}};
  if (view.key) {
    object["primaryKey"] = KeyJson(*view.key);
  }
  return object;
}

/// Types of the top-level columns by name; nothing where there is no schema.
Result<std::map<std::string, FieldType>> ColumnsOf(const FoundryDeps& deps, SqlTransaction& sql,
                                                   const BackingDataset& backing) {
  std::map<std::string, FieldType> columns;
  dataset::GetSchemaOptions options;
  if (!backing.branch.empty()) {
    options.branch = backing.branch;
  }
  const Result<dataset::StoredSchema> stored =
      deps.datasets.GetSchema(sql, backing.dataset, options);
  if (stored.status().code() == ErrorCode::kNotFound) {
    return columns;
  }
  TARN_RETURN_IF_ERROR(StatusOf(stored));
  for (const dataset::Field& field : stored->schema.fields) {
    columns.emplace(field.name, field.type);
  }
  return columns;
}

bool MayBeKey(FieldType type) {
  switch (type) {
    case FieldType::kFloat:
    case FieldType::kDouble:
    case FieldType::kMap:
    case FieldType::kArray:
    case FieldType::kStruct:
    case FieldType::kBinary:
      return false;
    default:
      return true;
  }
}

/// Checks a key against the columns of one dataset of the view.
Status CheckKeyColumns(const UnionKey& key, const std::map<std::string, FieldType>& columns) {
  std::vector<std::string> missing;
  std::vector<std::string> unfit;
  for (const std::string& name : key.columns) {
    const auto column = columns.find(name);
    if (column == columns.end()) {
      missing.push_back(name);
    } else if (!MayBeKey(column->second)) {
      unfit.push_back(name);
    }
  }
  for (const std::string& name : key.order_columns) {
    if (!columns.contains(name)) {
      missing.push_back(name);
    }
  }
  if (!missing.empty()) {
    const json parameters = {{"primaryKeyColumns", key.columns}, {"missingColumns", missing}};
    return Status::InvalidArgument("the datasets lack " + parameters["missingColumns"].dump())
        .WithReason("NotAllColumnsInPrimaryKeyArePresent", parameters.dump());
  }
  if (!unfit.empty()) {
    const json parameters = {{"primaryKeyColumns", key.columns}, {"invalidColumns", unfit}};
    return Status::InvalidArgument("no key can be of the type of " +
                                   parameters["invalidColumns"].dump())
        .WithReason("InvalidViewPrimaryKeyColumnType", parameters.dump());
  }
  if (key.deletion_column.empty()) {
    return Status::Ok();
  }
  const auto deletion = columns.find(key.deletion_column);
  if (deletion == columns.end()) {
    return Status::InvalidArgument("the datasets lack " + JsonString(key.deletion_column))
        .WithReason("ViewPrimaryKeyDeletionColumnNotInDatasetSchema",
                    JsonObject({{"deletionColumn", key.deletion_column}}));
  }
  if (deletion->second != FieldType::kBoolean) {
    return Status::InvalidArgument("a deletion column is BOOLEAN")
        .WithReason("InvalidViewPrimaryKeyDeletionColumn",
                    JsonObject({{"deletionColumn", key.deletion_column},
                                {"deletionColumnType", FieldTypeName(deletion->second)}}));
  }
  return Status::Ok();
}

Status CheckKey(const FoundryDeps& deps, SqlTransaction& sql, const UnionView& view) {
  if (!view.key) {
    return Status::Ok();
  }
  if (view.key->columns.empty() || (!view.key->unique && view.key->order_columns.empty())) {
    return Status::InvalidArgument("a primary key has at least one column")
        .WithReason("ViewPrimaryKeyMustContainAtLeastOneColumn");
  }
  if (view.backing.empty()) {
    return Status::InvalidArgument("a primary key needs datasets that have its columns")
        .WithReason("ViewPrimaryKeyRequiresBackingDatasets");
  }
  for (const BackingDataset& backing : view.backing) {
    TARN_ASSIGN_OR_RETURN(const auto columns, ColumnsOf(deps, sql, backing));
    if (!columns.empty()) {
      TARN_RETURN_IF_ERROR(CheckKeyColumns(*view.key, columns));
    }
  }
  return Status::Ok();
}

/// Datasets that are there, that the caller may read, that are no views, and that are in the
/// view's project or referenced by it.
Status CheckBacking(const FoundryDeps& deps, SqlTransaction& sql, const RequestContext& context,
                    const Rid& project, const std::vector<BackingDataset>& backing) {
  TARN_ASSIGN_OR_RETURN(const std::vector<tree::Reference> references,
                        tree::ListReferences(sql, project));
  json foreign = json::array();
  for (const BackingDataset& one : backing) {
    const std::string text = one.dataset.ToString();
    TARN_ASSIGN_OR_RETURN(
        const access::Role role,
        tree::RoleOn(sql, deps.authorizer, context.principal, one.dataset.ToRid()));
    TARN_ASSIGN_OR_RETURN(const bool is_view, query::IsUnionView(sql, one.dataset));
    if (role < access::Role::kViewer || is_view) {
      return InvalidBacking(text + (is_view ? " is a view itself" : " cannot be read"));
    }
    if (!one.branch.empty() && !deps.datasets.GetBranch(sql, one.dataset, one.branch).ok()) {
      return InvalidBacking(text + " has no branch " + JsonString(one.branch));
    }
    TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located,
                          tree::LocateNode(sql, one.dataset.ToRid()));
    if (located.project != project &&
        std::ranges::find(references, located.node.rid, &tree::Reference::resource) ==
            references.end()) {
      foreign.push_back(text);
    }
  }
  if (!foreign.empty()) {
    const json parameters = {{"viewProjectRid", project.ToString()},
                             {"invalidBackingDatasets", foreign}};
    return Status::InvalidArgument("the view's project neither holds nor references " +
                                   foreign.dump())
        .WithReason("InputBackingDatasetNotInOutputViewProject", parameters.dump());
  }
  return Status::Ok();
}

struct ViewBody {
  std::string parent;
  std::string name;
  std::string branch;
  UnionView view;
};

Result<ViewBody> ReadViewBody(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  ViewBody wanted;
  TARN_ASSIGN_OR_RETURN(wanted.parent, RequiredText(body, "parentFolderRid"));
  TARN_ASSIGN_OR_RETURN(wanted.name, RequiredText(body, "viewName"));
  TARN_ASSIGN_OR_RETURN(wanted.branch, BranchIn(body));
  TARN_ASSIGN_OR_RETURN(wanted.view.backing, BackingIn(body));
  TARN_ASSIGN_OR_RETURN(wanted.view.key, KeyIn(body));
  return wanted;
}

Result<json> MakeView(const FoundryDeps& deps, SqlTransaction& sql, const RequestContext& context,
                      const ViewBody& wanted) {
  TARN_ASSIGN_OR_RETURN(
      const Place folder,
      GetPlace(deps, sql, context, PlaceKind::kFolder, wanted.parent, access::Role::kEditor,
               {.name = "CreateViewPermissionDenied", .parameters = {}}));
  TARN_RETURN_IF_ERROR(
      CheckBacking(deps, sql, context, folder.located.project, wanted.view.backing));
  TARN_RETURN_IF_ERROR(CheckKey(deps, sql, wanted.view));
  const std::string& by = context.principal.user_id;
  TARN_ASSIGN_OR_RETURN(const dataset::Dataset made,
                        deps.datasets.CreateDataset(sql, {.parent_folder = folder.located.node.rid,
                                                          .name = wanted.name,
                                                          .base_uri = {},
                                                          .by = by}));
  if (wanted.branch != dataset::kDefaultBranch) {
    TARN_RETURN_IF_ERROR(deps.datasets.CreateBranch(
        sql, made.rid, wanted.branch, {.from_branch = {}, .from_transaction = {}, .by = by}));
  }
  TARN_RETURN_IF_ERROR(query::PutUnionView(sql, made.rid, wanted.branch, wanted.view));
  return ViewJson(sql, made.rid, wanted.branch, wanted.view);
}

Result<http::Response> Create(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const ViewBody wanted, ReadViewBody(context));
  json answer;
  std::string made = wanted.parent;
  const Status created =
      Audited(deps, context, "view.create", made, metastore::Durability::kDurable,
              [&](SqlTransaction& sql) -> Status {
                TARN_ASSIGN_OR_RETURN(answer, MakeView(deps, sql, context, wanted));
                made = answer.value("datasetRid", "");
                return Status::Ok();
              });
  if (created.reason() == "MissingDisplayName") {
    return created.WithReason("InvalidDisplayName", JsonObject({{"displayName", wanted.name}}));
  }
  TARN_RETURN_IF_ERROR(created);
  return JsonResponse(answer);
}

/// The view of a request, for a caller with `role`.
struct FoundView {
  DatasetRid rid;
  UnionView view;
  Rid project;
};

Result<FoundView> GetView(const FoundryDeps& deps, SqlTransaction& sql,
                          const RequestContext& context, const std::string& branch,
                          access::Role role, const Denial& denial) {
  const std::string& text = context.Path("viewDatasetRid");
  const Result<DatasetRid> rid = DatasetRid::Parse(text);
  if (!rid.ok()) {
    return ViewNotFound(text, branch);
  }
  TARN_ASSIGN_OR_RETURN(const access::Role found,
                        tree::RoleOn(sql, deps.authorizer, context.principal, rid->ToRid()));
  TARN_ASSIGN_OR_RETURN(std::optional<UnionView> view, query::FindUnionView(sql, *rid, branch));
  if (found == access::Role::kNone || !view) {
    return ViewNotFound(text, branch);
  }
  if (found < role) {
    return Denied(denial,
                  Status::PermissionDenied("the role " + std::string(access::RoleName(role)) +
                                           " is needed on " + text));
  }
  TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, rid->ToRid()));
  return FoundView{.rid = *rid, .view = *std::move(view), .project = located.project};
}

Result<http::Response> Get(const FoundryDeps& deps, RequestContext& context) {
  const std::string branch =
      context.query.Find("branch").value_or(std::string(dataset::kDefaultBranch));
  json answer;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(
        const FoundView found,
        GetView(deps, sql, context, branch, access::Role::kViewer,
                {.name = "GetViewPermissionDenied",
                 .parameters = {{"viewDatasetRid", context.Path("viewDatasetRid")}}}));
    TARN_ASSIGN_OR_RETURN(answer, ViewJson(sql, found.rid, branch, found.view));
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

using ViewChange = Status (*)(UnionView& view, const json& body);

struct ChangeNames {
  const char* action;
  const char* denial;
};

/// Reads a view, changes it, checks what came of it, and writes it back, in one SQL transaction.
Result<http::Response> Change(const FoundryDeps& deps, RequestContext& context,
                              const ChangeNames& names, ViewChange change) {
  const std::string& text = context.Path("viewDatasetRid");
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string branch, BranchIn(body));
  json answer;
  TARN_RETURN_IF_ERROR(
      Audited(deps, context, names.action, text, metastore::Durability::kDurable,
              [&](SqlTransaction& sql) -> Status {
                TARN_ASSIGN_OR_RETURN(
                    FoundView found,
                    GetView(deps, sql, context, branch, access::Role::kEditor,
                            {.name = names.denial, .parameters = {{"viewDatasetRid", text}}}));
                const std::vector<BackingDataset> before = found.view.backing;
                TARN_RETURN_IF_ERROR(change(found.view, body));
                std::vector<BackingDataset> added;
                std::ranges::copy_if(found.view.backing, std::back_inserter(added),
                                     [&](const BackingDataset& one) {
                                       return std::ranges::find(before, one) == before.end();
                                     });
                TARN_RETURN_IF_ERROR(CheckBacking(deps, sql, context, found.project, added));
                TARN_RETURN_IF_ERROR(CheckKey(deps, sql, found.view));
                TARN_RETURN_IF_ERROR(query::PutUnionView(sql, found.rid, branch, found.view));
                TARN_ASSIGN_OR_RETURN(answer, ViewJson(sql, found.rid, branch, found.view));
                return Status::Ok();
              }));
  return JsonResponse(answer);
}

bool IsSameInput(const BackingDataset& a, const BackingDataset& b) {
  return a.dataset == b.dataset && a.branch == b.branch;
}

Result<http::Response> AddBacking(const FoundryDeps& deps, RequestContext& context) {
  return Change(
      deps, context,
      {.action = "view.addBackingDatasets", .denial = "AddBackingDatasetsPermissionDenied"},
      [](UnionView& view, const json& body) -> Status {
        TARN_ASSIGN_OR_RETURN(const std::vector<BackingDataset> more, BackingIn(body));
        for (const BackingDataset& one : more) {
          if (std::ranges::none_of(view.backing, [&](const BackingDataset& other) {
                return IsSameInput(one, other);
              })) {
            view.backing.push_back(one);
          }
        }
        return Status::Ok();
      });
}

Result<http::Response> RemoveBacking(const FoundryDeps& deps, RequestContext& context) {
  return Change(
      deps, context,
      {.action = "view.removeBackingDatasets", .denial = "RemoveBackingDatasetsPermissionDenied"},
      [](UnionView& view, const json& body) -> Status {
        TARN_ASSIGN_OR_RETURN(const std::vector<BackingDataset> gone, BackingIn(body));
        for (const BackingDataset& one : gone) {
          std::erase_if(view.backing,
                        [&](const BackingDataset& other) { return IsSameInput(one, other); });
        }
        return Status::Ok();
      });
}

Result<http::Response> ReplaceBacking(const FoundryDeps& deps, RequestContext& context) {
  return Change(
      deps, context,
      {.action = "view.replaceBackingDatasets", .denial = "ReplaceBackingDatasetsPermissionDenied"},
      [](UnionView& view, const json& body) -> Status {
        TARN_ASSIGN_OR_RETURN(view.backing, BackingIn(body));
        return Status::Ok();
      });
}

Result<http::Response> AddPrimaryKey(const FoundryDeps& deps, RequestContext& context) {
  return Change(deps, context,
                {.action = "view.addPrimaryKey", .denial = "AddPrimaryKeyPermissionDenied"},
                [](UnionView& view, const json& body) -> Status {
                  if (view.key) {
                    return Status::Conflict("the view has a primary key, which stays")
                        .WithReason("ViewPrimaryKeyCannotBeModified");
                  }
                  TARN_ASSIGN_OR_RETURN(view.key, KeyIn(body));
                  return view.key ? Status::Ok() : InvalidMember("primaryKey", "is missing");
                });
}

constexpr access::Scope kWrite = access::Scope::kDatasetsWrite;

constexpr FoundryRoute kRoutes[] = {
    {"POST", "/datasets/views", kWrite, Create},
    {"GET", "/datasets/views/{viewDatasetRid}", std::nullopt, Get},
    {"POST", "/datasets/views/{viewDatasetRid}/addBackingDatasets", kWrite, AddBacking},
    {"POST", "/datasets/views/{viewDatasetRid}/removeBackingDatasets", kWrite, RemoveBacking},
    {"PUT", "/datasets/views/{viewDatasetRid}/replaceBackingDatasets", kWrite, ReplaceBacking},
    {"POST", "/datasets/views/{viewDatasetRid}/addPrimaryKey", kWrite, AddPrimaryKey},
};

}  // namespace

std::span<const FoundryRoute> ViewRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
