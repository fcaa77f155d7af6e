#include "tarn/server/native/dataset_request.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/hash.h"
#include "tarn/dataset/branching/branch_rules.h"
#include "tarn/dataset/branching/tag.h"
#include "tarn/server/native/audited.h"
#include "tarn/tree/permission.h"

namespace tarn::server::native {

using dataset::DatasetRid;
using dataset::File;
using dataset::TransactionRid;
using dataset::ViewSelector;
using metastore::SqlTransaction;
using nlohmann::json;

namespace {

Status NoDataset(std::string_view rid) {
  return Status::NotFound(fmt::format("dataset {} does not exist", rid))
      .WithReason("DatasetNotFound", json{{"datasetRid", rid}}.dump());
}

}  // namespace

Result<DatasetRid> DatasetOf(NativeApi& api, const RequestContext& context, access::Role role) {
  const std::string& text = context.Path("rid");
  const Result<DatasetRid> rid = DatasetRid::Parse(text);
  if (!rid.ok()) {
    return NoDataset(text);
  }
  TARN_RETURN_IF_ERROR(api.database().Read(
      [&](SqlTransaction& sql) { return RequireDataset(api, sql, context, *rid, role); }));
  return rid;
}

Status RequireDataset(NativeApi& api, SqlTransaction& sql, const RequestContext& context,
                      const DatasetRid& rid, access::Role role) {
  TARN_ASSIGN_OR_RETURN(const access::Role found, tree::RoleOn(sql, api.deps.query.authorizer,
                                                               context.principal, rid.ToRid()));
  if (found == access::Role::kNone) {
    return NoDataset(rid.ToString());
  }
  return found >= role ? Status::Ok()
                       : Status::PermissionDenied(fmt::format(
                             "dataset {}: the role {} is needed, you have {}", rid.ToString(),
                             access::RoleName(role), access::RoleName(found)));
}

Result<TransactionRid> TransactionOf(const RequestContext& context, const DatasetRid& rid) {
  const std::string& text = context.Path("transaction");
  Result<TransactionRid> transaction = TransactionRid::Parse(text);
  if (!transaction.ok()) {
    return Status::NotFound(fmt::format("dataset {} has no transaction {}", rid.ToString(), text))
        .WithReason("TransactionNotFound",
                    json{{"datasetRid", rid.ToString()}, {"transactionRid", text}}.dump());
  }
  return transaction;
}

Result<ViewSelector> SelectorOf(NativeApi& api, const DatasetRid& rid, std::string_view text) {
  ViewSelector selector;
  if (text.empty()) {
    return selector;
  }
  TARN_RETURN_IF_ERROR(api.database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(selector, dataset::branching::SelectorOfName(sql, rid, text));
    return Status::Ok();
  }));
  return selector;
}

Result<std::string> BranchOf(NativeApi& api, const RequestContext& context, const DatasetRid& rid) {
  std::vector<std::string> names = {
      context.query.Find("branch").value_or(std::string(dataset::kDefaultBranch))};
  for (std::string& fallback : context.query.FindAll("fallback")) {
    names.push_back(std::move(fallback));
  }
  if (names.size() == 1) {
    return names[0];
  }
  std::string branch;
  TARN_RETURN_IF_ERROR(api.database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(branch, dataset::branching::FirstExisting(sql, rid, names));
    return Status::Ok();
  }));
  return branch;
}

Status ChangeDataset(NativeApi& api, const RequestContext& context, const DatasetRid& rid,
                     access::Role role, std::string_view action,
                     const metastore::SqlFunction& change) {
  const Status status = api.database().Write([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(RequireDataset(api, sql, context, rid, role));
    TARN_RETURN_IF_ERROR(change(sql));
    return access::AppendAudit(sql,
                               AuditOf(api, context, {.action = action, .resource = rid.ToString()},
                                       access::AuditOutcome::kDone));
  });
  if (status.code() == ErrorCode::kPermissionDenied) {
    TARN_RETURN_IF_ERROR(access::AppendAudit(
        api.database(), AuditOf(api, context, {.action = action, .resource = rid.ToString()},
                                access::AuditOutcome::kDenied)));
  }
  return status;
}

Status AuditDataset(NativeApi& api, const RequestContext& context, const std::string& resource,
                    std::string_view action) {
  return access::AppendAudit(
      api.database(),
      AuditOf(api, context, {.action = action, .resource = resource}, access::AuditOutcome::kDone));
}

json RidOrNull(const std::optional<TransactionRid>& rid) {
  return rid ? json(rid->ToString()) : json();
}

json FileToJson(const File& file) {
  return {{"path", file.path},
          {"transactionRid", file.transaction.ToString()},
          {"sizeBytes", file.size_bytes},
          {"updatedTime", FormatTimestamp(file.updated_at)},
          {"checksum", file.checksum ? json(FormatXxh3(*file.checksum)) : json()},
          {"rowCount", file.row_count ? json(*file.row_count) : json()}};
}

json TransactionToJson(const dataset::Transaction& transaction) {
  return {{"rid", transaction.rid.ToString()},
          {"transactionType", dataset::TransactionTypeName(transaction.type)},
          {"status", dataset::TransactionStateName(transaction.state)},
          {"parentRid", RidOrNull(transaction.parent)},
          {"createdTime", FormatTimestamp(transaction.created_at)},
          {"closedTime",
           transaction.closed_at ? json(FormatTimestamp(*transaction.closed_at)) : json()},
          {"createdBy", transaction.created_by},
          {"byRetention", transaction.by_retention},
          {"fileCount", transaction.file_count},
          {"removedCount", transaction.removed_count},
          {"sizeBytes", transaction.size_bytes}};
}

void AddNextPage(const std::optional<std::string>& token, json& answer) {
  if (token) {
    answer["nextPageToken"] = *token;
  }
}

Result<int> PageSizeOf(const RequestContext& context, int page_size_max) {
  TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> size, QueryInt(context, "pageSize"));
  const int64_t usual = std::min(1000, page_size_max);
  return static_cast<int>(std::clamp<int64_t>(size.value_or(usual), 0, page_size_max));
}

Result<bool> FlagMember(const json& body, const char* name, bool absent) {
  if (!body.is_object()) {
    return Status::InvalidArgument("the request body must be a JSON object");
  }
  const auto found = body.find(name);
  if (found == body.end() || found->is_null()) {
    return absent;
  }
  if (!found->is_boolean()) {
    return Status::InvalidArgument(
        fmt::format("{} must be true or false, found {}", name, found->dump()));
  }
  return found->get<bool>();
}

Result<json> OptionalBody(RequestContext& context) {
  Result<json> body = ReadJson(context);
  if (!body.ok() && body.status().reason() == "MissingPostBody") {
    return json::object();
  }
  return body;
}

}  // namespace tarn::server::native
