// tarn's own routes below /tarn/v1: SQL, resources, tables and views, users and tokens, pipelines
// and their tasks. docs/native_routes.md describes them; GET /tarn/v1/openapi.json lists them.
#pragma once

#include <memory>

#include "tarn/base/status.h"
#include "tarn/query/run_sql.h"
#include "tarn/server/router.h"
#include "tarn/task/control.h"

namespace tarn::server::native {

/// All outlive the router.
struct NativeDeps {
  query::QueryDeps query;
  task::Control& control;
};

/// Adds all routes. Errors: those of Router::Add.
Status AddNativeRoutes(Router& router, const NativeDeps& deps);

}  // namespace tarn::server::native
