// The failures of this room that have a name on the wire, with the parameters clients expect.
#pragma once

#include <string_view>

#include "tarn/base/status.h"
#include "tarn/dataset/ids.h"
#include "tarn/dataset/transaction.h"

namespace tarn::dataset {

Status DatasetNotFound(const DatasetRid& dataset);
Status BranchNotFound(const DatasetRid& dataset, std::string_view branch);
Status TransactionNotFound(const DatasetRid& dataset, const TransactionRid& rid);
Status TransactionNotOpen(const DatasetRid& dataset, const TransactionRid& rid,
                          TransactionState state);
Status TransactionNotCommitted(const DatasetRid& dataset, const TransactionRid& rid,
                               TransactionState state);
/// Retention took the data of a committed transaction: its view can no longer be read.
Status TransactionSwept(const DatasetRid& dataset, const TransactionRid& rid);
Status DefaultBranchStays(const DatasetRid& dataset, std::string_view branch);
Status BranchIsProtected(const DatasetRid& dataset, std::string_view branch,
                         std::string_view attempt);
Status InvalidTransactionType(const DatasetRid& dataset, const TransactionRid& rid,
                              TransactionType type, std::string_view fault);
Status OpenTransactionAlreadyExists(const DatasetRid& dataset, std::string_view branch);
Status InvalidPageToken(std::string_view token);
/// Fails with InvalidPageSize unless 1 <= page_size <= page_size_max.
Status CheckPageSize(int page_size, int page_size_max);

}  // namespace tarn::dataset
