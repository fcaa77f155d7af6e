// Net changes: what the transactions between two states did to each path, once. Private to the
// room.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tarn/dataset/file_scan.h"
#include "tarn/dataset/increment.h"
#include "tarn/dataset/lineage.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset {

/// The difference a change made, seen from `base` over all of `changes`; nothing where the path
/// changed again later in `changes`, or where it is as it was.
struct NetChange {
  FileDifference difference;
  TransactionRid by;  // The transaction that decided it.
};
Result<std::optional<NetChange>> FindNetChange(metastore::SqlTransaction& sql,
                                               const Lineage& changes, const Lineage& base,
                                               const ChangedPaths::Change& change);

/// Whether two states of one path are the same bytes.
bool SameContent(const std::optional<File>& a, const std::optional<File>& b);

/// 16 bytes, or none for nothing: how page tokens hold transactions.
std::string TokenBytes(const std::optional<TransactionRid>& rid);
/// Nothing unless `bytes` are 16.
std::optional<TransactionRid> RidOfTokenBytes(std::string_view bytes);

}  // namespace tarn::dataset
