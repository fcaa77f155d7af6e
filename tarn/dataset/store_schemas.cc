// DatasetStore: schemas on views.
//
// A put belongs to one branch and one transaction. A branch sees its own puts, and those of the
// branches it came from as they were when it was made; the one at the deepest transaction wins, at
// one transaction the nearer branch's, then the newest.
#include <algorithm>
#include <charconv>
#include <utility>

#include "tarn/base/json_text.h"
#include "tarn/dataset/ancestry.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/dataset/errors.h"
#include "tarn/dataset/in_sql.h"
#include "tarn/dataset/rows.h"
#include "tarn/dataset/view_lineage.h"

namespace tarn::dataset {

using metastore::Durability;
using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

namespace {

// Puts of branch `branch_id` with ids up to `newest` are visible.
struct Visible {
  int64_t branch_id = 0;
  int64_t newest = 0;
};

Result<std::vector<Visible>> VisibleFrom(const BranchRow& branch) {
  std::vector<Visible> visible = {
      {.branch_id = branch.id, .newest = std::numeric_limits<int64_t>::max()}};
  const char* at = branch.ancestry.data();
  const char* const end = at + branch.ancestry.size();
  while (at != end) {
    Visible next;
    const auto [colon, first] = std::from_chars(at, end, next.branch_id);
    if (first != std::errc{} || colon == end || *colon != ':') {
      return Status::Corruption("damaged ancestry of branch " + JsonString(branch.name));
    }
    const auto [comma, second] = std::from_chars(colon + 1, end, next.newest);
    if (second != std::errc{} || (comma != end && *comma != ',')) {
      return Status::Corruption("damaged ancestry of branch " + JsonString(branch.name));
    }
    visible.push_back(next);
    at = comma == end ? end : comma + 1;
  }
  return visible;
}

// A put, without its text.
struct Put {
  int64_t id = 0;
  TransactionRow transaction;
};

// The newest put of one branch on `end` or an ancestor of it that is not above `depth_min`.
//
// Transaction numbers grow along every path, so the candidates come deepest first; those that are
// on no path to `end` (left behind by a reset) are passed over.
Result<std::optional<Put>> NewestPut(SqlTransaction& sql, const Visible& visible,
                                     const TransactionRow& end, int64_t depth_min) {
  int64_t through = end.id;
  while (true) {
    int64_t id = 0;
    int64_t transaction_id = 0;
    TARN_RETURN_IF_ERROR(sql.Query(
        "SELECT id, transaction_id FROM dataset_schemas WHERE branch_id = ?1 AND "
        "transaction_id <= ?2 AND id <= ?3 ORDER BY transaction_id DESC, id DESC LIMIT 1",
        {visible.branch_id, through, visible.newest}, [&](const SqlRow& row) -> Result<RowAction> {
          id = row.Int(0);
          transaction_id = row.Int(1);
          return RowAction::kStop;
        }));
    if (id == 0) {
      return std::optional<Put>();
    }
    TARN_ASSIGN_OR_RETURN(TransactionRow transaction, LoadTransactionById(sql, transaction_id));
    TARN_ASSIGN_OR_RETURN(const bool on_path, IsAncestor(sql, transaction, end));
    if (on_path) {
      if (transaction.depth < depth_min) {
        return std::optional<Put>();
      }
      return std::optional<Put>(Put{.id = id, .transaction = std::move(transaction)});
    }
    through = transaction_id - 1;
  }
}

Result<std::optional<Put>> FindPut(SqlTransaction& sql, const std::vector<Visible>& all,
                                   const TransactionRow& end, int64_t depth_min) {
  std::optional<Put> best;
  for (const Visible& visible : all) {
    TARN_ASSIGN_OR_RETURN(std::optional<Put> put, NewestPut(sql, visible, end, depth_min));
    if (put && (!best || put->transaction.depth > best->transaction.depth)) {
      best = std::move(put);
    }
  }
  return best;
}

Result<StoredSchema> ReadStored(SqlTransaction& sql, int64_t id, std::string branch,
                                const TransactionRid& end) {
  StoredSchema stored;
  stored.branch = std::move(branch);
  stored.end_transaction = end;
  std::string json;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT version, json, put_at, put_by FROM dataset_schemas WHERE id = ?1", {id},
                [&](const SqlRow& row) -> Result<RowAction> {
                  stored.version = ReadUuid(row, 0);
                  json = row.Text(1);
                  stored.put_at = FromMicros(row.Int(2));
                  stored.put_by = row.Text(3);
                  return RowAction::kStop;
                }));
  Result<DatasetSchema> schema = ParseDatasetSchema(json);
  if (!schema.ok()) {
    return Status::Corruption("schema number " + std::to_string(id) +
                              " in the metastore is damaged: " + schema.status().message());
  }
  stored.schema = *std::move(schema);
  return stored;
}

