#include "tarn/server/idempotency_keys.h"

namespace tarn::server {

namespace {

/// Whether sending the request again can only give the same answer.
bool IsFinal(int status) { return status < 500 && status != 408 && status != 425 && status != 429; }

}  // namespace

Result<std::optional<http::Response>> IdempotencyKeys::Begin(
    const metastore::IdempotentRequest& request) {
  std::optional<metastore::StoredResponse> stored;
  TARN_RETURN_IF_ERROR(database_.Write(
      [&](metastore::SqlTransaction& sql) -> Status {
        const Timestamp now = clock_.Now();
        TARN_ASSIGN_OR_RETURN(stored, metastore::FindResponse(sql, request, now));
        if (stored) {
          return Status::Ok();
        }
        return metastore::ClaimKey(sql, request, now, now + options_.running_max);
      },
      metastore::Durability::kLazy));
  if (!stored) {
    return std::optional<http::Response>();
  }
  http::Response response;
  response.status = stored->status;
  response.body = std::move(stored->body);
  if (!stored->content_type.empty()) {
    response.headers.Set("Content-Type", stored->content_type);
  }
  response.headers.Set("Idempotency-Replayed", "true");
  return std::optional<http::Response>(std::move(response));
}

Status IdempotencyKeys::Finish(const metastore::IdempotentRequest& request,
                               const http::Response& response) {
  const std::string& body = response.kept_body ? *response.kept_body : response.body;
  const bool kept =
      IsFinal(response.status) && !response.producer && body.size() <= options_.body_bytes_max;
  return database_.Write([&](metastore::SqlTransaction& sql) -> Status {
    if (!kept) {
      return metastore::ReleaseClaim(sql, request);
    }
    const Timestamp now = clock_.Now();
    const metastore::StoredResponse stored{
        .status = response.status,
        .content_type = std::string(response.headers.Find("Content-Type").value_or("")),
        .body = body};
    return metastore::StoreResponse(sql, request, stored, now, now + options_.lifetime);
  });
}

}  // namespace tarn::server
