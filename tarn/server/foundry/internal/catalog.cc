// /foundry-catalog: datasets, branches, transactions and file lists for the vendor's older tools.
#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"
#include "tarn/dataset/errors.h"
#include "tarn/server/foundry/internal/internal_api.h"
#include "tarn/server/foundry/places.h"
#include "tarn/tree/lookup.h"
#include "tarn/tree/tree.h"

namespace tarn::server::foundry::internal {

using dataset::DatasetRid;
using dataset::TransactionRid;
using metastore::Durability;
using metastore::SqlTransaction;
using nlohmann::json;

namespace {

constexpr size_t kReferenceSegment = 6;  // /foundry-catalog/api/catalog/datasets/{rid}/x/{ref}

Denial CatalogDenial(const DatasetRid& rid) {
  return {.name = "Catalog:PermissionDenied", .parameters = {{"datasetRid", rid.ToString()}}};
}

Result<http::Response> Named(Result<http::Response> answer) {
  return answer.ok() ? std::move(answer)
                     : Result<http::Response>(NamedBy("Catalog", answer.status()));
}

json TransactionJson(const dataset::Transaction& transaction) {
  json object = {{"rid", transaction.rid.ToString()},
                 {"datasetRid", transaction.dataset.ToString()},
                 {"type", dataset::TransactionTypeName(transaction.type)},
                 {"status", dataset::TransactionStateName(transaction.state)},
                 {"filePathType", "NO_FILES"},
                 {"startTime", FormatTimestamp(transaction.created_at)},
                 {"closeTime", nullptr},
                 {"permissionPath", nullptr},
                 {"record", json::object()},
                 {"attribution",
                  {{"userId", UserIdOnWire(transaction.created_by)},
                   {"time", FormatTimestamp(transaction.created_at)}}},
                 {"metadata",
                  {{"fileCount", transaction.file_count},
                   {"hiddenFileCount", 0},
                   {"totalFileSize", transaction.size_bytes},
                   {"totalHiddenFileSize", 0}}},
                 {"isDataDeleted", false},
                 {"isDeletionComplete", false},
                 {"provenance", nullptr}};
  if (transaction.file_count > 0) {
    object["filePathType"] = "MANAGED_FILES";
  }
  if (transaction.closed_at) {
    object["closeTime"] = FormatTimestamp(*transaction.closed_at);
  }
  if (transaction.record_json) {
    object["record"] = json::parse(*transaction.record_json, nullptr, false);
  }
  return object;
}

json BranchJson(const DatasetRid& rid, const dataset::Branch& branch) {
  json ancestors = json::array();
  if (branch.parent) {
    ancestors.push_back(*branch.parent);
  }
  json object = {{"id", branch.name},
                 {"rid", "ri.foundry.main.branch." + rid.uuid.ToString()},
                 {"ancestorBranchIds", std::move(ancestors)},
                 {"creationTime", FormatTimestamp(branch.created_at)},
                 {"transactionRid", nullptr}};
  if (branch.transaction()) {
    object["transactionRid"] = branch.transaction()->ToString();
  }
  return object;
}

/// A dataset at a path: the folder above it must be there.
Result<http::Response> CreateDataset(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string path, RequiredText(body, "path"));
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) {
    return Status::InvalidArgument("path " + JsonString(path) + ": /Space/project/name is needed")
        .WithReason("InvalidArgument", JsonObject({{"path", path}}));
  }
  json answer;
  std::string made = path;
  const Status created = Audited(
      deps, context, "dataset.create", made, Durability::kDurable,
      [&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(const tree::Node folder, tree::GetByPath(sql, path.substr(0, slash)));
        TARN_ASSIGN_OR_RETURN(const Place place,
                              GetPlace(deps, sql, context, PlaceKind::kFolder,
                                       folder.rid.ToString(), access::Role::kEditor,
                                       {.name = "Catalog:CreateDatasetPermissionDenied",
                                        .parameters = {{"path", path}}}));
        TARN_ASSIGN_OR_RETURN(
            const dataset::Dataset dataset,
            deps.datasets.CreateDataset(sql, {.parent_folder = place.located.node.rid,
                                              .name = path.substr(slash + 1),
                                              .base_uri = {},
                                              .by = context.principal.user_id}));
        made = dataset.rid.ToString();
        answer = {{"rid", made}, {"fileSystemId", "default"}};
        return Status::Ok();
      });
  TARN_RETURN_IF_ERROR(NamedBy("Catalog", created));
  return JsonResponse(answer);
}

