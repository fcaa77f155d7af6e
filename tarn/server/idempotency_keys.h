// Replays of mutating calls: a client that lost an answer sends the request again with the same
// Idempotency-Key and gets the first answer instead of a second effect.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/metastore/database.h"
#include "tarn/metastore/idempotency.h"
#include "tarn/server/http/message.h"

namespace tarn::server {

struct IdempotencyOptions {
  std::chrono::minutes running_max{60};  // A claim of a dead process is free after this.
  std::chrono::minutes lifetime{24 * 60};
  uint64_t body_bytes_max = 1 << 20;  // Larger answers are not kept.
};

/// Threads: any. Dependencies outlive it.
class IdempotencyKeys {
 public:
  IdempotencyKeys(IdempotencyOptions options, metastore::Database& database, const Clock& clock)
      : options_(options), database_(database), clock_(clock) {}

  /// The answer already given, or empty after claiming the key: run the request, then Finish.
  /// Errors: kInvalidArgument "IdempotencyKeyReused" when the key came with another request;
  /// kUnavailable "IdempotentRequestInProgress".
  Result<std::optional<http::Response>> Begin(const metastore::IdempotentRequest& request);
  /// Keeps an answer that is final; frees the key after one that is worth a retry (429, 5xx) or
  /// that cannot be kept (streamed, too large).
  Status Finish(const metastore::IdempotentRequest& request, const http::Response& response);

 private:
  const IdempotencyOptions options_;
  metastore::Database& database_;
  const Clock& clock_;
};

}  // namespace tarn::server
