// Migrations: which steps of the rooms' schemas a database still needs.
//
// What ran is recorded in tarn_migrations(room, version, hash). Rooms of the file that this
// program does not name are left alone; a step never changes after it was released.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tarn/metastore/database.h"

namespace tarn::metastore {

/// One row of tarn_migrations. Value.
struct AppliedMigration {
  std::string room;
  int version = 0;
  std::string hash;
  friend bool operator==(const AppliedMigration&, const AppliedMigration&) = default;
};

/// Fingerprint of a step's SQL text.
std::string HashOf(const Migration& migration);

/// Decides which of `wanted` to run, in the order given.
///
/// Errors: kInvalidArgument when the versions of a room are not 1, 2, 3 … in order;
/// kFailedPrecondition when the database has a later version of a room than `wanted`, or ran a
/// step with another text.
Result<std::vector<Migration>> PlanMigrations(const std::vector<AppliedMigration>& applied,
                                              const std::vector<Migration>& wanted);

/// What is recorded in tarn_migrations, which must be there.
Result<std::vector<AppliedMigration>> ReadAppliedMigrations(SqlTransaction& sql);

/// Runs the steps of `wanted` that `sql`'s database still needs, each by `run_script`, and records
/// them. Errors: those of PlanMigrations and of the scripts, which name the step.
Status RunMigrations(SqlTransaction& sql, const std::vector<Migration>& wanted,
                     const std::function<Status(const std::string&)>& run_script);

/// The tables of this room: leases and idempotency keys.
std::vector<Migration> Migrations();

}  // namespace tarn::metastore
