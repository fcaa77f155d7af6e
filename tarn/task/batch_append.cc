#include "tarn/task/batch_append.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include <arrow/api.h>

#include "tarn/base/arrow_status.h"
#include "tarn/task/direct_rows.h"
#include "tarn/task/landed_json.h"
#include "tarn/task/landed_relation.h"
#include "tarn/transform/direct_mapping.h"
#include "tarn/transform/outcome.h"

namespace tarn::task {

namespace {

template <typename ArrayType>
const ArrayType& ColumnOf(const arrow::RecordBatch& rows, std::string_view name) {
  return static_cast<const ArrayType&>(*rows.GetColumnByName(std::string(name)));
}

bool IsBefore(const arrow::RecordBatch& rows, int64_t row) {
  const auto before = std::dynamic_pointer_cast<arrow::BooleanArray>(
      rows.GetColumnByName(std::string(transform::kBeforeColumn)));
  return before != nullptr && before->IsValid(row) && before->Value(row);
}

}  // namespace

struct BatchAppend::Part {
  const LandedBatch& landed;
  const InputMapping& how;
  ChangeSplitOptions split;
  LandedJson json;
  std::shared_ptr<arrow::RecordBatch> carried;  // The last row: its before image may come next.
  std::vector<transform::RejectedRow> rejected;
};

BatchAppend::BatchAppend(BatchAppendOptions options, BatchAppendDeps deps)
    : options_(std::move(options)), deps_(deps), letters_(options_.rejected.size()) {}

BatchAppend::~BatchAppend() = default;

Status BatchAppend::Write(const LandedBatch& landed, const InputMapping& how) {
  if (landed.files.empty()) {
    return Status::Ok();
  }
  Part part{.landed = landed,
            .how = how,
            .split = {.mapping = &how.mapping,
                      .landed = &landed,
                      .mode = options_.mode,
                      .tombstones_delete = how.tombstones_delete,
                      .table = options_.table},
            .json = LandedJson(deps_.store, landed, how.fields),
            .carried = nullptr,
            .rejected = {}};
  TARN_ASSIGN_OR_RETURN(const bool direct, WriteDirectly(part));
  return direct ? Status::Ok() : WriteMapped(part);
}

// False, and nothing written, when the rows need the mapping's statement.
Result<bool> BatchAppend::WriteDirectly(Part& part) {
  const auto direct =
      transform::DirectMapping::Of(part.how.mapping, *format::ToArrowSchema(part.how.fields));
  if (!direct) {
    return false;
  }
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<DirectRows> rows,
                        DirectRows::Open(deps_.store, part.landed, *direct, part.how.fields));
  if (rows == nullptr) {
    return false;
  }
  while (true) {
    if (deps_.cancelled.load()) {
      return Status(ErrorCode::kCancelled, "it was stopped");
    }
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> good, rows->Next());
    if (good == nullptr) {
      return true;
    }
    TARN_RETURN_IF_ERROR(WriteChanges(part, *good));
    if (!part.rejected.empty()) {
      return Status::Internal("a direct mapping rejected rows");
    }
  }
}

Status BatchAppend::WriteMapped(Part& part) {
  const transform::CompiledMapping& mapping = part.how.mapping;
  TARN_RETURN_IF_ERROR(RegisterLanded(deps_.session, deps_.store, part.landed, part.how.fields));
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<engine::ArrowStream> stream,
                        deps_.session.Query(mapping.sql));
  transform::InputRowCount seen;
  while (true) {
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> mapped, stream->Next());
    if (mapped == nullptr) {
      break;
    }
    seen.Add(mapping, *mapped);
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::RecordBatch> good, TakeOutcome(part, *mapped));
    TARN_RETURN_IF_ERROR(WriteGood(part, std::move(good)));
    TARN_RETURN_IF_ERROR(WriteRejected(part));
  }
  TARN_RETURN_IF_ERROR(WriteCarried(part));
  TARN_RETURN_IF_ERROR(WriteRejected(part));
  if (!mapping.spec.where.empty()) {
    deps_.counts.filtered += part.landed.rows - seen.rows();
  }
  return Status::Ok();
}

