#include "tarn/dataset/retention/policy_store.h"

#include <algorithm>
#include <utility>

#include "tarn/base/json_text.h"
#include "tarn/dataset/rows.h"
#include "tarn/tree/lookup.h"

namespace tarn::dataset::retention {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

namespace {

Status DropMarks(SqlTransaction& sql, std::string_view name) {
  return StatusOf(
      sql.Execute("DELETE FROM dataset_retention_marks WHERE policy_id IN (SELECT id FROM "
                  "dataset_retention_policies WHERE name = ?1)",
                  {std::string(name)}));
}

bool HasAny(const std::vector<std::string>& wanted, const std::vector<Rid>& chain) {
  return std::any_of(chain.begin(), chain.end(), [&](const Rid& rid) {
    return std::find(wanted.begin(), wanted.end(), rid.ToString()) != wanted.end();
  });
}

// Whether the newest commit of some branch of the dataset names inputs.
Result<bool> IsDerived(SqlTransaction& sql, const DatasetRid& dataset) {
  TARN_ASSIGN_OR_RETURN(
      const std::optional<int64_t> found,
      FindInt(sql,
              "SELECT t.id FROM dataset_datasets d JOIN dataset_branches b ON b.dataset_id = d.id "
              "JOIN dataset_transactions t ON t.id = b.head_id WHERE d.uuid = ?1 AND t.provenance "
              "IS NOT NULL LIMIT 1",
              {ToBlob(dataset.uuid)}));
  return found.has_value();
}

Result<bool> IsInTrash(SqlTransaction& sql, const DatasetRid& dataset) {
  TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> node, tree::FindNode(sql, dataset.ToRid()));
  if (!node) {
    return false;
  }
  TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, dataset.ToRid()));
  return located.trash_status != tree::TrashStatus::kNotTrashed;
}

}  // namespace

Status PutPolicy(SqlTransaction& sql, const PolicyChange& change) {
  // What could not be read back would stop every later run.
  TARN_RETURN_IF_ERROR(ParsePolicy(FormatPolicy(change.policy)));
  TARN_RETURN_IF_ERROR(DropMarks(sql, change.policy.name));
  return StatusOf(sql.Execute(
      "INSERT INTO dataset_retention_policies (name, json, put_at, put_by) VALUES (?1, ?2, ?3, ?4) "
      "ON CONFLICT (name) DO UPDATE SET json = ?2, put_at = ?3, put_by = ?4",
      {change.policy.name, FormatPolicy(change.policy), ToMicros(change.now), change.by}));
}

Status DeletePolicy(SqlTransaction& sql, std::string_view name) {
  TARN_RETURN_IF_ERROR(DropMarks(sql, name));
  TARN_ASSIGN_OR_RETURN(
      const int64_t deleted,
      sql.Execute("DELETE FROM dataset_retention_policies WHERE name = ?1", {std::string(name)}));
  if (deleted == 0) {
    return Status::NotFound("there is no retention policy " + JsonString(name))
        .WithReason("RetentionPolicyNotFound", JsonObject({{"name", name}}));
  }
  return Status::Ok();
}

Result<std::vector<StoredPolicy>> ListPolicies(SqlTransaction& sql) {
  std::vector<StoredPolicy> policies;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT id, name, json, put_at, put_by FROM dataset_retention_policies ORDER BY name", {},
      [&](const SqlRow& row) -> Result<RowAction> {
        Result<RetentionPolicy> policy = ParsePolicy(row.Text(2));
        if (!policy.ok()) {
          return Status::Corruption("the stored retention policy " + JsonString(row.Text(1)) +
                                    " cannot be read: " + policy.status().message() +
                                    "; put it again or delete it");
        }
        policies.push_back({.id = row.Int(0),
                            .policy = *std::move(policy),
                            .put_at = FromMicros(row.Int(3)),
                            .put_by = std::string(row.Text(4))});
        return RowAction::kContinue;
      }));
  return policies;
}

Result<bool> AppliesTo(SqlTransaction& sql, const DatasetSelector& selector,
                       const DatasetRid& dataset) {
  bool named = selector.all || std::find(selector.datasets.begin(), selector.datasets.end(),
                                         dataset.ToString()) != selector.datasets.end();
  if (!named && !(selector.folders.empty() && selector.projects.empty())) {
    TARN_ASSIGN_OR_RETURN(const std::vector<Rid> chain, tree::AncestorChain(sql, dataset.ToRid()));
    named = HasAny(selector.folders, chain) || HasAny(selector.projects, chain);
  }
  if (!named) {
    return false;
  }
  if (selector.derived) {
    TARN_ASSIGN_OR_RETURN(const bool derived, IsDerived(sql, dataset));
    if (derived != *selector.derived) {
      return false;
    }
  }
  if (selector.in_trash) {
    TARN_ASSIGN_OR_RETURN(const bool in_trash, IsInTrash(sql, dataset));
    return in_trash == *selector.in_trash;
  }
  return true;
}

Result<std::vector<StoredPolicy>> PoliciesOf(SqlTransaction& sql, const DatasetRid& dataset) {
  TARN_RETURN_IF_ERROR(LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(std::vector<StoredPolicy> all, ListPolicies(sql));
  std::vector<StoredPolicy> fitting;
  for (StoredPolicy& stored : all) {
    TARN_ASSIGN_OR_RETURN(const bool applies, AppliesTo(sql, stored.policy.datasets, dataset));
    if (applies) {
      fitting.push_back(std::move(stored));
    }
  }
  return fitting;
}

}  // namespace tarn::dataset::retention