Status DatasetViewNotFound(const DatasetRid& dataset, std::string_view branch) {
  return Status::NotFound("branch " + JsonString(branch) + " of dataset " + dataset.ToString() +
                          " has no transaction yet, so there is no view to carry a schema")
      .WithReason("DatasetViewNotFound",
                  JsonObject({{"datasetRid", dataset.ToString()}, {"branch", branch}}));
}

Status SchemaNotFound(const DatasetRid& dataset, std::string_view branch,
                      const TransactionRid& end) {
  return Status::NotFound("the view of branch " + JsonString(branch) + " of dataset " +
                          dataset.ToString() + " at " + end.ToString() + " has no schema")
      .WithReason("SchemaNotFound", JsonObject({{"datasetRid", dataset.ToString()},
                                                {"branchName", branch},
                                                {"transactionRid", end.ToString()}}));
}

// The transaction a schema is put on or read at.
Result<TransactionRow> EndFor(SqlTransaction& sql, const DatasetRow& dataset,
                              const BranchRow& branch, const std::optional<TransactionRid>& end) {
  if (end) {
    TARN_ASSIGN_OR_RETURN(TransactionRow row, LoadTransaction(sql, dataset, *end));
    if (row.state != TransactionState::kCommitted) {
      return TransactionNotCommitted(dataset.dataset.rid, *end, row.state);
    }
    return row;
  }
  if (!branch.head_id) {
    return DatasetViewNotFound(dataset.dataset.rid, branch.name);
  }
  return LoadTransactionById(sql, *branch.head_id);
}

}  // namespace

Result<StoredSchema> DatasetStore::PutSchema(SqlTransaction& sql, const DatasetRid& dataset,
                                             std::string_view schema_json,
                                             const PutSchemaOptions& options) {
  TARN_ASSIGN_OR_RETURN(DatasetSchema schema, ParseDatasetSchema(schema_json));
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(const BranchRow branch, LoadBranch(sql, row, options.branch));
  if (!branch.head_id) {
    return DatasetViewNotFound(dataset, options.branch);
  }
  TARN_ASSIGN_OR_RETURN(const TransactionRow end, EndFor(sql, row, branch, options.end));
  TARN_ASSIGN_OR_RETURN(const TransactionRow head, LoadTransactionById(sql, *branch.head_id));
  TARN_ASSIGN_OR_RETURN(const bool on_branch, IsAncestor(sql, end, head));
  if (!on_branch) {
    return TransactionNotFound(dataset, end.rid).WithContext("branch " + options.branch);
  }
  StoredSchema stored{.branch = options.branch,
                      .end_transaction = end.rid,
                      .version = uuids_.NextV4(),
                      .schema = std::move(schema),
                      .put_at = clock_.Now(),
                      .put_by = options.by};
  TARN_RETURN_IF_ERROR(
      sql.Execute("INSERT INTO dataset_schemas (dataset_id, branch_id, transaction_id, version, "
                  "json, put_at, put_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                  {row.id, branch.id, end.id, ToBlob(stored.version), stored.schema.json,
                   ToMicros(stored.put_at), stored.put_by}));
  return stored;
}

Result<StoredSchema> DatasetStore::PutSchema(const DatasetRid& dataset,
                                             std::string_view schema_json,
                                             const PutSchemaOptions& options) {
  return InWrite(database_, Durability::kDurable, [&](SqlTransaction& sql) {
    return PutSchema(sql, dataset, schema_json, options);
  });
}

Result<StoredSchema> DatasetStore::GetSchema(SqlTransaction& sql, const DatasetRid& dataset,
                                             const GetSchemaOptions& options) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(const BranchRow branch, LoadBranch(sql, row, options.branch));
  TARN_ASSIGN_OR_RETURN(const TransactionRow end, EndFor(sql, row, branch, options.end));
  if (options.version) {
    TARN_ASSIGN_OR_RETURN(
        const std::optional<int64_t> id,
        FindInt(sql, "SELECT id FROM dataset_schemas WHERE version = ?1 AND dataset_id = ?2",
                {ToBlob(*options.version), row.id}));
    if (!id) {
      return SchemaNotFound(dataset, options.branch, end.rid);
    }
    return ReadStored(sql, *id, options.branch, end.rid);
  }
  TARN_ASSIGN_OR_RETURN(const std::vector<Visible> visible, VisibleFrom(branch));
  const int64_t depth_min =
      row.dataset.settings.inherit_schema_on_snapshot ? 0 : end.view_start_depth;
  TARN_ASSIGN_OR_RETURN(const std::optional<Put> put, FindPut(sql, visible, end, depth_min));
  if (!put) {
    return SchemaNotFound(dataset, options.branch, end.rid);
  }
  return ReadStored(sql, put->id, options.branch, end.rid);
}

Result<StoredSchema> DatasetStore::GetSchema(const DatasetRid& dataset,
                                             const GetSchemaOptions& options) {
  return InRead(database_, [&](SqlTransaction& sql) { return GetSchema(sql, dataset, options); });
}

}  // namespace tarn::dataset
