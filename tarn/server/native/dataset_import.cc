// Import without copy: POST …/transactions/{transaction}/files:register and …/commits.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/server/native/dataset_request.h"
#include "tarn/server/native/register_rows.h"

namespace tarn::server::native {

namespace {

using dataset::DatasetRid;
using dataset::StoredFile;
using dataset::TransactionRid;
using metastore::SqlTransaction;
using nlohmann::json;

constexpr size_t kFilesPerCommitMax = 10'000;

Result<std::vector<StoredFile>> CheckRows(NativeApi& api, std::span<const RegisterRow> rows) {
  storage::ObjectStore& store = api.deps.query.catalog.deps().warehouse;
  std::vector<StoredFile> files;
  files.reserve(rows.size());
  for (const RegisterRow& row : rows) {
    TARN_ASSIGN_OR_RETURN(StoredFile file, CheckRegisterRow(store, row));
    files.push_back(std::move(file));
  }
  return files;
}

// Rows of earlier batches stay registered when a later one fails: sent again, the newest wins.
Result<http::Response> RegisterFiles(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kEditor));
  TARN_ASSIGN_OR_RETURN(const TransactionRid transaction, TransactionOf(context, rid));
  int64_t registered = 0;
  const std::string content_type(context.http.headers.Find("Content-Type").value_or(""));
  TARN_RETURN_IF_ERROR(ReadRegisterRows(
      *context.http.body, content_type, [&](std::span<const RegisterRow> rows) -> Status {
        TARN_ASSIGN_OR_RETURN(const std::vector<StoredFile> files, CheckRows(api, rows));
        TARN_RETURN_IF_ERROR(api.deps.query.datasets.RegisterFiles(rid, transaction, files));
        registered += static_cast<int64_t>(files.size());
        return Status::Ok();
      }));
  // Also for a body without rows: the transaction must be one that takes files.
  TARN_RETURN_IF_ERROR(api.deps.query.datasets.RegisterFiles(rid, transaction, {}));
  TARN_RETURN_IF_ERROR(AuditDataset(api, context, rid.ToString(), "file.register"));
  return JsonResponse({{"registered", registered}});
}

Result<std::vector<RegisterRow>> RowsOf(const json& body) {
  const auto files = body.find("files");
  if (files == body.end() || !files->is_array()) {
    return Status::InvalidArgument("the request body lacks files, a list of rows");
  }
  if (files->size() > kFilesPerCommitMax) {
    return Status::InvalidArgument(fmt::format(
        "files has {} rows, at most {} fit one call; use a transaction and files:register",
        files->size(), kFilesPerCommitMax));
  }
  std::vector<RegisterRow> rows;
  for (const json& file : *files) {
    Result<RegisterRow> row = ParseRegisterRow(file);
    if (!row.ok()) {
      return row.status().WithContext(fmt::format("files[{}]", rows.size()));
    }
    rows.push_back(*std::move(row));
  }
  return rows;
}

// What a commit of one dataset holds, its objects looked at.
Result<dataset::CommitFilesRequest> CommitOf(NativeApi& api, const RequestContext& context,
                                             const DatasetRid& rid, const json& body) {
  dataset::CommitFilesRequest request;
  request.dataset = rid;
  TARN_ASSIGN_OR_RETURN(const std::string branch, TextMember(body, "branch"));
  TARN_ASSIGN_OR_RETURN(const std::string type, RequiredText(body, "type"));
  TARN_ASSIGN_OR_RETURN(request.type, dataset::ParseTransactionType(type));
  if (!branch.empty()) {
    request.branch = branch;
  }
  const auto record = body.find("record");
  if (record != body.end() && !record->is_null()) {
    request.commit.record_json = record->dump();
  }
  request.commit.by = context.principal.user_id;
  TARN_ASSIGN_OR_RETURN(const std::vector<RegisterRow> rows, RowsOf(body));
  TARN_ASSIGN_OR_RETURN(request.files, CheckRows(api, rows));
  return request;
}

