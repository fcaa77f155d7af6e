// Leases: which process may work on a named thing, with a fencing epoch that every commit checks.
//
// The epoch of a name grows with every change of holder and never goes back, so a holder that
// slept through its expiry is refused at its next commit, whatever its clock says.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tarn/base/clock.h"
#include "tarn/metastore/database.h"

namespace tarn::metastore {

/// A held lease. Value.
struct Lease {
  std::string name;
  std::string owner;  // Unique per process start.
  int64_t epoch = 0;  // From 1.
  Timestamp expires{};
  friend bool operator==(const Lease&, const Lease&) = default;
};

struct LeaseRequest {
  std::string name;   // Not empty.
  std::string owner;  // Not empty.
  Timestamp now{};
  std::chrono::microseconds duration{};  // > 0.
};

/// Takes the lease when it is free, expired or already the owner's; nullopt while another owner
/// holds it. Every success has a new epoch. Errors: kInvalidArgument.
Result<std::optional<Lease>> TryAcquireLease(SqlTransaction& sql, const LeaseRequest& request);

/// Extends a held lease to now + duration, also after its expiry if nobody took it meanwhile.
/// Errors: kFailedPrecondition (reason LeaseLost) when the epoch has moved on: stop working.
Result<Lease> RenewLease(SqlTransaction& sql, const Lease& lease, Timestamp now,
                         std::chrono::microseconds duration);

/// Gives the lease up; a lost one is left to its new holder.
Status ReleaseLease(SqlTransaction& sql, const Lease& lease);

/// Who holds `name` now; nullopt when free or expired.
Result<std::optional<Lease>> FindLease(SqlTransaction& sql, std::string_view name, Timestamp now);

/// Part of every commit made under a lease, in the same transaction.
/// Errors: kFailedPrecondition (reason LeaseLost) unless `epoch` is still the name's newest.
Status CheckEpoch(SqlTransaction& sql, std::string_view name, int64_t epoch);

}  // namespace tarn::metastore
