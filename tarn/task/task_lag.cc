#include "tarn/task/task_lag.h"

#include <nlohmann/json.hpp>

#include "tarn/lakehouse/table_inputs.h"
#include "tarn/task/pipeline_place.h"
#include "tarn/tree/lookup.h"

namespace tarn::task {

namespace {

using metastore::SqlTransaction;

constexpr int kTransactionsMax = 10'000;

// UUID of the internal table; empty before it is made.
Result<std::string> FindTable(SqlTransaction& sql, const Rid& project,
                              const lakehouse::TableSpec& table) {
  TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> folder,
                        tree::FindChild(sql, project, table.internal_schema));
  if (!folder) {
    return std::string();
  }
  TARN_ASSIGN_OR_RETURN(const std::optional<catalog::CatalogObject> object,
                        catalog::FindObject(sql, folder->rid, table.internal_name()));
  return object ? object->uuid : std::string();
}

// Rows of a landing transaction, as its record says.
int64_t RowsOf(const dataset::Transaction& transaction) {
  const nlohmann::json record = nlohmann::json::parse(transaction.record_json.value_or("{}"),
                                                      nullptr, /*allow_exceptions=*/false);
  const auto rows = record.is_object() ? record.find("rows") : record.end();
  return rows != record.end() && rows->is_number_integer() ? rows->get<int64_t>() : 0;
}

Status AddInput(SqlTransaction& sql, const ControlDeps& deps, const dataset::DatasetRid& input,
                const std::string& table_uuid, TransformLag& lag) {
  std::optional<std::string> consumed;
  if (!table_uuid.empty()) {
    TARN_ASSIGN_OR_RETURN(consumed, lakehouse::FindInput(sql, table_uuid, input.ToString()));
  }
  int visited = 0;
  return deps.datasets.VisitCommitted(
      sql, input, "master",
      [&](const dataset::Transaction& transaction) -> Result<metastore::RowAction> {
        if (transaction.rid.ToString() == consumed || ++visited > kTransactionsMax) {
          return metastore::RowAction::kStop;
        }
        lag.rows += RowsOf(transaction);
        lag.bytes += transaction.size_bytes;
        const Timestamp landed = transaction.closed_at.value_or(transaction.created_at);
        lag.since = lag.since ? std::min(*lag.since, landed) : landed;
        return metastore::RowAction::kContinue;
      });
}

}  // namespace

Result<TransformLag> ReadTransformLag(SqlTransaction& sql, const ControlDeps& deps,
                                      const pipeline::PipelineSpec& spec,
                                      const pipeline::TransformSpec& transform) {
  TransformLag lag;
  TARN_ASSIGN_OR_RETURN(const std::optional<Rid> project, FindProject(sql, spec.project));
  if (!project) {
    return lag;
  }
  TARN_ASSIGN_OR_RETURN(const std::string table, FindTable(sql, *project, transform.table));
  for (const std::string& from : transform.from) {
    const std::optional<pipeline::LandingInput> landing = spec.FindInput(from);
    if (!landing) {
      continue;
    }
    TARN_ASSIGN_OR_RETURN(const std::optional<dataset::DatasetRid> input,
                          FindLandingDataset(sql, *project, landing->landing));
    if (input) {
      TARN_RETURN_IF_ERROR(AddInput(sql, deps, *input, table, lag));
    }
  }
  return lag;
}

}  // namespace tarn::task
