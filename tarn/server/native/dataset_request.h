// What the dataset handlers of this folder share: who may, which view is meant, files as JSON, and
// the audit record of what was changed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tarn/access/role.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/server/native/native_api.h"

namespace tarn::server::native {

// One table per handler file; DatasetRoutes() gives them all.
std::span<const NativeRoute> DatasetBranchRoutes();
std::span<const NativeRoute> DatasetImportRoutes();
std::span<const NativeRoute> DatasetViewRoutes();
std::span<const NativeRoute> DatasetRetentionRoutes();
std::span<const NativeRoute> DatasetSchemaRoutes();

/// The dataset of the path, on which the caller has `role`. Errors: DatasetNotFound, also where
/// the caller may not know of it; kPermissionDenied.
Result<dataset::DatasetRid> DatasetOf(NativeApi& api, const RequestContext& context,
                                      access::Role role);
/// The same inside the SQL transaction of a change.
Status RequireDataset(NativeApi& api, metastore::SqlTransaction& sql, const RequestContext& context,
                      const dataset::DatasetRid& rid, access::Role role);
/// The transaction of the path. Errors: TransactionNotFound.
Result<dataset::TransactionRid> TransactionOf(const RequestContext& context,
                                              const dataset::DatasetRid& rid);

/// A branch, a tag or a transaction RID; empty = the default branch. Errors: BranchNotFound.
Result<dataset::ViewSelector> SelectorOf(NativeApi& api, const dataset::DatasetRid& rid,
                                         std::string_view text);
/// Query parameter `branch`, or the first of it and every `fallback` that exists.
Result<std::string> BranchOf(NativeApi& api, const RequestContext& context,
                             const dataset::DatasetRid& rid);

/// Checks `role` on the dataset, runs `change` and writes its audit record, all in one durable
/// write; a denial is recorded too.
Status ChangeDataset(NativeApi& api, const RequestContext& context, const dataset::DatasetRid& rid,
                     access::Role role, std::string_view action,
                     const metastore::SqlFunction& change);
/// The audit record alone, for changes that are several writes.
Status AuditDataset(NativeApi& api, const RequestContext& context, const std::string& resource,
                    std::string_view action);

nlohmann::json RidOrNull(const std::optional<dataset::TransactionRid>& rid);
nlohmann::json FileToJson(const dataset::File& file);
nlohmann::json TransactionToJson(const dataset::Transaction& transaction);
void AddNextPage(const std::optional<std::string>& token, nlohmann::json& answer);
/// Query parameter `pageSize`, at most `page_size_max`.
Result<int> PageSizeOf(const RequestContext& context, int page_size_max = 50'000);
/// A member true or false of a JSON body; `absent` where there is none.
Result<bool> FlagMember(const nlohmann::json& body, const char* name, bool absent);
/// The body, or an empty object where there is none.
Result<nlohmann::json> OptionalBody(RequestContext& context);

}  // namespace tarn::server::native
