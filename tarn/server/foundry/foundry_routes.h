// The Foundry-compatible API: /api/v2, the parts of /api/v1 that old clients use, and the token
// endpoint below /multipass.
//
// The vendor's own unmodified client libraries work against these routes; names of errors, their
// parameters, statuses and paging are theirs.
#pragma once

#include <memory>

#include "tarn/access/authorizer.h"
#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/base/uuid.h"
#include "tarn/catalog/catalog.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/metastore/database.h"
#include "tarn/server/router.h"
#include "tarn/storage/object_store.h"

namespace tarn::engine {
class Engine;
}
namespace tarn::query {
class MemoryWatch;
}

namespace tarn::server::foundry {

class SqlQueries;

/// All outlive the router.
struct FoundryDeps {
  metastore::Database& database;
  access::Authorizer& authorizer;
  dataset::DatasetStore& datasets;
  storage::ObjectStore& store;  // Of the datasets' managed files.
  UuidGenerator& uuids;
  const Clock& clock;
  catalog::Catalog& catalog;
  engine::Engine& engine;
  query::MemoryWatch* memory_watch = nullptr;  // Of statements; may be null.
  std::shared_ptr<SqlQueries> queries{};       // Made by AddFoundryRoutes.
};

/// Adds all routes. Errors: those of Router::Add.
Status AddFoundryRoutes(Router& router, const FoundryDeps& deps);

}  // namespace tarn::server::foundry
