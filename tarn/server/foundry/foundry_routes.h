// The Foundry-compatible API v2 over datasets: /api/v2/datasets and everything below it.
//
// The vendor's own unmodified client libraries work against these routes; names of errors, their
// parameters, statuses and paging are theirs.
#pragma once

#include "tarn/access/authorizer.h"
#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/base/uuid.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/metastore/database.h"
#include "tarn/server/router.h"
#include "tarn/storage/object_store.h"

namespace tarn::server::foundry {

/// All outlive the router.
struct FoundryDeps {
  metastore::Database& database;
  access::Authorizer& authorizer;
  dataset::DatasetStore& datasets;
  storage::ObjectStore& store;  // Of the datasets' managed files.
  UuidGenerator& uuids;
  const Clock& clock;
};

/// Adds all routes. Errors: those of Router::Add.
Status AddFoundryRoutes(Router& router, const FoundryDeps& deps);

}  // namespace tarn::server::foundry
