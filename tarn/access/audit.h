// Audit log: who changed what and who was refused. Rows are only ever added.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/metastore/database.h"

namespace tarn::access {

enum class AuditOutcome : uint8_t { kDone = 0, kDenied = 1, kFailed = 2 };

/// One event. Value.
struct AuditRecord {
  int64_t id = 0;  // Grows with time; given by the log.
  Timestamp time{};
  std::string user_id;  // Empty when nobody was authenticated.
  std::string token_id;
  std::string action;    // E.g. "dataset.commit".
  std::string resource;  // RID or name.
  AuditOutcome outcome = AuditOutcome::kDone;
  std::string details;  // JSON object text or empty.
  friend bool operator==(const AuditRecord&, const AuditRecord&) = default;
};

/// Adds a record in the transaction of the change it tells of; `id` is ignored.
Status AppendAudit(metastore::SqlTransaction& sql, const AuditRecord& record);
/// Adds a record of its own, for denials met while reading. Lazy: does not wait for fsync.
Status AppendAudit(metastore::Database& database, const AuditRecord& record);
/// Records with id > `after_id`, oldest first.
Result<std::vector<AuditRecord>> ListAudit(metastore::SqlTransaction& sql, int64_t after_id,
                                           int64_t limit);

}  // namespace tarn::access
