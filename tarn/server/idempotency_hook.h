// Replays of mutating calls: a client that lost an answer sends the request again with the same
// Idempotency-Key and gets the first answer instead of a second effect.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tarn/base/status.h"

namespace tarn::server {

/// An answer as it was given. Value.
struct StoredReply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  friend bool operator==(const StoredReply&, const StoredReply&) = default;
};

/// Identifies one use of a key: keys of different users never meet.
struct IdempotencyClaim {
  std::string user_id;
  std::string key;
  std::string fingerprint;  // Of method, target and body; another request under the key differs.
};

/// Remembers keys. Threads: any.
class IdempotencyHook {
 public:
  virtual ~IdempotencyHook() = default;
  /// Claims the key. Empty = run the request, then Finish or Abandon. Errors: kConflict while the
  /// first request still runs; kInvalidArgument "IdempotencyKeyReused" on another fingerprint.
  virtual Result<std::optional<StoredReply>> Begin(const IdempotencyClaim& claim) = 0;
  virtual Status Finish(const IdempotencyClaim& claim, const StoredReply& reply) = 0;
  /// The request had no lasting outcome (5xx, 429): the next one runs.
  virtual Status Abandon(const IdempotencyClaim& claim) = 0;
};

}  // namespace tarn::server