Result<http::Response> CommitFiles(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kEditor));
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const dataset::CommitFilesRequest request,
                        CommitOf(api, context, rid, body));
  std::optional<dataset::Transaction> committed;
  TARN_RETURN_IF_ERROR(ChangeDataset(
      api, context, rid, access::Role::kEditor, "transaction.commit",
      [&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(committed, api.deps.query.datasets.CommitFiles(sql, request));
        return Status::Ok();
      }));
  return JsonResponse(TransactionToJson(*committed));
}

// The commits of a body, each with its dataset, on which the caller is Editor.
Result<std::vector<dataset::CommitFilesRequest>> CommitsOf(NativeApi& api,
                                                           const RequestContext& context,
                                                           const json& body) {
  const auto datasets = body.is_object() ? body.find("datasets") : body.end();
  if (datasets == body.end() || !datasets->is_array() || datasets->empty()) {
    return Status::InvalidArgument("the request body lacks datasets, a list of commits");
  }
  if (body.contains("tables")) {
    return Status::Unimplemented("commits of tables in this call are not available");
  }
  std::vector<dataset::CommitFilesRequest> requests;
  size_t file_count = 0;
  for (const json& commit : *datasets) {
    TARN_ASSIGN_OR_RETURN(const std::string text, RequiredText(commit, "datasetRid"));
    TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetRid::Parse(text));
    TARN_RETURN_IF_ERROR(api.database().Read([&](SqlTransaction& sql) {
      return RequireDataset(api, sql, context, rid, access::Role::kEditor);
    }));
    TARN_ASSIGN_OR_RETURN(dataset::CommitFilesRequest request, CommitOf(api, context, rid, commit));
    file_count += request.files.size();
    requests.push_back(std::move(request));
  }
  if (file_count > kFilesPerCommitMax) {
    return Status::InvalidArgument(fmt::format("the commits have {} files, at most {} fit one call",
                                               file_count, kFilesPerCommitMax));
  }
  return requests;
}

// Several datasets in one write: all or nothing.
Result<http::Response> CommitDatasets(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::vector<dataset::CommitFilesRequest> requests,
                        CommitsOf(api, context, body));
  json committed;
  TARN_RETURN_IF_ERROR(api.database().Write([&](SqlTransaction& sql) -> Status {
    committed = json::array();
    for (const dataset::CommitFilesRequest& request : requests) {
      TARN_RETURN_IF_ERROR(
          RequireDataset(api, sql, context, request.dataset, access::Role::kEditor));
      TARN_ASSIGN_OR_RETURN(const dataset::Transaction transaction,
                            api.deps.query.datasets.CommitFiles(sql, request));
      json entry = TransactionToJson(transaction);
      entry["datasetRid"] = request.dataset.ToString();
      committed.push_back(std::move(entry));
    }
    return Status::Ok();
  }));
  for (const dataset::CommitFilesRequest& request : requests) {
    TARN_RETURN_IF_ERROR(
        AuditDataset(api, context, request.dataset.ToString(), "transaction.commit"));
  }
  return JsonResponse({{"datasets", std::move(committed)}});
}

constexpr NativeRoute kRoutes[] = {
    {.method = "POST",
     .pattern = "/datasets/{rid}/transactions/{transaction}/files:register",
     .scope = access::Scope::kDatasetsWrite,
     .handler = &RegisterFiles,
     .summary =
         "Existing objects under logical paths, no copy: a stream of {path, uri, sizeBytes?, "
         "checksum?, rowCount?}, one JSON object per line or an Arrow stream.",
     .request = "application/x-ndjson"},
    {.method = "POST",
     .pattern = "/datasets/{rid}/commits",
     .scope = access::Scope::kDatasetsWrite,
     .handler = &CommitFiles,
     .summary = "Starts, registers and commits in one write: {branch?, type, files, record?}.",
     .request = "application/json"},
    {.method = "POST",
     .pattern = "/commits",
     .scope = access::Scope::kDatasetsWrite,
     .handler = &CommitDatasets,
     .summary = "Commits to several datasets in one write, all or nothing: {datasets: "
                "[{datasetRid, branch?, type, files, record?}]}.",
     .request = "application/json"},
};

}  // namespace

std::span<const NativeRoute> DatasetImportRoutes() { return kRoutes; }

}  // namespace tarn::server::native
