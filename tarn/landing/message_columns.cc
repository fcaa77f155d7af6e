#include "tarn/landing/message_columns.h"

#include <string>

#include <arrow/api.h>

#include "tarn/base/check.h"
#include "tarn/format/base64.h"
#include "tarn/format/column_node.h"

namespace tarn::landing {

namespace {

using format::ColumnKind;
using format::ColumnNode;

std::shared_ptr<arrow::Array> SameTime(Timestamp time, int64_t rows) {
  auto array = arrow::MakeArrayFromScalar(
      arrow::TimestampScalar(ToMicros(time), arrow::timestamp(arrow::TimeUnit::MICRO, "UTC")),
      rows);
  TARN_CHECK(array.ok());
  return std::move(array).ValueUnsafe();
}

}  // namespace

struct MessageColumns::State {
  State() {
    partition.Adopt(ColumnKind::kLong);
    topic.Adopt(ColumnKind::kString);
    offset.Adopt(ColumnKind::kLong);
    key.Adopt(ColumnKind::kString);
    headers.Adopt(ColumnKind::kString);
    tombstone.Adopt(ColumnKind::kBoolean);
    time.Adopt(ColumnKind::kInstant);
  }

  ColumnNode partition;
  ColumnNode topic;
  ColumnNode offset;
  ColumnNode key;  // Shorter than the others, as headers: NULLs at the end are left out.
  ColumnNode headers;
  ColumnNode tombstone;
  ColumnNode time;
};

MessageColumns::MessageColumns() : state_(std::make_unique<State>()) {}
MessageColumns::~MessageColumns() = default;

void MessageColumns::Append(const LandedMessage& message) {
  State& state = *state_;
  const int64_t row = state.offset.length;
  state.partition.PushValue(int64_t{message.partition});
  state.topic.PushBytes(message.topic);
  state.offset.PushValue(message.offset);
  if (message.has_key) {
    state.key.FillNulls(row);
    state.key.PushBytes(format::EncodeBase64(message.key));
  }
  if (!message.headers.empty()) {
    state.headers.FillNulls(row);
    state.headers.PushBytes(message.headers);
  }
  state.tombstone.PushValue(static_cast<uint8_t>(message.has_value ? 0 : 1));
  if (message.has_time) {
    state.time.PushValue(message.time_micros);
  } else {
    state.time.PushNull();
  }
}

int64_t MessageColumns::row_count() const { return state_->offset.length; }

int64_t MessageColumns::size_bytes() const {
  const State& state = *state_;
  int64_t bytes = 0;
  for (const ColumnNode* node : {&state.partition, &state.topic, &state.offset, &state.key,
                                 &state.headers, &state.tombstone, &state.time}) {
    bytes += format::SizeBytes(*node);
  }
  return bytes;
}

std::vector<std::pair<const char*, std::shared_ptr<arrow::Array>>> MessageColumns::Take(
    Timestamp landed) {
  State& state = *state_;
  const int64_t rows = row_count();
  std::vector<std::pair<const char*, std::shared_ptr<arrow::Array>>> columns;
  const std::pair<const char*, ColumnNode*> nodes[] = {
      {"hdr__kafka_partition", &state.partition}, {"hdr__kafka_topic", &state.topic},
      {"hdr__kafka_offset", &state.offset},       {"hdr__kafka_key", &state.key},
      {"hdr__kafka_headers", &state.headers},     {"hdr__kafka_tombstone", &state.tombstone}};
  for (const auto& [name, node] : nodes) {
    node->FillNulls(rows);
    columns.emplace_back(name, format::TakeArray(*node, rows));
  }
  columns.emplace_back("hdr__landed_timestamp", SameTime(landed, rows));
  columns.emplace_back("hdr__event_timestamp", format::TakeArray(state.time, rows));
  return columns;
}

}  // namespace tarn::landing
