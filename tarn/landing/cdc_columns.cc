#include "tarn/landing/cdc_columns.h"

#include <arrow/api.h>

#include "tarn/base/check.h"
#include "tarn/format/column_node.h"

namespace tarn::landing {

namespace {

using format::ColumnKind;
using format::ColumnNode;

void PushText(ColumnNode& node, std::string_view text) {
  if (text.empty()) {
    node.PushNull();
  } else {
    node.PushBytes(text);
  }
}

}  // namespace

struct CdcColumns::State {
  State() {
    for (ColumnNode* text : {&table, &operation, &position, &transaction, &before}) {
      text->Adopt(ColumnKind::kString);
    }
    time.Adopt(ColumnKind::kInstant);
  }

  ColumnNode table;
  ColumnNode operation;
  ColumnNode position;
  ColumnNode time;
  ColumnNode transaction;
  ColumnNode before;  // Shorter than the others: NULLs at the end are left out.
};

CdcColumns::CdcColumns() : state_(std::make_unique<State>()) {}
CdcColumns::~CdcColumns() = default;

void CdcColumns::Append(const DebeziumEvent& event, std::string_view before) {
  State& state = *state_;
  if (!before.empty()) {
    state.before.FillNulls(state.table.length);
    state.before.PushBytes(before);
  }
  PushText(state.table, event.table);
  state.operation.PushBytes({&event.operation, 1});
  PushText(state.position, event.position);
  if (event.commit_time_micros) {
    state.time.PushValue(*event.commit_time_micros);
  } else {
    state.time.PushNull();
  }
  PushText(state.transaction, event.transaction);
}

int64_t CdcColumns::row_count() const { return state_->table.length; }

int64_t CdcColumns::size_bytes() const {
  const State& state = *state_;
  int64_t bytes = 0;
  for (const ColumnNode* node : {&state.table, &state.operation, &state.position, &state.time,
                                 &state.transaction, &state.before}) {
    bytes += format::SizeBytes(*node);
  }
  return bytes;
}

std::vector<std::pair<const char*, std::shared_ptr<arrow::Array>>> CdcColumns::Take() {
  State& state = *state_;
  const int64_t rows = row_count();
  std::vector<std::pair<const char*, std::shared_ptr<arrow::Array>>> columns;
  const std::pair<const char*, ColumnNode*> nodes[] = {
      {"hdr__cdc_table", &state.table},
      {"hdr__cdc_operation", &state.operation},
      {"hdr__cdc_position", &state.position},
      {"hdr__cdc_timestamp", &state.time},
      {"hdr__cdc_transaction", &state.transaction}};
  for (const auto& [name, node] : nodes) {
    columns.emplace_back(name, format::TakeArray(*node, rows));
  }
  std::shared_ptr<arrow::Array> images;
  if (state.before.length == 0) {
    auto nulls = arrow::MakeArrayOfNull(arrow::utf8(), rows);
    TARN_CHECK(nulls.ok());
    images = std::move(nulls).ValueUnsafe();
  } else {
    images = format::TakeArray(state.before, rows);
  }
  columns.emplace_back("hdr__cdc_before", std::move(images));
  return columns;
}

}  // namespace tarn::landing