// The good rows of a batch; counts the others and collects those that were rejected.
Result<std::shared_ptr<arrow::RecordBatch>> BatchAppend::TakeOutcome(
    Part& part, const arrow::RecordBatch& mapped) {
  TARN_ASSIGN_OR_RETURN(transform::MappedBatch outcome,
                        transform::SplitOutcome(part.how.mapping, mapped));
  std::move(outcome.rejected.begin(), outcome.rejected.end(), std::back_inserter(part.rejected));
  TransformCounts& counts = deps_.counts;
  counts.filtered += outcome.counts.dropped + outcome.counts.empty_arrays;
  counts.null_casts += outcome.counts.null_casts;
  for (const auto& [name, count] : outcome.counts.null_checks) {
    counts.null_checks += count;
    counts.unchecked[name] += count;
  }
  for (const auto& [name, count] : outcome.counts.warnings) {
    counts.warned[name] += count;
  }
  return std::move(outcome.good);
}

// Rows behind those before, all but the last one, whose before image may begin the next batch.
Status BatchAppend::WriteGood(Part& part, std::shared_ptr<arrow::RecordBatch> good) {
  if (good->num_rows() == 0) {
    return WriteCarried(part);  // An image would have come right behind its change.
  }
  if (part.carried != nullptr) {
    TARN_ASSIGN_OR_RETURN(good, arrow::ConcatenateRecordBatches({part.carried, good}));
    part.carried = nullptr;
  }
  if (IsBefore(*good, good->num_rows() - 1)) {
    return WriteChanges(part, *good);
  }
  part.carried = good->Slice(good->num_rows() - 1);
  return WriteChanges(part, *good->Slice(0, good->num_rows() - 1));
}

Status BatchAppend::WriteCarried(Part& part) {
  if (part.carried == nullptr) {
    return Status::Ok();
  }
  const std::shared_ptr<arrow::RecordBatch> row = std::move(part.carried);
  part.carried = nullptr;
  return WriteChanges(part, *row);
}

// Good rows as changes; counts those that are none and collects those that are rejected.
Status BatchAppend::WriteChanges(Part& part, const arrow::RecordBatch& good) {
  TARN_ASSIGN_OR_RETURN(ChangeSplit split, SplitChanges(part.split, good));
  std::move(split.rejected.begin(), split.rejected.end(), std::back_inserter(part.rejected));
  deps_.counts.truncates += split.truncates;
  deps_.counts.filtered += split.filtered;
  return split.changes.rows->num_rows() > 0 ? deps_.writer.Write(split.changes) : Status::Ok();
}

// Writes the dead letters of rows before the one that is carried: that one may still be rejected,
// and the landed rows are read forward only.
Status BatchAppend::WriteRejected(Part& part) {
  if (part.rejected.empty()) {
    return Status::Ok();
  }
  const int64_t end =
      part.carried == nullptr
          ? std::numeric_limits<int64_t>::max()
          : ColumnOf<arrow::Int64Array>(*part.carried, transform::kRowColumn).Value(0);
  std::sort(part.rejected.begin(), part.rejected.end(),
            [](const transform::RejectedRow& a, const transform::RejectedRow& b) {
              return std::tie(a.row, a.element) < std::tie(b.row, b.element);
            });
  auto row = part.rejected.begin();
  for (; row != part.rejected.end() && row->row < end; ++row) {
    if (deps_.cancelled.load()) {
      return Status(ErrorCode::kCancelled, "it was stopped");
    }
    TARN_ASSIGN_OR_RETURN(row->landed_json, part.json.Read(row->row));
    const size_t input = part.landed.files[static_cast<size_t>(row->row >> kRowPositionBits)].input;
    std::unique_ptr<landing::DeadLetterFile>& file = letters_[input];
    if (file == nullptr) {
      file = std::make_unique<landing::DeadLetterFile>(
          landing::DeadLetterFileOptions{.rejected = options_.rejected[input],
                                         .landed = options_.now},
          deps_.store, deps_.uuids);
    }
    TARN_RETURN_IF_ERROR(file->Add(MakeDeadLetter(*row, options_.task)));
    ++rejected_rows_;
  }
  part.rejected.erase(part.rejected.begin(), row);
  return Status::Ok();
}

Result<std::vector<landing::DeadLetterCommit>> BatchAppend::CloseDeadLetters() {
  std::vector<landing::DeadLetterCommit> commits;
  for (size_t input = 0; input < letters_.size(); ++input) {
    if (letters_[input] == nullptr) {
      continue;
    }
    TARN_ASSIGN_OR_RETURN(std::optional<dataset::StoredFile> file, letters_[input]->Close());
    if (file) {
      commits.push_back({.rejected = options_.rejected[input], .file = *std::move(file), .by = {}});
    }
  }
  return commits;
}

}  // namespace tarn::task
