#include "tarn/dataset/branching/branch_rules.h"

#include "tarn/dataset/errors.h"
#include "tarn/dataset/rows.h"

namespace tarn::dataset::branching {

using metastore::SqlTransaction;

Status SetProtection(SqlTransaction& sql, const DatasetRid& dataset, std::string_view branch,
                     Protection protection) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(const BranchRow found, LoadBranch(sql, row, branch));
  return StatusOf(sql.Execute("UPDATE dataset_branches SET protected = ?2 WHERE id = ?1",
                              {found.id, static_cast<int64_t>(protection)}));
}

Result<Protection> GetProtection(SqlTransaction& sql, const DatasetRid& dataset,
                                 std::string_view branch) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(const BranchRow found, LoadBranch(sql, row, branch));
  return found.is_protected ? Protection::kProtected : Protection::kNone;
}

Result<std::string> FirstExisting(SqlTransaction& sql, const DatasetRid& dataset,
                                  std::span<const std::string> names) {
  if (names.empty()) {
    return Status::InvalidArgument("a branch or a fallback branch must be named");
  }
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
  for (const std::string& name : names) {
    const Result<BranchRow> found = LoadBranch(sql, row, name);
    if (found.ok()) {
      return name;
    }
    if (found.status().code() != ErrorCode::kNotFound) {
      return found.status();
    }
  }
  return BranchNotFound(dataset, names.front());
}

}  // namespace tarn::dataset::branching
