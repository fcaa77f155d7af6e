// DeadLetter: a record or row that could not be taken.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"

namespace tarn::landing {

struct DeadLetter {
  std::string raw;       // Bytes of the record; of a row that a transform rejected, its JSON.
  std::string source;    // File, topic, shard or table.
  std::string position;  // Row in the file, offset, sequence number.
  std::string error_code;
  std::string error_text;
  std::string rejected_by;  // Task.
};

/// Columns raw, source, position, error_code, error_text, rejected_by, hdr__landed_timestamp.
Result<std::shared_ptr<arrow::RecordBatch>> MakeDeadLetters(const std::vector<DeadLetter>& letters,
                                                            Timestamp landed);

}  // namespace tarn::landing
