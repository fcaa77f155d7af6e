#include "tarn/transform/outcome.h"

#include <algorithm>

#include <arrow/api.h>
#include <arrow/compute/api.h>

#include "tarn/base/arrow_status.h"
#include "tarn/engine/quoting.h"
#include "tarn/engine/row_writer.h"
#include "tarn/transform/canonical_text.h"

namespace tarn::transform {
namespace {

/// Indexes of the result's columns that good rows keep.
std::vector<int> KeptColumns(const CompiledMapping& mapping) {
  const ResultLayout layout = mapping.layout();
  std::vector<int> kept;
  for (int i = 0; i < layout.mapped; ++i) {
    kept.push_back(i);
  }
  kept.insert(kept.end(), {layout.row(), layout.element(), layout.before(), layout.deleted(),
                           layout.event_time()});
  for (int i = layout.sequence(); i < mapping.result->num_fields(); ++i) {
    kept.push_back(i);
  }
  return kept;
}

/// Adds, per expectation, how many of the good rows have its bit.
void CountBits(const CompiledMapping& mapping, const arrow::Array& masks,
               const arrow::Array& outcomes, std::map<std::string, int64_t>& counts) {
  const auto& bits = static_cast<const arrow::Int64Array&>(masks);
  for (int64_t row = 0; row < bits.length(); ++row) {
    if (outcomes.IsValid(row)) {
      continue;
    }
    uint64_t rest = static_cast<uint64_t>(bits.Value(row));
    while (rest != 0) {
      const auto index = static_cast<size_t>(__builtin_ctzll(rest));
      rest &= rest - 1;
      if (index < mapping.spec.expect.size()) {
        ++counts[mapping.spec.expect[index].name];
      }
    }
  }
}

/// The masks of expectations that only warn or whose check was NULL; false checks with another
/// action never reach a good row.
void CountChecks(const CompiledMapping& mapping, const arrow::RecordBatch& batch,
                 OutcomeCounts& counts) {
  if (mapping.spec.expect.empty()) {
    return;
  }
  const ResultLayout layout = mapping.layout();
  const arrow::Array& outcomes = *batch.column(layout.outcome());
  CountBits(mapping, *batch.column(layout.warnings()), outcomes, counts.warnings);
  CountBits(mapping, *batch.column(layout.null_checks()), outcomes, counts.null_checks);
}

Status SortOut(const CompiledMapping& mapping, const arrow::RecordBatch& batch, MappedBatch& out) {
  const ResultLayout layout = mapping.layout();
  const auto& outcomes = static_cast<const arrow::StringArray&>(*batch.column(layout.outcome()));
  const auto& texts = static_cast<const arrow::StringArray&>(*batch.column(layout.outcome_text()));
  const auto& rows = static_cast<const arrow::Int64Array&>(*batch.column(layout.row()));
  const auto& elements = static_cast<const arrow::Int64Array&>(*batch.column(layout.element()));
  for (int64_t row = 0; row < batch.num_rows(); ++row) {
    if (outcomes.IsNull(row)) {
      continue;
    }
    const std::string_view code = outcomes.GetView(row);
    if (code == kExpectationStopped) {
      return Status::FailedPrecondition("transform " + mapping.spec.target + ": " +
                                        texts.GetString(row) + " for input row " +
                                        std::to_string(rows.Value(row)));
    }
    if (code == kExpectationDropped) {
      ++out.counts.dropped;
    } else if (code == kEmptyArray) {
      ++out.counts.empty_arrays;
    } else {
      ++out.counts.rejected;
      out.rejected.push_back({.row = rows.Value(row),
                              .element = elements.Value(row),
                              .code = std::string(code),
                              .text = texts.IsNull(row) ? "" : texts.GetString(row)});
    }
  }
  return Status::Ok();
}

/// True where the value is NULL: which rows are good.
Result<std::shared_ptr<arrow::Array>> NullMask(const arrow::Array& array) {
  arrow::BooleanBuilder builder;
  TARN_RETURN_IF_ERROR(builder.Reserve(array.length()));
  for (int64_t row = 0; row < array.length(); ++row) {
    builder.UnsafeAppend(array.IsNull(row));
  }
  TARN_ASSIGN_OR_RETURN(auto mask, builder.Finish());
  return std::shared_ptr<arrow::Array>(std::move(mask));
}

int64_t CountNullCasts(const CompiledMapping& mapping, const arrow::RecordBatch& batch) {
  if (mapping.spec.on_cast_error != OnCastError::kNull) {
    return 0;
  }
  const ResultLayout layout = mapping.layout();
  const arrow::Array& outcomes = *batch.column(layout.outcome());
  const auto& casts = static_cast<const arrow::Int64Array&>(*batch.column(layout.null_casts()));
  const auto& before = static_cast<const arrow::BooleanArray&>(*batch.column(layout.before()));
  int64_t count = 0;
  for (int64_t row = 0; row < batch.num_rows(); ++row) {
    count += outcomes.IsNull(row) && !before.Value(row) ? casts.Value(row) : 0;
  }
  return count;
}

}  // namespace

std::shared_ptr<arrow::Schema> GoodSchema(const CompiledMapping& mapping) {
  arrow::FieldVector fields;
  for (const int index : KeptColumns(mapping)) {
    const bool mapped = index < mapping.layout().mapped;
    fields.push_back(mapped ? arrow::field(mapping.columns[static_cast<size_t>(index)].name,
                                           mapping.columns[static_cast<size_t>(index)].type)
                            : mapping.result->field(index));
  }
  return arrow::schema(fields);
}

Result<MappedBatch> SplitOutcome(const CompiledMapping& mapping, const arrow::RecordBatch& batch) {
  MappedBatch out;
  const std::shared_ptr<arrow::Array> outcomes = batch.column(mapping.layout().outcome());
  std::vector<std::shared_ptr<arrow::Array>> columns;
  for (const int index : KeptColumns(mapping)) {
    columns.push_back(batch.column(index));
  }
  int64_t good = batch.num_rows();
  if (outcomes->null_count() < batch.num_rows()) {
    TARN_RETURN_IF_ERROR(SortOut(mapping, batch, out));
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::Array> mask, NullMask(*outcomes));
    for (std::shared_ptr<arrow::Array>& column : columns) {
      TARN_ASSIGN_OR_RETURN(const arrow::Datum kept, arrow::compute::Filter(column, mask));
      column = kept.make_array();
    }
    good = outcomes->null_count();
  }
  for (size_t i = 0; i < mapping.columns.size(); ++i) {
    if (mapping.columns[i].hashed) {
      TARN_ASSIGN_OR_RETURN(columns[i], HashColumn(*columns[i]));
    }
  }
  const auto& before =
      static_cast<const arrow::BooleanArray&>(*columns[mapping.columns.size() + 2]);
  out.counts.good = good - before.true_count();
  out.counts.null_casts = CountNullCasts(mapping, batch);
  CountChecks(mapping, batch, out.counts);
  out.good = arrow::RecordBatch::Make(GoodSchema(mapping), good, std::move(columns));
  return out;
}

