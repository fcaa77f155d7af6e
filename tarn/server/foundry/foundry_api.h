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
  const char* pattern;  // Below /api/v2.
  access::Scope scope;
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

/// Checks the role, runs `change` and writes the audit record, all in one SQL transaction.
/// `action` is e.g. "dataset.commit".
Status Mutate(const FoundryDeps& deps, const RequestContext& context,
              const dataset::DatasetRid& dataset, const Denial& denial, std::string_view action,
              metastore::Durability durability, const metastore::SqlFunction& change);

/// `pageSize` of the query, `fallback` without, cut to `size_max`.
/// Errors: InvalidPageSize unless positive.
Result<int> PageSizeOf(const RequestContext& context, int fallback, int size_max);
std::string PageTokenOf(const RequestContext& context);

/// `branchName` of the query, or master. Errors: InvalidBranchName.
Result<std::string> BranchNameOf(const RequestContext& context);

/// A required text member of a JSON body. Errors: kInvalidArgument "InvalidBody" naming it.
Result<std::string> RequiredText(const nlohmann::json& body, const char* member);
/// An optional one; null counts as absent.
Result<std::optional<std::string>> OptionalText(const nlohmann::json& body, const char* member);

/// "InvalidParameterCombination" with what was given and what would be right.
Status InvalidParameterCombination(const std::vector<std::vector<std::string>>& valid,
                                   const std::vector<std::string>& provided);

// --- Models
// ---------------------------------------------------------------------------------------

nlohmann::json ToJson(const dataset::Branch& branch);
nlohmann::json ToJson(const dataset::Transaction& transaction);
nlohmann::json ToJson(const dataset::File& file);
/// {"data":…,"nextPageToken"?}
nlohmann::json PageJson(nlohmann::json data, const std::optional<std::string>& next_page_token);

}  // namespace tarn::server::foundry
