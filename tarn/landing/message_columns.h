// MessageColumns: the header columns of rows that came as messages, filled row by row.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"

namespace tarn::landing {

/// A message as its landed row shows it. Views: nothing is copied before it is a row.
struct LandedMessage {
  std::string_view topic;
  int32_t partition = 0;
  bool has_key = false;
  bool has_value = false;  // False: a tombstone.
  bool has_time = false;
  int64_t offset = 0;
  int64_t time_micros = 0;
  std::string_view key;
  std::string_view value;
  std::string_view headers;  // JSON; empty: it has none.
};

/// One owner thread. Memory: the batch.
class MessageColumns {
 public:
  MessageColumns();
  ~MessageColumns();
  MessageColumns(const MessageColumns&) = delete;
  MessageColumns& operator=(const MessageColumns&) = delete;

  void Append(const LandedMessage& message);
  [[nodiscard]] int64_t row_count() const;
  [[nodiscard]] int64_t size_bytes() const;

  /// The columns in their order, by name; a new batch begins.
  std::vector<std::pair<const char*, std::shared_ptr<arrow::Array>>> Take(Timestamp landed);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tarn::landing