Status ReadLanded(engine::Session& session, std::vector<RejectedRow>& rows) {
  if (rows.empty()) {
    return Status::Ok();
  }
  std::vector<int64_t> wanted;
  for (const RejectedRow& row : rows) {
    wanted.push_back(row.row);
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  const std::string sql = "SELECT tarn_row, * EXCLUDE (tarn_row) FROM " +
                          engine::QuoteName(kInputRelation) +
                          " WHERE tarn_row IN (SELECT unnest($1::BIGINT[]))";
  TARN_ASSIGN_OR_RETURN(const auto stream, session.Query(sql, {.parameters = {wanted}}));
  std::map<int64_t, std::string> found;
  while (true) {
    TARN_ASSIGN_OR_RETURN(const auto batch, stream->Next());
    if (batch == nullptr) {
      break;
    }
    const auto& numbers = static_cast<const arrow::Int64Array&>(*batch->column(0));
    for (int64_t row = 0; row < batch->num_rows(); ++row) {
      std::string json;
      for (int i = 1; i < batch->num_columns(); ++i) {
        json += i > 1 ? "," : "{";
        engine::AppendJsonString(batch->schema()->field(i)->name(), json);
        json += ':';
        TARN_RETURN_IF_ERROR(engine::AppendJsonValue(*batch->column(i), row, json));
      }
      found[numbers.Value(row)] = (json.empty() ? "{" : json) + "}";
    }
  }
  for (RejectedRow& row : rows) {
    const auto entry = found.find(row.row);
    if (entry == found.end()) {
      return Status::Internal("input row " + std::to_string(row.row) +
                              " of a rejected row is gone from tarn_input");
    }
    row.landed_json = entry->second;
  }
  return Status::Ok();
}

void InputRowCount::Add(const CompiledMapping& mapping, const arrow::RecordBatch& batch) {
  const auto& rows = static_cast<const arrow::Int64Array&>(*batch.column(mapping.layout().row()));
  for (int64_t row = 0; row < rows.length(); ++row) {
    if (rows.Value(row) != newest_) {
      newest_ = rows.Value(row);
      ++rows_;
    }
  }
}

void AddCounts(const OutcomeCounts& more, OutcomeCounts& total) {
  total.good += more.good;
  total.rejected += more.rejected;
  total.dropped += more.dropped;
  total.empty_arrays += more.empty_arrays;
  total.null_casts += more.null_casts;
  for (const auto& [name, count] : more.warnings) {
    total.warnings[name] += count;
  }
  for (const auto& [name, count] : more.null_checks) {
    total.null_checks[name] += count;
  }
}

}  // namespace tarn::transform
