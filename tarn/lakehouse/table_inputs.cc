#include "tarn/lakehouse/table_inputs.h"

namespace tarn::lakehouse {

namespace {

constexpr std::string_view kSchema = R"sql(
CREATE TABLE lakehouse_input (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  table_uuid TEXT NOT NULL,
  snapshot_id INTEGER NOT NULL,
  dataset TEXT NOT NULL,
  transaction_rid TEXT NOT NULL
);
CREATE INDEX lakehouse_input_by_table ON lakehouse_input (table_uuid, dataset, id);
)sql";

}  // namespace

std::vector<metastore::Migration> Migrations() { return {{"lakehouse", 1, std::string(kSchema)}}; }

Status WriteInputs(metastore::SqlTransaction& sql, std::string_view table_uuid, int64_t snapshot_id,
                   const std::vector<ConsumedInput>& inputs) {
  for (const ConsumedInput& input : inputs) {
    TARN_RETURN_IF_ERROR(sql.Execute(
        "INSERT INTO lakehouse_input (table_uuid, snapshot_id, dataset, transaction_rid) VALUES "
        "(?1, ?2, ?3, ?4)",
        {std::string(table_uuid), snapshot_id, input.dataset, input.transaction}));
    const int64_t newest = sql.LastInsertId();
    TARN_RETURN_IF_ERROR(
        sql.Execute("DELETE FROM lakehouse_input WHERE table_uuid = ?1 AND dataset = ?2 AND id < "
                    "?3",
                    {std::string(table_uuid), input.dataset, newest - kInputRowsKept}));
  }
  return Status::Ok();
}

Result<std::optional<std::string>> FindInput(metastore::SqlTransaction& sql,
                                             std::string_view table_uuid,
                                             std::string_view dataset) {
  std::optional<std::string> transaction;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT transaction_rid FROM lakehouse_input WHERE table_uuid = ?1 AND dataset = ?2 ORDER BY "
      "id DESC LIMIT 1",
      {std::string(table_uuid), std::string(dataset)},
      [&](const metastore::SqlRow& row) -> Result<metastore::RowAction> {
        transaction = std::string(row.Text(0));
        return metastore::RowAction::kStop;
      }));
  return transaction;
}

}  // namespace tarn::lakehouse
