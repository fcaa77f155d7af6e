#include "tarn/access/audit.h"

namespace tarn::access {

Status AppendAudit(metastore::SqlTransaction& sql, const AuditRecord& record) {
  return sql
      .Execute(
          "INSERT INTO access_audit (time, user_id, token_id, action, resource, outcome, "
          "details) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
          {ToMicros(record.time), record.user_id, record.token_id, record.action, record.resource,
           static_cast<int64_t>(record.outcome), record.details})
      .status();
}

Status AppendAudit(metastore::Database& database, const AuditRecord& record) {
  return database.Write([&](metastore::SqlTransaction& sql) { return AppendAudit(sql, record); },
                        metastore::Durability::kLazy);
}

Result<std::vector<AuditRecord>> ListAudit(metastore::SqlTransaction& sql, int64_t after_id,
                                           int64_t limit) {
  std::vector<AuditRecord> records;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT id, time, user_id, token_id, action, resource, outcome, details FROM access_audit "
      "WHERE id > ?1 ORDER BY id LIMIT ?2",
      {after_id, limit}, [&](const metastore::SqlRow& row) {
        records.push_back({.id = row.Int(0),
                           .time = FromMicros(row.Int(1)),
                           .user_id = std::string(row.Text(2)),
                           .token_id = std::string(row.Text(3)),
                           .action = std::string(row.Text(4)),
                           .resource = std::string(row.Text(5)),
                           .outcome = static_cast<AuditOutcome>(row.Int(6)),
                           .details = std::string(row.Text(7))});
        return Result<metastore::RowAction>(metastore::RowAction::kContinue);
      }));
  return records;
}

}  // namespace tarn::access
