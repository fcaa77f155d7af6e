// Source: where a landing task gets its payload from. Bytes and where they stood, nothing more:
// parsing, envelopes and cutting are landing's, so every source has the same small shape.
//
// Implementation: files/files_source.h. The interface leaves room for streams and databases: each
// adds its alternative to SourcePosition. All implementations run source_contract.h. Messages of
// Kafka are too many to be copied one by one: kafka/kafka_source.h keeps the same promises with
// batches of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/memory_budget.h"
#include "tarn/base/status.h"
#include "tarn/source/files/file_position.h"
#include "tarn/source/kafka/kafka_position.h"

namespace tarn::source {

/// Where a payload stood in its source. Each alternative knows how to resume after it.
using SourcePosition = std::variant<files::FilePosition, files::FilesListed, kafka::KafkaPosition>;

/// One message, or one piece of a file.
struct SourceItem {
  std::string payload;
  SourcePosition position;  // Of the first byte of the payload.
  Timestamp event_time{};   // When the source says it was made; of a file its modification time.
  friend bool operator==(const SourceItem&, const SourceItem&) = default;
};

/// What one call of Next may return at most. A single item may be larger only where the source
/// cannot cut it (a message); files are cut.
struct BatchLimits {
  uint64_t bytes_max = 8ULL << 20;
  size_t items_max = 10'000;
  std::chrono::milliseconds wait_max{500};  // For something new, and for memory.
};

/// Movable value. Keep `memory` as long as the payloads.
struct SourceBatch {
  std::vector<SourceItem> items;  // In the order of the source.
  bool caught_up = false;         // Nothing more was there when it was made.
  Reservation memory;             // What the payloads hold of the budget.
};

/// One owner thread; Cancel from any thread.
///
/// A source starts from the positions that it is given when it is opened and repeats nothing within
/// its life. It stores nothing and confirms nothing: whoever commits the payload stores its
/// positions, and opens the source anew from them after a failure.
class Source {
 public:
  virtual ~Source() = default;

  /// The next payloads, at most `limits`. An empty batch that is not caught up means: paused,
  /// because the memory budget has nothing left; call again.
  /// Errors: kCancelled after Cancel; kUnavailable and other retryable ones leave the source as it
  /// was, call again after a while; others end it.
  virtual Result<SourceBatch> Next(const BatchLimits& limits) = 0;

  /// Ends a running Next and all later ones with kCancelled, soon.
  virtual void Cancel() = 0;
};

}  // namespace tarn::source
