#include "tarn/dataset/changes/start_order.h"

#include <optional>

#include "tarn/dataset/rows.h"

namespace tarn::dataset::changes {

Result<int64_t> StartOrder(metastore::SqlTransaction& sql, const TransactionRid& rid) {
  std::optional<int64_t> number;
  TARN_RETURN_IF_ERROR(sql.Query("SELECT id FROM dataset_transactions WHERE uuid = ?1",
                                 {ToBlob(rid.uuid)},
                                 [&](const metastore::SqlRow& row) -> Result<metastore::RowAction> {
                                   number = row.Int(0);
                                   return metastore::RowAction::kStop;
                                 }));
  if (!number) {
    return Status::NotFound("transaction " + rid.ToString() + " does not exist");
  }
  return *number;
}

}  // namespace tarn::dataset::changes
