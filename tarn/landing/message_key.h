// MessageKey: what the key of a message gives to its row: the key of a change event, or columns.
#pragma once

#include <string>
#include <string_view>

#include "tarn/format/json_tape.h"
#include "tarn/format/record_error.h"
#include "tarn/landing/landing_spec.h"
#include "tarn/landing/message_columns.h"

namespace tarn::landing {

/// One owner thread: it keeps buffers. Values are valid until the next call.
class MessageKey {
 public:
  explicit MessageKey(KeyColumns columns) : columns_(std::move(columns)) {}

  [[nodiscard]] bool gives_columns() const { return !columns_.names.empty(); }
  /// The key as JSON; false when it is none.
  format::JsonValue Parse(std::string_view key);
  /// Makes joined(): the members of `value` but for those of the key, then the columns of the key;
  /// without a key they are missing. Errors: kBadJson, kBadUtf8 for a key that cannot be read so.
  format::RecordFailure Join(const LandedMessage& message, format::JsonValue value);
  [[nodiscard]] format::JsonValue joined() const { return joined_.root(); }

 private:
  format::RecordFailure AddKey(std::string_view key);
  void AddMember(std::string_view name, std::string_view value_json);

  const KeyColumns columns_;
  format::JsonTape tape_;
  format::JsonTape joined_;
  std::string text_;  // Of joined().
};

}  // namespace tarn::landing