/// 204 is how this service says that there is none.
Result<http::Response> GetDataset(const FoundryDeps& deps, RequestContext& context) {
  const Result<DatasetRid> rid = DatasetOf(context);
  if (!rid.ok()) {
    return NoContent();
  }
  const Status visible = RequireViewer(deps, context, *rid, CatalogDenial(*rid));
  if (visible.code() == ErrorCode::kNotFound) {
    return NoContent();
  }
  TARN_RETURN_IF_ERROR(visible);
  return JsonResponse({{"rid", rid->ToString()}, {"fileSystemId", "default"}});
}

Result<http::Response> DeleteDataset(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string text, RequiredText(body, "rid"));
  const Result<DatasetRid> rid = DatasetRid::Parse(text);
  if (!rid.ok()) {
    return NamedBy("Catalog",
                   Status::NotFound("there is no dataset " + JsonString(text))
                       .WithReason("DatasetNotFound", JsonObject({{"datasetRid", text}})));
  }
  TARN_RETURN_IF_ERROR(
      NamedBy("Catalog", Mutate(deps, context, *rid, CatalogDenial(*rid), "resource.trash",
                                Durability::kDurable, [&](SqlTransaction& sql) {
                                  return deps.catalog.deps().tree.Trash(sql, rid->ToRid(),
                                                                        context.principal.user_id);
                                })));
  return NoContent();
}

Result<http::Response> StartTransaction(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string branch, RequiredText(body, "branchId"));
  TARN_ASSIGN_OR_RETURN(const auto type_name, OptionalText(body, "startTransactionType"));
  TARN_ASSIGN_OR_RETURN(const dataset::TransactionType type,
                        dataset::ParseTransactionType(type_name.value_or("APPEND")));
  dataset::Transaction started;
  TARN_RETURN_IF_ERROR(
      Mutate(deps, context, rid, CatalogDenial(rid), "transaction.start", Durability::kLazy,
             [&](SqlTransaction& sql) -> Status {
               TARN_RETURN_IF_ERROR(RefuseView(sql, rid));
               TARN_ASSIGN_OR_RETURN(
                   started, deps.datasets.StartTransaction(
                                sql, rid, branch, {.type = type, .by = context.principal.user_id}));
               return Status::Ok();
             }));
  return JsonResponse(TransactionJson(started));
}

/// Changes an OPEN transaction named in the path.
template <typename Change>
Result<http::Response> ChangeTransaction(const FoundryDeps& deps, RequestContext& context,
                                         const char* action, const Change& change) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(Mutate(deps, context, rid, CatalogDenial(rid), action, Durability::kDurable,
                              [&](SqlTransaction& sql) -> Status {
                                TARN_ASSIGN_OR_RETURN(
                                    const TransactionRid transaction,
                                    TransactionOf(rid, context.Path("transactionRid")));
                                return change(sql, rid, transaction);
                              }));
  return NoContent();
}

Result<http::Response> SetType(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(
      const dataset::TransactionType type,
      dataset::ParseTransactionType(body.is_string() ? body.get<std::string>() : body.dump()));
  return ChangeTransaction(
      deps, context, "transaction.setType",
      [&](SqlTransaction& sql, const DatasetRid& rid, const TransactionRid& transaction) {
        return StatusOf(deps.datasets.SetTransactionType(sql, rid, transaction, type));
      });
}

Result<http::Response> Commit(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  dataset::CommitOptions options;
  options.by = context.principal.user_id;
  if (body.is_object() && body.contains("record") && body["record"].is_object()) {
    options.record_json = body["record"].dump();
  }
  return ChangeTransaction(
      deps, context, "transaction.commit",
      [&](SqlTransaction& sql, const DatasetRid& rid, const TransactionRid& transaction) {
        return StatusOf(deps.datasets.CommitTransaction(sql, rid, transaction, options));
      });
}

Result<http::Response> Abort(const FoundryDeps& deps, RequestContext& context) {
  return ChangeTransaction(
      deps, context, "transaction.abort",
      [&](SqlTransaction& sql, const DatasetRid& rid, const TransactionRid& transaction) {
        return StatusOf(
            deps.datasets.AbortTransaction(sql, rid, transaction, context.principal.user_id));
      });
}

Result<http::Response> GetTransaction(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(RequireViewer(deps, context, rid, CatalogDenial(rid)));
  TARN_ASSIGN_OR_RETURN(const TransactionRid transaction,
                        TransactionOf(rid, context.Path("transactionRid")));
  TARN_ASSIGN_OR_RETURN(const dataset::Transaction found,
                        deps.datasets.GetTransaction(rid, transaction));
  return JsonResponse(TransactionJson(found));
}

