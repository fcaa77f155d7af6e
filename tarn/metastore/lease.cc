#include "tarn/metastore/lease.h"

namespace tarn::metastore {

namespace {

Status LeaseLost(std::string_view name, int64_t epoch, const std::string& found) {
  return Status::FailedPrecondition("lease " + std::string(name) + " of epoch " +
                                    std::to_string(epoch) + " is lost: found " + found)
      .WithReason("LeaseLost");
}

Result<std::optional<Lease>> ReadLease(SqlTransaction& sql, std::string_view name) {
  std::optional<Lease> lease;
  TARN_RETURN_IF_ERROR(sql.Query("SELECT owner, epoch, expires FROM tarn_leases WHERE name = ?1",
                                 {std::string(name)}, [&](const SqlRow& row) {
                                   lease = Lease{.name = std::string(name),
                                                 .owner = std::string(row.Text(0)),
                                                 .epoch = row.Int(1),
                                                 .expires = FromMicros(row.Int(2))};
                                   return Result<RowAction>(RowAction::kStop);
                                 }));
  return lease;
}

}  // namespace

Result<std::optional<Lease>> TryAcquireLease(SqlTransaction& sql, const LeaseRequest& request) {
  if (request.name.empty() || request.owner.empty() || request.duration.count() <= 0) {
    return Status::InvalidArgument("a lease needs a name, an owner and a duration above zero: \"" +
                                   request.name + "\", \"" + request.owner + "\"");
  }
  // One statement decides, so that two servers cannot both win.
  TARN_ASSIGN_OR_RETURN(
      const int64_t changed,
      sql.Execute("INSERT INTO tarn_leases (name, owner, epoch, expires) VALUES (?1, ?2, 1, ?3) "
                  "ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, "
                  "epoch = tarn_leases.epoch + 1, expires = excluded.expires "
                  "WHERE tarn_leases.owner = excluded.owner OR tarn_leases.expires <= ?4",
                  {request.name, request.owner, ToMicros(request.now + request.duration),
                   ToMicros(request.now)}));
  if (changed == 0) {
    return std::optional<Lease>();
  }
  return ReadLease(sql, request.name);
}

Result<Lease> RenewLease(SqlTransaction& sql, const Lease& lease, Timestamp now,
                         std::chrono::microseconds duration) {
  TARN_RETURN_IF_ERROR(CheckEpoch(sql, lease.name, lease.epoch));
  Lease renewed = lease;
  renewed.expires = now + duration;
  TARN_RETURN_IF_ERROR(
      sql.Execute("UPDATE tarn_leases SET expires = ?3 WHERE name = ?1 AND epoch = ?2",
                  {lease.name, lease.epoch, ToMicros(renewed.expires)}));
  return renewed;
}

Status ReleaseLease(SqlTransaction& sql, const Lease& lease) {
  // The epoch moves on here too: what was still on its way under the old one is refused.
  TARN_RETURN_IF_ERROR(
      sql.Execute("UPDATE tarn_leases SET owner = '', epoch = epoch + 1, expires = 0 "
                  "WHERE name = ?1 AND epoch = ?2",
                  {lease.name, lease.epoch}));
  return {};
}

Result<std::optional<Lease>> FindLease(SqlTransaction& sql, std::string_view name, Timestamp now) {
  TARN_ASSIGN_OR_RETURN(std::optional<Lease> lease, ReadLease(sql, name));
  if (lease.has_value() && (lease->owner.empty() || lease->expires <= now)) {
    lease.reset();
  }
  return lease;
}

Status CheckEpoch(SqlTransaction& sql, std::string_view name, int64_t epoch) {
  TARN_ASSIGN_OR_RETURN(const std::optional<Lease> lease, ReadLease(sql, name));
  if (!lease.has_value()) {
    return LeaseLost(name, epoch, "no such lease");
  }
  if (lease->epoch != epoch) {
    return LeaseLost(name, epoch,
                     "epoch " + std::to_string(lease->epoch) +
                         (lease->owner.empty() ? ", released" : ", held by " + lease->owner));
  }
  return {};
}

}  // namespace tarn::metastore
