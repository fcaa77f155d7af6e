// Tags: names that stay on one committed transaction and keep its view from retention.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/dataset/file_view.h"
#include "tarn/dataset/ids.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset::branching {

/// Value.
struct Tag {
  std::string name;
  TransactionRid transaction;
  Timestamp created_at{};
  std::string created_by;
  friend bool operator==(const Tag&, const Tag&) = default;
};

struct CreateTagRequest {
  DatasetRid dataset;
  std::string name;  // By the rules of branch names.
  TransactionRid transaction;
  Timestamp now{};
  std::string by;
};

/// Errors: DatasetNotFound, TransactionNotFound; InvalidBranchName; TransactionNotCommitted;
/// TransactionDataRemovedByRetention; kAlreadyExists TagAlreadyExists: a tag never moves.
Result<Tag> CreateTag(metastore::SqlTransaction& sql, const CreateTagRequest& request);
/// Errors: kNotFound TagNotFound.
Result<Tag> GetTag(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                   std::string_view name);
/// The view that a name stands for: a transaction's RID, else a branch, else a tag.
/// Errors: BranchNotFound.
Result<ViewSelector> SelectorOfName(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                                    std::string_view name);
Status DeleteTag(metastore::SqlTransaction& sql, const DatasetRid& dataset, std::string_view name);

struct TagPage {
  std::vector<Tag> tags;  // By bytes of the name.
  std::optional<std::string> next_page_token;
};
/// Errors: InvalidPageSize (1–1000), InvalidPageToken.
Result<TagPage> ListTags(metastore::SqlTransaction& sql, const DatasetRid& dataset, int page_size,
                         std::string_view page_token);

}  // namespace tarn::dataset::branching