/// Newest first; an OPEN one only when it is asked for.
Result<http::Response> ListTransactions(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(RequireViewer(deps, context, rid, CatalogDenial(rid)));
  TARN_ASSIGN_OR_RETURN(const std::string branch, FormSegment(context, kReferenceSegment));
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, 100, 1000));
  TARN_ASSIGN_OR_RETURN(const bool with_open, Flag(context, "includeOpenExclusiveTransaction"));
  TARN_ASSIGN_OR_RETURN(const dataset::TransactionPage page,
                        deps.datasets.ListBranchTransactions(
                            rid, branch, std::min(page_size + 1, 1000), PageTokenOf(context)));
  json values = json::array();
  for (const dataset::Transaction& transaction : page.transactions) {
    const bool is_open = transaction.state == dataset::TransactionState::kOpen;
    if ((!is_open || with_open) && values.size() < static_cast<size_t>(page_size)) {
      values.push_back(
          {{"rid", transaction.rid.ToString()}, {"transaction", TransactionJson(transaction)}});
    }
  }
  return JsonResponse({{"values", std::move(values)}, {"nextPageToken", nullptr}});
}

Result<http::Response> GetBranch(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(RequireViewer(deps, context, rid, CatalogDenial(rid)));
  TARN_ASSIGN_OR_RETURN(const std::string name, FormSegment(context, kReferenceSegment));
  const Result<dataset::Branch> branch = deps.datasets.GetBranch(rid, name);
  if (branch.status().reason() == "BranchNotFound") {
    return NoContent();
  }
  TARN_RETURN_IF_ERROR(StatusOf(branch));
  return JsonResponse(BranchJson(rid, *branch));
}

Result<http::Response> ListBranches(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(RequireViewer(deps, context, rid, CatalogDenial(rid)));
  json names = json::array();
  std::string token;
  do {
    TARN_ASSIGN_OR_RETURN(const dataset::BranchPage page,
                          deps.datasets.ListBranches(rid, 1000, token));
    for (const dataset::Branch& branch : page.branches) {
      names.push_back(branch.name);
    }
    token = page.next_page_token.value_or("");
  } while (!token.empty());
  return JsonResponse(names);
}

Result<http::Response> CreateBranch(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_ASSIGN_OR_RETURN(const std::string name, FormSegment(context, kReferenceSegment));
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const auto from_transaction, OptionalText(body, "parentRef"));
  TARN_ASSIGN_OR_RETURN(const auto from_branch, OptionalText(body, "parentBranchId"));
  dataset::CreateBranchOptions options{
      .from_branch = from_branch, .from_transaction = {}, .by = context.principal.user_id};
  if (from_transaction) {
    options.from_branch.reset();
    TARN_ASSIGN_OR_RETURN(options.from_transaction, TransactionOf(rid, *from_transaction));
  }
  dataset::Branch branch;
  TARN_RETURN_IF_ERROR(Mutate(deps, context, rid, CatalogDenial(rid), "branch.create",
                              Durability::kDurable, [&](SqlTransaction& sql) -> Status {
                                TARN_ASSIGN_OR_RETURN(
                                    branch, deps.datasets.CreateBranch(sql, rid, name, options));
                                return Status::Ok();
                              }));
  return JsonResponse(BranchJson(rid, branch));
}

Result<http::Response> UpdateBranch(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_ASSIGN_OR_RETURN(const std::string name, FormSegment(context, kReferenceSegment));
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const Reference to,
                        ParseReference(body.is_string() ? body.get<std::string>() : ""));
  dataset::Branch branch;
  TARN_RETURN_IF_ERROR(Mutate(
      deps, context, rid, CatalogDenial(rid), "branch.reset", Durability::kDurable,
      [&](SqlTransaction& sql) -> Status {
        std::optional<TransactionRid> target = to.transaction;
        if (!target) {
          TARN_ASSIGN_OR_RETURN(const dataset::Branch other,
                                deps.datasets.GetBranch(sql, rid, to.branch));
          target = other.head;
        }
        if (!target) {
          return Status::InvalidArgument("branch " + JsonString(to.branch) +
                                         " has no committed transaction");
        }
        TARN_ASSIGN_OR_RETURN(
            branch, deps.datasets.ResetBranch(sql, rid, name, *target, context.principal.user_id));
        return Status::Ok();
      }));
  return JsonResponse(BranchJson(rid, branch));
}

bool IsHidden(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with('_') || name.starts_with('.');
}

json FileJson(const dataset::File& file, bool is_open) {
  return {{"logicalPath", file.path},
          {"physicalPath", file.location},
          {"physicalUri", file.location},
          {"transactionRid", file.transaction.ToString()},
          {"fileMetadata", {{"length", file.size_bytes}}},
          {"isOpen", is_open},
          {"timeModified", FormatTimestamp(file.updated_at)}};
}

