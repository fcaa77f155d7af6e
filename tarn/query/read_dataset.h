// ReadDataset: the rows of one dataset, without SQL of people.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "tarn/query/dataset_relation.h"
#include "tarn/query/run_sql.h"
#include "tarn/query/union_view.h"

namespace tarn::query {

struct ReadRequest {
  DatasetRelation relation;          // `name` is chosen here.
  std::vector<std::string> columns;  // Exactly these, in this order; empty = all.
  std::optional<int64_t> row_limit;
  MemoryWatch* memory_watch = nullptr;  // As in QueryDeps.
  std::stop_token stop{};  // Requested before the first row is there: kCancelled. Later:
                           // RunningQuery::Interrupt.
};

/// Starts a read: files in path order, rows in the order of the file; of a union view in any order.
/// The right to read the dataset itself is checked above. Errors: those of MakeRows;
/// kInvalidArgument, reason ColumnNotFound (parameter column), for a column that is not there under
/// exactly this name; kResourceExhausted when the watch stopped it.
Result<std::unique_ptr<RunningQuery>> ReadDataset(const ReadRequest& request,
                                                  const access::Principal& principal,
                                                  engine::Engine& engine, const RowsDeps& deps);

}  // namespace tarn::query
