// The Iceberg REST catalog below /iceberg/v1: configuration, tokens, namespaces, tables, views and
// commits over several tables.
//
// A warehouse is a project: the default one has its routes right below /iceberg/v1, others have
// the project's RID as prefix. Namespaces are the folders of the project. What a caller may not
// view does not exist for it; what it may view but not change answers 403.
#pragma once

#include <chrono>
#include <string>

#include "tarn/access/authorizer.h"
#include "tarn/base/status.h"
#include "tarn/catalog/catalog.h"
#include "tarn/server/router.h"
#include "tarn/storage/s3/credential_vendor.h"

namespace tarn::server::iceberg_rest {

/// What is done about a location outside of the warehouse that a client asks for.
enum class ForeignLocations {
  kRefuse,   // 400.
  kReplace,  // The table or view gets one of the server's choice, as if none had been given.
};

struct IcebergOptions {
  std::string default_project = "default";  // query::FindProject.
  /// How long answers are kept for replays; clients send keys where this is above 0.
  std::chrono::minutes idempotency_lifetime{0};
  ForeignLocations foreign_locations = ForeignLocations::kRefuse;
  /// What engines call this catalog. Views that name no catalog are served with it, for engines
  /// that would look nowhere else; empty = as they are.
  std::string catalog_name;
};

/// All outlive the router.
struct IcebergDeps {
  catalog::Catalog& catalog;
  access::Authorizer& authorizer;
  storage::s3::CredentialVendor* vendor = nullptr;  // Null: clients have keys of their own.
};

/// Adds the routes. Errors: those of Router::Add.
Status AddIcebergRoutes(Router& router, const IcebergOptions& options, const IcebergDeps& deps);

}  // namespace tarn::server::iceberg_rest