/// The view that a list means: with the OPEN transaction on top when it is asked for.
Result<dataset::ViewSelector> ListedView(const FoundryDeps& deps, const RequestContext& context,
                                         const DatasetRid& rid, const json& body) {
  TARN_ASSIGN_OR_RETURN(const std::string text, FormSegment(context, kReferenceSegment));
  TARN_ASSIGN_OR_RETURN(const Reference reference, ParseReference(text));
  dataset::ViewSelector selector = reference.Select();
  if (const auto start = context.query.Find("startTransactionRid")) {
    TARN_ASSIGN_OR_RETURN(selector.start, TransactionOf(rid, *start));
  }
  if (!selector.end && body.value("includeOpenExclusiveTransaction", false)) {
    TARN_ASSIGN_OR_RETURN(const dataset::Branch branch,
                          deps.datasets.GetBranch(rid, selector.branch));
    selector.end = branch.open;
  }
  if (selector.end) {
    TARN_ASSIGN_OR_RETURN(const dataset::Transaction end,
                          deps.datasets.GetTransaction(rid, *selector.end));
    if (end.state == dataset::TransactionState::kOpen) {
      TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) {
        return RequireDataset(deps, sql, context, rid, access::Role::kEditor, CatalogDenial(rid));
      }));
    }
  }
  return selector;
}

Result<http::Response> ListFiles(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(RequireViewer(deps, context, rid, CatalogDenial(rid)));
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const dataset::ViewSelector selector, ListedView(deps, context, rid, body));
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, 1000, 10'000));
  TARN_ASSIGN_OR_RETURN(const auto logical_path, OptionalText(body, "logicalPath"));
  TARN_ASSIGN_OR_RETURN(const auto token, OptionalText(body, "pageStartLogicalPath"));
  dataset::ListOptions options{.prefix = logical_path.value_or(""),
                               .page_size = page_size,
                               .page_token = token.value_or("")};
  if (!options.prefix.empty() && !options.prefix.ends_with('/')) {
    // Exactly this file, else the folder of that name.
    TARN_ASSIGN_OR_RETURN(const dataset::FileView view, deps.datasets.ResolveView(rid, selector));
    if (!deps.datasets.StatFile(view, options.prefix).ok()) {
      options.prefix += '/';
    }
  }
  TARN_ASSIGN_OR_RETURN(const dataset::FilePage page,
                        deps.datasets.ListFiles(rid, selector, options));
  json values = json::array();
  for (const dataset::File& file : page.files) {
    if (!body.value("excludeHiddenFiles", false) || !IsHidden(file.path)) {
      values.push_back(FileJson(file, false));
    }
  }
  json answer = {{"values", std::move(values)}, {"nextPageToken", nullptr}};
  if (page.next_page_token) {
    answer["nextPageToken"] = *page.next_page_token;
  }
  return JsonResponse(answer);
}

Result<http::Response> GetStatistics(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(RequireViewer(deps, context, rid, CatalogDenial(rid)));
  TARN_ASSIGN_OR_RETURN(const dataset::ViewSelector selector,
                        ListedView(deps, context, rid, json::object()));
  TARN_ASSIGN_OR_RETURN(const dataset::FileView view, deps.datasets.ResolveView(rid, selector));
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t hidden_files = 0;
  int64_t hidden_bytes = 0;
  if (!view.absent()) {
    TARN_RETURN_IF_ERROR(
        deps.datasets.StreamFiles(view, "", [&](std::span<const dataset::File> batch) {
          for (const dataset::File& file : batch) {
            (IsHidden(file.path) ? hidden_files : files) += 1;
            (IsHidden(file.path) ? hidden_bytes : bytes) += file.size_bytes;
          }
          return Status::Ok();
        }));
  }
  return JsonResponse({{"sizeInBytes", bytes},
                       {"numFiles", files},
                       {"hiddenFilesSizeInBytes", hidden_bytes},
                       {"numHiddenFiles", hidden_files}});
}

