#include "tarn/metastore/idempotency.h"

namespace tarn::metastore {

namespace {

constexpr size_t kKeyBytesMax = 255;

Status CheckKey(const IdempotentRequest& request) {
  if (request.key.empty() || request.key.size() > kKeyBytesMax) {
    return Status::InvalidArgument("an idempotency key has 1 to 255 bytes, found " +
                                   std::to_string(request.key.size()));
  }
  return {};
}

Status InProgress(const IdempotentRequest& request) {
  return Status::Unavailable("the first request with idempotency key \"" + request.key +
                             "\" is still running; ask again for its answer")
      .WithReason("IdempotentRequestInProgress");
}

}  // namespace

Result<std::optional<StoredResponse>> FindResponse(SqlTransaction& sql,
                                                   const IdempotentRequest& request,
                                                   Timestamp now) {
  bool found = false;
  bool answered = false;
  std::string fingerprint;
  StoredResponse response;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT fingerprint, answered, status, content_type, body FROM tarn_idempotency "
                "WHERE principal = ?1 AND request_key = ?2 AND expires > ?3",
                {request.principal, request.key, ToMicros(now)}, [&](const SqlRow& row) {
                  found = true;
                  fingerprint = row.Text(0);
                  answered = row.Int(1) != 0;
                  response = {.status = static_cast<int>(row.Int(2)),
                              .content_type = std::string(row.Text(3)),
                              .body = std::string(row.Text(4))};
                  return Result<RowAction>(RowAction::kStop);
                }));
  if (!found) {
    return std::optional<StoredResponse>();
  }
  if (fingerprint != request.fingerprint) {
    return Status::InvalidArgument("idempotency key \"" + request.key +
                                   "\" came before with another request; use a new key")
        .WithReason("IdempotencyKeyReused");
  }
  if (!answered) {
    return InProgress(request);
  }
  return std::optional<StoredResponse>(std::move(response));
}

Status ClaimKey(SqlTransaction& sql, const IdempotentRequest& request, Timestamp now,
                Timestamp deadline) {
  TARN_RETURN_IF_ERROR(CheckKey(request));
  TARN_ASSIGN_OR_RETURN(
      const int64_t changed,
      sql.Execute("INSERT INTO tarn_idempotency (principal, request_key, fingerprint, answered, "
                  "status, content_type, body, expires) VALUES (?1, ?2, ?3, 0, 0, '', ?4, ?5) "
                  "ON CONFLICT (principal, request_key) DO UPDATE SET "
                  "fingerprint = excluded.fingerprint, answered = 0, status = 0, "
                  "content_type = '', body = excluded.body, expires = excluded.expires "
                  "WHERE tarn_idempotency.expires <= ?6",
                  {request.principal, request.key, request.fingerprint, Blob{}, ToMicros(deadline),
                   ToMicros(now)}));
  return changed == 0 ? InProgress(request) : Status();
}

Status StoreResponse(SqlTransaction& sql, const IdempotentRequest& request,
                     const StoredResponse& response, Timestamp now, Timestamp expires) {
  TARN_RETURN_IF_ERROR(CheckKey(request));
  TARN_ASSIGN_OR_RETURN(
      const int64_t changed,
      sql.Execute("INSERT INTO tarn_idempotency (principal, request_key, fingerprint, answered, "
                  "status, content_type, body, expires) VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7) "
                  "ON CONFLICT (principal, request_key) DO UPDATE SET "
                  "fingerprint = excluded.fingerprint, answered = 1, status = excluded.status, "
                  "content_type = excluded.content_type, body = excluded.body, "
                  "expires = excluded.expires "
                  "WHERE tarn_idempotency.answered = 0 OR tarn_idempotency.expires <= ?8",
                  {request.principal, request.key, request.fingerprint,
                   static_cast<int64_t>(response.status), response.content_type,
                   Blob{response.body}, ToMicros(expires), ToMicros(now)}));
  if (changed == 0) {
    return Status::AlreadyExists("idempotency key \"" + request.key + "\" has an answer already");
  }
  return {};
}

Status ReleaseClaim(SqlTransaction& sql, const IdempotentRequest& request) {
  TARN_RETURN_IF_ERROR(
      sql.Execute("DELETE FROM tarn_idempotency WHERE principal = ?1 AND request_key = ?2 "
                  "AND fingerprint = ?3 AND answered = 0",
                  {request.principal, request.key, request.fingerprint}));
  return {};
}

Result<int64_t> PurgeExpired(SqlTransaction& sql, Timestamp now, int64_t limit) {
  return sql.Execute(
      "DELETE FROM tarn_idempotency WHERE (principal, request_key) IN ("
      "SELECT principal, request_key FROM tarn_idempotency WHERE expires <= ?1 "
      "ORDER BY expires LIMIT ?2)",
      {ToMicros(now), limit});
}

}  // namespace tarn::metastore
