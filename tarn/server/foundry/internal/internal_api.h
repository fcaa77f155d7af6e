// What the routes share that the vendor's older tools call: the catalog, data proxy, metadata,
// schema inference, SQL server and Compass of the product that the API stands for.
//
// Names of branches stand in the path the way forms encode them: '+' is a blank. Flags come as
// "True" and "False". Failures carry the name of their service, e.g. "Catalog:BranchesNotFound".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tarn/server/foundry/foundry_api.h"

namespace tarn::server::foundry::internal {

// One table per handler file; patterns are whole.
std::span<const FoundryRoute> CatalogRoutes();
std::span<const FoundryRoute> DataRoutes();
std::span<const FoundryRoute> CompassRoutes();

/// Segment `index` (from 0) of the raw path, decoded as a form.
Result<std::string> FormSegment(const RequestContext& context, size_t index);

/// "True", "true", "False", "false"; absent is false. Errors: InvalidParameter.
Result<bool> Flag(const RequestContext& context, std::string_view name);

/// A branch or a transaction, as an older tool names the end of a view.
struct Reference {
  std::string branch{dataset::kDefaultBranch};
  std::optional<dataset::TransactionRid> transaction;
  [[nodiscard]] dataset::ViewSelector Select() const;
};
Result<Reference> ParseReference(const std::string& text);

/// A failure under the name that `service` ("Catalog", "DataProxy") gives it.
Status NamedBy(std::string_view service, const Status& failure);

/// The full form of a schema, with the members that the tools look for.
std::string FullSchema(const dataset::DatasetSchema& schema);

}  // namespace tarn::server::foundry::internal
