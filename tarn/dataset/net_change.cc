#include "tarn/dataset/net_change.h"

#include <algorithm>
#include <utility>

#include "tarn/dataset/rows.h"

namespace tarn::dataset {

using metastore::SqlTransaction;

bool SameContent(const std::optional<File>& a, const std::optional<File>& b) {
  if (a.has_value() != b.has_value()) {
    return false;
  }
  // Objects are written once: the same place with the same version is the same content.
  return !a || (a->location == b->location && a->etag == b->etag);
}

Result<std::optional<NetChange>> FindNetChange(SqlTransaction& sql, const Lineage& changes,
                                               const Lineage& base,
                                               const ChangedPaths::Change& change) {
  TARN_ASSIGN_OR_RETURN(std::optional<LocatedFile> newest, FindNewest(sql, changes, change.path));
  if (!newest || newest->line != change.line || newest->ordinal != change.ordinal) {
    return std::optional<NetChange>();
  }
  NetChange net;
  net.by = newest->file.transaction;
  TARN_ASSIGN_OR_RETURN(net.difference.before, FindFile(sql, base, change.path));
  if (!newest->removed()) {
    net.difference.after = std::move(newest->file);
  }
  if (SameContent(net.difference.before, net.difference.after)) {
    return std::optional<NetChange>();
  }
  return std::optional<NetChange>(std::move(net));
}

std::string TokenBytes(const std::optional<TransactionRid>& rid) {
  return rid ? ToBlob(rid->uuid).bytes : std::string();
}

std::optional<TransactionRid> RidOfTokenBytes(std::string_view bytes) {
  if (bytes.size() != 16) {
    return std::nullopt;
  }
  TransactionRid rid;
  std::copy(bytes.begin(), bytes.end(), rid.uuid.bytes.begin());
  return rid;
}

}  // namespace tarn::dataset
