// How the columns of a query come out as Arrow. Only for this room's .cc files.
//
// As they are: BOOLEAN, integers, FLOAT, DOUBLE, DECIMAL -> decimal128, VARCHAR and JSON -> utf8,
// BLOB -> binary, DATE -> date32, TIME -> time64(us), TIMESTAMP -> timestamp(us), TIMESTAMPTZ ->
// timestamp(us, UTC), TIMESTAMP_NS -> timestamp(ns), LIST -> list<element>, ARRAY ->
// fixed_size_list<element>, STRUCT, MAP.
// Changed: HUGEINT -> decimal128(38, 0), refused beyond 38 digits; UUID -> arrow.uuid; ENUM and
// INTERVAL -> utf8; TIMESTAMP_S and TIMESTAMP_MS -> timestamp(us); TIME_NS -> time64(ns);
// an untyped NULL -> int32. Refused: UHUGEINT, TIMETZ, BIT, UNION, VARIANT, BIGNUM.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/engine/duck_handles.h"

namespace tarn::engine {

/// What is done to one value on its way out.
enum class ResultStep { kKeep, kUuid, kHuge, kDecode, kMicros, kInterval, kNested };

struct ResultNode {
  ResultStep step = ResultStep::kKeep;
  std::shared_ptr<arrow::DataType> type{};  // Of the result.
  std::vector<ResultNode> children{};       // For kNested.
};

/// Converts the chunks of one result. One owner thread.
class ResultTypes {
 public:
  /// Errors: kInvalidArgument naming a column whose type is refused.
  static Result<ResultTypes> Make(ArrowOptionsHandle options, std::vector<TypeHandle> types,
                                  const std::vector<std::string>& names);
  [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }
  /// Errors: kInvalidArgument on a HUGEINT beyond 38 digits or a timestamp beyond microseconds.
  Result<std::shared_ptr<arrow::RecordBatch>> Convert(duckdb_data_chunk chunk) const;

 private:
  ArrowOptionsHandle options_;
  std::shared_ptr<arrow::Schema> raw_schema_;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<ResultNode> nodes_;
  bool changed_ = false;  // Some value or type differs from what the engine gives.
};

}  // namespace tarn::engine
