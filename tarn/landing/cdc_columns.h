// CdcColumns: the hdr__cdc_* columns of the rows of a batch, filled event by event.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/landing/debezium_envelope.h"

namespace tarn::landing {

/// One owner thread. Memory: the batch.
class CdcColumns {
 public:
  CdcColumns();
  ~CdcColumns();
  CdcColumns(const CdcColumns&) = delete;
  CdcColumns& operator=(const CdcColumns&) = delete;

  /// Appends what an event adds to its row. Empty texts become NULL.
  void Append(const DebeziumEvent& event, std::string_view before);
  [[nodiscard]] int64_t row_count() const;
  [[nodiscard]] int64_t size_bytes() const;

  /// The columns in their order, by name; a new batch begins.
  std::vector<std::pair<const char*, std::shared_ptr<arrow::Array>>> Take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tarn::landing
