#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"
#include "tarn/base/utf8.h"
#include "tarn/dataset/errors.h"
#include "tarn/dataset/logical_path.h"
#include "tarn/server/foundry/file_access.h"
#include "tarn/server/foundry/foundry_api.h"

namespace tarn::server::foundry {

using dataset::DatasetRid;
using dataset::TransactionRid;
using nlohmann::json;

namespace {

Denial FileDenial(const char* name, const DatasetRid& dataset, std::string_view path) {
  return {.name = name,
          .parameters = {{"datasetRid", dataset.ToString()}, {"filePath", std::string(path)}}};
}

Status CheckPrefix(std::string_view prefix) {
  if (prefix.starts_with('/') || prefix.find('\0') != std::string_view::npos ||
      prefix.size() > dataset::kPathBytesMax || !IsValidUtf8(prefix)) {
    return Status::InvalidArgument("pathPrefix " + JsonString(prefix) +
                                   ": UTF-8 of at most 4096 bytes without leading slash is needed")
        .WithReason("InvalidFilePath", JsonObject({{"filePath", prefix}}));
  }
  return Status::Ok();
}

Result<http::Response> List(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  const std::string prefix = context.query.Find("pathPrefix").value_or("");
  TARN_ASSIGN_OR_RETURN(
      const dataset::ViewSelector selector,
      AuthorizeRead(deps, context, rid, FileDenial("ListFilesPermissionDenied", rid, prefix)));
  TARN_RETURN_IF_ERROR(CheckPrefix(prefix));
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, 1000, 10'000));
  TARN_ASSIGN_OR_RETURN(
      const dataset::FilePage page,
      deps.datasets.ListFiles(
          rid, selector,
          {.prefix = prefix, .page_size = page_size, .page_token = PageTokenOf(context)}));
  json data = json::array();
  for (const dataset::File& file : page.files) {
    data.push_back(ToJson(file));
  }
  return JsonResponse(PageJson(std::move(data), page.next_page_token));
}

Result<http::Response> Get(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  const std::string& path = context.Path("filePath");
  TARN_ASSIGN_OR_RETURN(
      const dataset::ViewSelector selector,
      AuthorizeRead(deps, context, rid, FileDenial("GetFilePermissionDenied", rid, path)));
  TARN_ASSIGN_OR_RETURN(const dataset::File file, StatIn(deps, rid, selector, path));
  return JsonResponse(ToJson(file));
}

Result<http::Response> Content(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  const std::string& path = context.Path("filePath");
  TARN_ASSIGN_OR_RETURN(
      const dataset::ViewSelector selector,
      AuthorizeRead(deps, context, rid, FileDenial("GetFileContentPermissionDenied", rid, path)));
  TARN_ASSIGN_OR_RETURN(const dataset::File file, StatIn(deps, rid, selector, path));
  return ContentResponse(deps.store, rid, file, context.http.headers);
}

/// Takes one path out of the view: by an OPEN DELETE transaction, or by one of its own.
Result<http::Response> Delete(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  const std::string& path = context.Path("filePath");
  const std::optional<std::string> transaction_text = context.query.Find("transactionRid");
  if (transaction_text && context.query.Find("branchName")) {
    return InvalidParameterCombination({{}, {"branchName"}, {"transactionRid"}},
                                       {"branchName", "transactionRid"});
  }
  TARN_ASSIGN_OR_RETURN(const std::string branch, BranchNameOf(context));
  const std::string by = context.principal.user_id;
  const auto remove = [&](metastore::SqlTransaction& sql, const TransactionRid& transaction) {
    return StatusOf(deps.datasets.RemoveFiles(sql, rid, transaction, std::span(&path, 1),
                                              dataset::MissingPath::kRefuse));
  };
  TARN_RETURN_IF_ERROR(Mutate(
      deps, context, rid, FileDenial("DeleteFilePermissionDenied", rid, path), "file.delete",
      transaction_text ? metastore::Durability::kLazy : metastore::Durability::kDurable,
      [&](metastore::SqlTransaction& sql) -> Status {
        if (transaction_text) {
          TARN_ASSIGN_OR_RETURN(const TransactionRid open, TransactionOf(rid, *transaction_text));
          return remove(sql, open);
        }
        TARN_ASSIGN_OR_RETURN(
            const dataset::Transaction started,
            deps.datasets.StartTransaction(sql, rid, branch,
                                           {.type = dataset::TransactionType::kDelete, .by = by}));
        TARN_RETURN_IF_ERROR(remove(sql, started.rid));
        dataset::CommitOptions options;
        options.by = by;
        return StatusOf(deps.datasets.CommitTransaction(sql, rid, started.rid, options));
      }));
  return NoContent();
}

Result<http::Response> Upload(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_ASSIGN_OR_RETURN(const dataset::File file, UploadFile(deps, context, rid));
  return JsonResponse(ToJson(file));
}

constexpr access::Scope kRead = access::Scope::kDatasetsRead;
constexpr access::Scope kWrite = access::Scope::kDatasetsWrite;

constexpr FoundryRoute kRoutes[] = {
    {"GET", "/datasets/{datasetRid}/files", kRead, List},
    {"GET", "/datasets/{datasetRid}/files/{filePath}", kRead, Get},
    {"DELETE", "/datasets/{datasetRid}/files/{filePath}", kWrite, Delete},
    {"GET", "/datasets/{datasetRid}/files/{filePath}/content", kRead, Content},
    {"POST", "/datasets/{datasetRid}/files/{filePath}/upload", kWrite, Upload},
};

}  // namespace

std::span<const FoundryRoute> FileRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
