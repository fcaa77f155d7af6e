// Retention policies in the metastore, and which datasets they are about.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/dataset/ids.h"
#include "tarn/dataset/retention/policy.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset::retention {

struct StoredPolicy {
  int64_t id = 0;
  RetentionPolicy policy;
  Timestamp put_at{};
  std::string put_by;
};

struct PolicyChange {
  RetentionPolicy policy;
  Timestamp now{};
  std::string by;
};

/// Makes or replaces the policy of that name. Marks of a replaced one are taken off: its grace
/// begins anew.
Status PutPolicy(metastore::SqlTransaction& sql, const PolicyChange& change);
/// Takes its marks off as well. Errors: kNotFound (RetentionPolicyNotFound).
Status DeletePolicy(metastore::SqlTransaction& sql, std::string_view name);
/// By name. Errors: kCorruption when one cannot be read: nothing may be swept then.
Result<std::vector<StoredPolicy>> ListPolicies(metastore::SqlTransaction& sql);

/// Whether the policy is about the dataset, by its place in the tree and its newest commit.
Result<bool> AppliesTo(metastore::SqlTransaction& sql, const DatasetSelector& selector,
                       const DatasetRid& dataset);
/// The policies that apply to a dataset, by name. Errors: DatasetNotFound.
Result<std::vector<StoredPolicy>> PoliciesOf(metastore::SqlTransaction& sql,
                                             const DatasetRid& dataset);

}  // namespace tarn::dataset::retention
