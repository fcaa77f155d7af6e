// What the handler files of this folder share: route tables, checks, models on the wire.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tarn/access/role.h"
#include "tarn/dataset/branch.h"
#include "tarn/dataset/file_view.h"
#include "tarn/dataset/ids.h"
#include "tarn/dataset/transaction.h"
#include "tarn/server/foundry/foundry_routes.h"
#include "tarn/server/request_context.h"

namespace tarn::server::foundry {

using FoundryHandler = Result<http::Response> (*)(const FoundryDeps&, RequestContext&);

enum class Stability {
  kStable,   // `preview` is accepted and ignored.
  kPreview,  // Only with ?preview=true.
};

struct FoundryRoute {
  const char* method;
  const char* pattern;                 // Below the prefix of its table, /api/v2 as a rule.
  std::optional<access::Scope> scope;  // Empty: any valid token.
  FoundryHandler handler;
  Stability stability = Stability::kStable;
  RouteEffect effect = RouteEffect::kByMethod;
};

// One table per handler file.
std::span<const FoundryRoute> DatasetRoutes();
std::span<const FoundryRoute> BranchRoutes();
std::span<const FoundryRoute> TransactionRoutes();
std::span<const FoundryRoute> FileRoutes();
std::span<const FoundryRoute> SchemaRoutes();
std::span<const FoundryRoute> ReadTableRoutes();
std::span<const FoundryRoute> ViewRoutes();
std::span<const FoundryRoute> SqlQueryRoutes();
std::span<const FoundryRoute> VersionOneRoutes();  // Below /api/v1.
std::span<const FoundryRoute> SpaceRoutes();
std::span<const FoundryRoute> ProjectRoutes();
std::span<const FoundryRoute> FolderRoutes();
std::span<const FoundryRoute> ResourceRoutes();
std::span<const FoundryRoute> ResourceRoleRoutes();
std::span<const FoundryRoute> UserRoutes();
std::span<const FoundryRoute> GroupRoutes();
std::span<const FoundryRoute> OrganizationRoutes();

// --- Checks
// ---------------------------------------------------------------------------------------

/// What an operation answers to somebody who may see the dataset but not do this.
struct Denial {
  std::string name;  // E.g. "CommitTransactionPermissionDenied".
  std::vector<std::pair<std::string_view, std::string>> parameters;
};

/// {datasetRid} of the path. Errors: DatasetNotFound on anything that is no dataset's identifier.
Result<dataset::DatasetRid> DatasetOf(const RequestContext& context);
/// Errors: TransactionNotFound on anything that is no transaction's identifier.
Result<dataset::TransactionRid> TransactionOf(const dataset::DatasetRid& dataset,
                                              std::string_view text);

/// Errors: DatasetNotFound without any access (as if it did not exist); `denial` with less than
/// `role`.
Status RequireDataset(const FoundryDeps& deps, metastore::SqlTransaction& sql,
                      const RequestContext& context, const dataset::DatasetRid& dataset,
                      access::Role role, const Denial& denial);
/// The same in a read of its own, with Viewer as a rule.
Status RequireViewer(const FoundryDeps& deps, const RequestContext& context,
                     const dataset::DatasetRid& dataset, const Denial& denial);

/// kInvalidArgument, reason DatasetIsView, for a union view: it has no files of its own.
Status RefuseView(metastore::SqlTransaction& sql, const dataset::DatasetRid& dataset);

/// Checks the role, runs `change` and writes the audit record, all in one SQL transaction.
/// `action` is e.g. "dataset.commit".
Status Mutate(const FoundryDeps& deps, const RequestContext& context,
              const dataset::DatasetRid& dataset, const Denial& denial, std::string_view action,
              metastore::Durability durability, const metastore::SqlFunction& change);

/// Runs `change` and writes its audit record in one SQL transaction; a denial is recorded too.
/// `resource` is read after `change`, which may make it.
Status Audited(const FoundryDeps& deps, const RequestContext& context, std::string_view action,
               const std::string& resource, metastore::Durability durability,
               const metastore::SqlFunction& change);

/// `cause`, a kPermissionDenied of the authorizer, as the operation's own refusal. A token without
/// the scope stays what it is.
Status Denied(const Denial& denial, const Status& cause);

/// kPermissionDenied with `denial` unless the caller is an administrator: Owner of the root.
Status RequireAdmin(const FoundryDeps& deps, metastore::SqlTransaction& sql,
                    const RequestContext& context, const Denial& denial);

/// `pageSize` of the query, `fallback` without, cut to `size_max`.
/// Errors: InvalidPageSize unless positive.
Result<int> PageSizeOf(const RequestContext& context, int fallback, int size_max);
std::string PageTokenOf(const RequestContext& context);

/// `branchName` of the query, or master. Errors: InvalidBranchName.
Result<std::string> BranchNameOf(const RequestContext& context);

/// The same for a size that came in another way.
Result<int> CheckedPageSize(std::optional<int64_t> asked, int fallback, int size_max);

/// One page of a list that is at hand, sorted by its keys: the entries behind the one that the
/// token names. Errors: InvalidPageToken.
Result<nlohmann::json> PageOfList(const std::vector<std::pair<std::string, nlohmann::json>>& sorted,
                                  int page_size, const std::string& page_token);
/// The key that a token of this file names; empty without. Errors: InvalidPageToken.
Result<std::string> KeyOfToken(const std::string& page_token);
std::string TokenOfKey(std::string_view key);

/// The body of a batch request: a list of 1 to `size_max` objects.
/// Errors: MissingBatchRequest, BatchRequestSizeExceededLimit, InvalidBody.
Result<nlohmann::json> ReadBatch(RequestContext& context, size_t size_max);

/// A required text member of a JSON body. Errors: kInvalidArgument "InvalidBody" naming it.
Result<std::string> RequiredText(const nlohmann::json& body, const char* member);
/// An optional one; null counts as absent.
Result<std::optional<std::string>> OptionalText(const nlohmann::json& body, const char* member);

/// A list of texts; absent or null is an empty list. Errors: InvalidBody.
Result<std::vector<std::string>> TextList(const nlohmann::json& body, const char* member);
/// An optional whole number. Errors: InvalidBody.
Result<std::optional<int64_t>> OptionalInt(const nlohmann::json& body, const char* member);

/// "InvalidParameterCombination" with what was given and what would be right.
Status InvalidParameterCombination(const std::vector<std::vector<std::string>>& valid,
                                   const std::vector<std::string>& provided);

// --- Models
// ---------------------------------------------------------------------------------------

/// A user id that clients accept: UUID text. What is none (server-made objects) is the nil UUID.
std::string UserIdOnWire(const std::string& id);

nlohmann::json ToJson(const dataset::Branch& branch);
nlohmann::json ToJson(const dataset::Transaction& transaction);
nlohmann::json ToJson(const dataset::File& file);
/// {"data":…,"nextPageToken"?}
nlohmann::json PageJson(nlohmann::json data, const std::optional<std::string>& next_page_token);

}  // namespace tarn::server::foundry
