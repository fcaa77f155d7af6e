#include "tarn/metastore/migrations.h"

#include <map>

#include "tarn/base/hash.h"

namespace tarn::metastore {

std::string HashOf(const Migration& migration) { return EncodeHex(Sha256(migration.sql)); }

Result<std::vector<Migration>> PlanMigrations(const std::vector<AppliedMigration>& applied,
                                              const std::vector<Migration>& wanted) {
  std::map<std::string, std::map<int, std::string>> done;  // Room -> version -> hash.
  for (const AppliedMigration& step : applied) {
    done[step.room][step.version] = step.hash;
  }
  std::map<std::string, int> newest;
  std::vector<Migration> plan;
  for (const Migration& step : wanted) {
    const std::string name = "migration " + std::to_string(step.version) + " of room " + step.room;
    int& version = newest[step.room];
    if (step.room.empty() || step.version != version + 1) {
      return Status::InvalidArgument(name + " follows version " + std::to_string(version) +
                                     "; versions count 1, 2, 3 …");
    }
    version = step.version;
    const std::map<int, std::string>& versions = done[step.room];
    const auto found = versions.find(step.version);
    if (found == versions.end()) {
      plan.push_back(step);
    } else if (found->second != HashOf(step)) {
      return Status::FailedPrecondition(name +
                                        " ran with another text than this program has; "
                                        "use the program that wrote the metastore");
    }
  }
  for (const auto& [room, version] : newest) {
    const auto& versions = done[room];
    if (!versions.empty() && versions.rbegin()->first > version) {
      return Status::FailedPrecondition(
          "the metastore was written by a newer version: room " + room + " is at " +
          std::to_string(versions.rbegin()->first) + ", this program knows " +
          std::to_string(version) + "; use the newer program");
    }
  }
  return plan;
}

Result<std::vector<AppliedMigration>> ReadAppliedMigrations(SqlTransaction& sql) {
  std::vector<AppliedMigration> applied;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT room, version, hash FROM tarn_migrations", {}, [&](const SqlRow& row) {
        applied.push_back({.room = std::string(row.Text(0)),
                           .version = static_cast<int>(row.Int(1)),
                           .hash = std::string(row.Text(2))});
        return Result<RowAction>(RowAction::kContinue);
      }));
  return applied;
}

Status RunMigrations(SqlTransaction& sql, const std::vector<Migration>& wanted,
                     const std::function<Status(const std::string&)>& run_script) {
  TARN_ASSIGN_OR_RETURN(const std::vector<AppliedMigration> applied, ReadAppliedMigrations(sql));
  TARN_ASSIGN_OR_RETURN(const std::vector<Migration> plan, PlanMigrations(applied, wanted));
  for (const Migration& step : plan) {
    TARN_RETURN_IF_ERROR(run_script(step.sql).WithContext(
        "migration " + std::to_string(step.version) + " of room " + step.room));
    TARN_RETURN_IF_ERROR(
        sql.Execute("INSERT INTO tarn_migrations (room, version, hash) VALUES (?1, ?2, ?3)",
                    {step.room, static_cast<int64_t>(step.version), HashOf(step)})
            .status());
  }
  return Status::Ok();
}

std::vector<Migration> Migrations() {
  return {{.room = "metastore", .version = 1, .sql = R"(
CREATE TABLE tarn_leases (
  name TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  expires BIGINT NOT NULL
);
CREATE TABLE tarn_idempotency (
  principal TEXT NOT NULL,
  request_key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  answered INTEGER NOT NULL,
  status INTEGER NOT NULL,
  content_type TEXT NOT NULL,
  body BYTEA NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (principal, request_key)
);
CREATE INDEX tarn_idempotency_expires ON tarn_idempotency (expires);
)"}};
}

}  // namespace tarn::metastore
