// The Iceberg REST catalog below /iceberg/v1: configuration, namespaces, tables and views, for
// clients that read.
//
// A warehouse is a project: the default one has its routes right below /iceberg/v1, others have
// the project's RID as prefix. Namespaces are the folders of the project. What a caller may not
// view does not exist for it.
#pragma once

#include <string>

#include "tarn/access/authorizer.h"
#include "tarn/base/status.h"
#include "tarn/catalog/catalog.h"
#include "tarn/server/router.h"

namespace tarn::server::iceberg_rest {

struct IcebergOptions {
  std::string default_project = "default";  // query::FindProject.
};

/// All outlive the router.
struct IcebergDeps {
  catalog::Catalog& catalog;
  access::Authorizer& authorizer;
};

/// Adds the routes. Errors: those of Router::Add.
Status AddIcebergRoutes(Router& router, const IcebergOptions& options, const IcebergDeps& deps);

}  // namespace tarn::server::iceberg_rest