Result<http::Response> RemoveFile(const FoundryDeps& deps, RequestContext& context) {
  const std::string path = context.query.Find("logicalPath").value_or("");
  TARN_ASSIGN_OR_RETURN(const bool recursive, Flag(context, "recursive"));
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_ASSIGN_OR_RETURN(const TransactionRid transaction,
                        TransactionOf(rid, context.Path("transactionRid")));
  TARN_RETURN_IF_ERROR(RequireViewer(deps, context, rid, CatalogDenial(rid)));
  std::vector<std::string> paths = {path};
  if (recursive) {
    dataset::ViewSelector own;
    own.start = transaction;
    own.end = transaction;
    TARN_ASSIGN_OR_RETURN(const dataset::FileView view, deps.datasets.ResolveView(rid, own));
    TARN_RETURN_IF_ERROR(deps.datasets.StreamFiles(view, path.ends_with('/') ? path : path + "/",
                                                   [&](std::span<const dataset::File> batch) {
                                                     for (const dataset::File& file : batch) {
                                                       paths.push_back(file.path);
                                                     }
                                                     return Status::Ok();
                                                   }));
  }
  return ChangeTransaction(
      deps, context, "file.unregister",
      [&](SqlTransaction& sql, const DatasetRid& of, const TransactionRid& open) {
        return StatusOf(deps.datasets.UnregisterFiles(sql, of, open, paths));
      });
}

Result<http::Response> AddToDelete(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> paths, TextList(body, "logicalPaths"));
  return ChangeTransaction(
      deps, context, "file.delete",
      [&](SqlTransaction& sql, const DatasetRid& rid, const TransactionRid& transaction) {
        return StatusOf(
            deps.datasets.RemoveFiles(sql, rid, transaction, paths, dataset::MissingPath::kRefuse));
      });
}

/// Gives the failures of `kHandler` their names of this service.
template <FoundryHandler kHandler>
Result<http::Response> Catalog(const FoundryDeps& deps, RequestContext& context) {
  return Named(kHandler(deps, context));
}

constexpr access::Scope kRead = access::Scope::kDatasetsRead;
constexpr access::Scope kWrite = access::Scope::kDatasetsWrite;

constexpr FoundryRoute kRoutes[] = {
    {"POST", "/foundry-catalog/api/catalog/datasets", kWrite, Catalog<CreateDataset>},
    {"DELETE", "/foundry-catalog/api/catalog/datasets", kWrite, Catalog<DeleteDataset>},
    {"GET", "/foundry-catalog/api/catalog/datasets/{datasetRid}", kRead, Catalog<GetDataset>},
    {"POST", "/foundry-catalog/api/catalog/datasets/{datasetRid}/transactions", kWrite,
     Catalog<StartTransaction>},
    {"POST", "/foundry-catalog/api/catalog/datasets/{datasetRid}/transactions/{transactionRid}",
     kWrite, Catalog<SetType>},
    {"GET", "/foundry-catalog/api/catalog/datasets/{datasetRid}/transactions/{transactionRid}",
     kRead, Catalog<GetTransaction>},
    {"POST",
     "/foundry-catalog/api/catalog/datasets/{datasetRid}/transactions/{transactionRid}/commit",
     kWrite, Catalog<Commit>},
    {"POST",
     "/foundry-catalog/api/catalog/datasets/{datasetRid}/transactions/{transactionRid}/"
     "abortWithMetadata",
     kWrite, Catalog<Abort>},
    {"POST",
     "/foundry-catalog/api/catalog/datasets/{datasetRid}/transactions/{transactionRid}/files/"
     "remove",
     kWrite, Catalog<RemoveFile>},
    {"POST",
     "/foundry-catalog/api/catalog/datasets/{datasetRid}/transactions/{transactionRid}/files/"
     "addToDeleteTransaction",
     kWrite, Catalog<AddToDelete>},
    {"GET", "/foundry-catalog/api/catalog/datasets/{datasetRid}/reverse-transactions2/{branch}",
     kRead, Catalog<ListTransactions>},
    {"GET", "/foundry-catalog/api/catalog/datasets/{datasetRid}/branches", kRead,
     Catalog<ListBranches>},
    {"GET", "/foundry-catalog/api/catalog/datasets/{datasetRid}/branches2/{branch}", kRead,
     Catalog<GetBranch>},
    {"POST", "/foundry-catalog/api/catalog/datasets/{datasetRid}/branchesUnrestricted2/{branch}",
     kWrite, Catalog<CreateBranch>},
    {"POST", "/foundry-catalog/api/catalog/datasets/{datasetRid}/branchesUpdate2/{branch}", kWrite,
     Catalog<UpdateBranch>},
    {"PUT", "/foundry-catalog/api/catalog/datasets/{datasetRid}/views/{branch}/files3", kRead,
     Catalog<ListFiles>, Stability::kStable, RouteEffect::kReadOnly},
    {"GET", "/foundry-catalog/api/catalog/datasets/{datasetRid}/views/{branch}/stats", kRead,
     Catalog<GetStatistics>},
};

}  // namespace

std::span<const FoundryRoute> CatalogRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry::internal
