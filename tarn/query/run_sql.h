// RunSql: one SELECT of a person over tables, views and datasets.
//
// The statement is checked, its names are resolved and permitted, every table is pinned to one
// snapshot and every dataset to one file view, and only then the engine runs it: what commits
// meanwhile is not seen.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <arrow/type_fwd.h>

#include "tarn/access/authorizer.h"
#include "tarn/access/principal.h"
#include "tarn/base/status.h"
#include "tarn/catalog/catalog.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/engine/engine.h"

namespace tarn::query {

class MemoryWatch;

struct QueryRequest {
  std::string sql;
  std::string project = "default";  // For names of one or two parts; FindProject.
  std::string branch = "master";    // Or tag. Of tables a ref, "master" being main.
  std::string at{};                 // ParsePointInTime, or the name of a branch or tag instead of
                                    // `branch`; a table's own AT clause goes before.
};

/// What queries need; all outlive every query. The engine must be allowed to read the warehouse.
struct QueryDeps {
  access::Authorizer& authorizer;
  catalog::Catalog& catalog;
  dataset::DatasetStore& datasets;
  engine::Engine& engine;
  MemoryWatch* memory_watch = nullptr;  // Null = the engine's own limit is the only one.
};

/// The rows of one statement, in batches. One owner thread, but for Interrupt.
class RunningQuery {
 public:
  virtual ~RunningQuery() = default;
  /// Known before the first row.
  [[nodiscard]] virtual const std::shared_ptr<arrow::Schema>& schema() const = 0;
  /// The next batch; null at the end. Errors: as engine::Session::Query.
  virtual Result<std::shared_ptr<arrow::RecordBatch>> Next() = 0;
  /// Ends it with kCancelled. Any thread.
  virtual void Interrupt() = 0;
};

/// Starts the statement. Errors: kInvalidArgument for what the text gets wrong; kPermissionDenied;
/// kNotFound for names; kUnimplemented for files that cannot be read; kResourceExhausted when the
/// watch stopped it; those of the store.
Result<std::unique_ptr<RunningQuery>> RunSql(const QueryRequest& request,
                                             const access::Principal& principal,
                                             const QueryDeps& deps);

}  // namespace tarn::query
