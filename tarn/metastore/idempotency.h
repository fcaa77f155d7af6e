// Idempotency keys: a request that is sent again gets the first one's answer.
//
// A handler whose whole change is one SQL transaction calls FindResponse and StoreResponse inside
// it. One that works longer (uploads) claims the key first, so that a copy sent meanwhile is told
// to wait; a claim whose process died ends at its deadline, and the copy then runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tarn/base/clock.h"
#include "tarn/metastore/database.h"

namespace tarn::metastore {

/// What makes two requests the same. Value.
struct IdempotentRequest {
  std::string principal;    // Keys of different principals never meet.
  std::string key;          // The header as sent, 1..255 bytes.
  std::string fingerprint;  // Digest of method, path and body.
};

/// An answer as it went over the wire. Value.
struct StoredResponse {
  int status = 0;
  std::string content_type;
  std::string body;
  friend bool operator==(const StoredResponse&, const StoredResponse&) = default;
};

/// The answer already given to this request; nullopt when it has not been answered (or the answer
/// is older than its lifetime).
/// Errors: kInvalidArgument (reason IdempotencyKeyReused) when the key came with another request;
/// kUnavailable (reason IdempotentRequestInProgress) while a claim on it runs.
Result<std::optional<StoredResponse>> FindResponse(SqlTransaction& sql,
                                                   const IdempotentRequest& request, Timestamp now);

/// Marks the request as running until `deadline`. Call after FindResponse in one transaction.
/// Errors: kInvalidArgument on an empty or too long key; kUnavailable while another claim runs.
Status ClaimKey(SqlTransaction& sql, const IdempotentRequest& request, Timestamp now,
                Timestamp deadline);

/// Keeps the answer until `expires`, in place of a claim, of an expired answer or of nothing.
/// Errors: kInvalidArgument on the key; kAlreadyExists when a living answer is there.
Status StoreResponse(SqlTransaction& sql, const IdempotentRequest& request,
                     const StoredResponse& response, Timestamp now, Timestamp expires);

/// Frees the key after a failure that changed nothing. Answers stay.
Status ReleaseClaim(SqlTransaction& sql, const IdempotentRequest& request);

/// Removes up to `limit` expired answers and claims; returns how many.
Result<int64_t> PurgeExpired(SqlTransaction& sql, Timestamp now, int64_t limit);

}  // namespace tarn::metastore
