#include "tarn/task/change_split.h"

#include <algorithm>
#include <cstring>

#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/arrow_status.h"
#include "tarn/format/column_node.h"
#include "tarn/lakehouse/version_rows.h"
#include "tarn/transform/canonical_text.h"

namespace tarn::task {

namespace {

using lakehouse::Operation;

constexpr std::string_view kTombstone = "tombstone";
constexpr std::string_view kTombstoneText =
    "the message has no value; with key_columns and tombstone: auto or delete it would delete the "
    "row of its key";

template <typename ArrayType>
const ArrayType* Find(const arrow::RecordBatch& batch, std::string_view name) {
  return dynamic_cast<const ArrayType*>(batch.GetColumnByName(std::string(name)).get());
}

// Columns of the mapping's result that decide what a row is.
struct Hidden {
  explicit Hidden(const arrow::RecordBatch& batch)
      : row(Find<arrow::Int64Array>(batch, transform::kRowColumn)),
        before(Find<arrow::BooleanArray>(batch, transform::kBeforeColumn)),
        deleted(Find<arrow::BooleanArray>(batch, transform::kDeleteColumn)),
        event_time(Find<arrow::TimestampArray>(batch, transform::kEventTimeColumn)),
        operation(Find<arrow::StringArray>(batch, "hdr__cdc_operation")),
        cdc_time(Find<arrow::TimestampArray>(batch, "hdr__cdc_timestamp")),
        source_time(Find<arrow::TimestampArray>(batch, "hdr__event_timestamp")),
        absent(Find<arrow::StringArray>(batch, "hdr__absent")),
        tombstone(Find<arrow::BooleanArray>(batch, "hdr__kafka_tombstone")) {}

  const arrow::Int64Array* row;
  const arrow::BooleanArray* before;
  const arrow::BooleanArray* deleted;
  const arrow::TimestampArray* event_time;
  const arrow::StringArray* operation;
  const arrow::TimestampArray* cdc_time;
  const arrow::TimestampArray* source_time;
  const arrow::StringArray* absent;
  const arrow::BooleanArray* tombstone;

  [[nodiscard]] bool IsBefore(int64_t i) const {
    return before != nullptr && !before->IsNull(i) && before->Value(i);
  }
  [[nodiscard]] bool IsDeleted(int64_t i) const {
    return deleted != nullptr && !deleted->IsNull(i) && deleted->Value(i);
  }
  [[nodiscard]] bool IsTombstone(int64_t i) const {
    return tombstone != nullptr && !tombstone->IsNull(i) && tombstone->Value(i);
  }
  [[nodiscard]] bool IsTruncate(int64_t i) const {
    return operation != nullptr && !operation->IsNull(i) && operation->GetView(i) == "T";
  }
  [[nodiscard]] bool IsPartial(int64_t i) const { return absent != nullptr && !absent->IsNull(i); }
  [[nodiscard]] Operation OperationAt(int64_t i) const {
    if (IsDeleted(i)) {
      return Operation::kDelete;
    }
    if (operation == nullptr || operation->IsNull(i) || operation->GetView(i).empty()) {
      return Operation::kInsert;
    }
    return static_cast<Operation>(operation->GetView(i)[0]);
  }
};

std::optional<int64_t> TimeAt(const arrow::TimestampArray* array, int64_t i) {
  if (array == nullptr || array->IsNull(i)) {
    return std::nullopt;
  }
  return array->Value(i);
}

// Collects which rows become changes, in order.
class Splitter {
 public:
  Splitter(const ChangeSplitOptions& options, const arrow::RecordBatch& good)
      : options_(options), good_(good), hidden_(good) {}

  Status Run();
  std::vector<int64_t> rows;
  ChangeSplit split;

 private:
  Status HashKeys();
  void AddRow(int64_t i, Operation operation);
  void Reject(int64_t i, std::string_view code, std::string text) {
    split.rejected.push_back(
        {.row = hidden_.row->Value(i), .code = std::string(code), .text = std::move(text)});
  }
  [[nodiscard]] bool HasNullKey(int64_t i) const;
  [[nodiscard]] bool SameKey(int64_t a, int64_t b) const {
    return std::memcmp(hashes_->GetValue(a), hashes_->GetValue(b), 20) == 0;
  }
  [[nodiscard]] bool IsKeyChange(int64_t before, int64_t after) const {
    return hashes_ != nullptr && hidden_.row->Value(before) == hidden_.row->Value(after) &&
           !SameKey(before, after);
  }

  const ChangeSplitOptions& options_;
  const arrow::RecordBatch& good_;
  Hidden hidden_;
  std::shared_ptr<arrow::Array> hash_array_;
  const arrow::FixedSizeBinaryArray* hashes_ = nullptr;  // Only where before images are.
};

Status Splitter::HashKeys() {
  if (hidden_.before == nullptr || options_.mapping->key_columns.empty() ||
      hidden_.before->true_count() == 0) {
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(hash_array_, transform::KeyHashes(good_, options_.mapping->key_columns));
  hashes_ = static_cast<const arrow::FixedSizeBinaryArray*>(hash_array_.get());
  return Status::Ok();
}

void Splitter::AddRow(int64_t i, Operation operation) {
  const auto file = static_cast<size_t>(hidden_.row->Value(i) >> kRowPositionBits);
  const int64_t landed = ToMicros(options_.landed->files[file].committed);
  const std::optional<int64_t> cdc_time =
      hidden_.operation == nullptr ? std::nullopt : TimeAt(hidden_.cdc_time, i);
  std::optional<int64_t> time = cdc_time ? cdc_time : TimeAt(hidden_.event_time, i);
  if (!time) {
    time = TimeAt(hidden_.source_time, i);
  }
  rows.push_back(i);
  split.changes.operations.push_back(operation);
  split.changes.timestamps_micros.push_back(time.value_or(landed));
  split.changes.landed_micros.push_back(landed);
  split.changes.source_micros.push_back(cdc_time.value_or(landed));
}

bool Splitter::HasNullKey(int64_t i) const {
  const std::vector<int>& keys = options_.mapping->key_columns;
  return std::any_of(keys.begin(), keys.end(),
                     [&](int column) { return good_.column(column)->IsNull(i); });
}

Status Splitter::Run() {
  TARN_RETURN_IF_ERROR(HashKeys());
  const bool merge = options_.mode == lakehouse::Mode::kMerge;
  for (int64_t i = 0; i < good_.num_rows(); ++i) {
    if (i > 0 && hidden_.row->Value(i) < hidden_.row->Value(i - 1)) {
      return Status::Internal("mapped rows came out of order");
    }
    if (hidden_.IsBefore(i)) {
      continue;  // Looked at with its change; alone, the change was rejected.
    }
    if (hidden_.IsTruncate(i)) {
      ++split.truncates;
      continue;
    }
    Operation operation = merge ? hidden_.OperationAt(i) : Operation::kInsert;
    if (merge && hidden_.IsTombstone(i)) {
      if (!options_.tombstones_delete) {
        Reject(i, kTombstone, std::string(kTombstoneText));
        continue;
      }
      operation = Operation::kDelete;
    }
    if (hidden_.IsPartial(i) && operation != Operation::kDelete) {
      Reject(i, "partial_without_base",
             fmt::format("the source left out the values of {}", hidden_.absent->GetView(i)));
      continue;
    }
    const bool has_before = i + 1 < good_.num_rows() && hidden_.IsBefore(i + 1);
    if (operation == Operation::kDelete && has_before && hidden_.IsDeleted(i + 1)) {
      ++split.filtered;  // It was not in the table and is not to be.
      continue;
    }
    if (merge && has_before && HasNullKey(i + 1) && !HasNullKey(i)) {
      // The old key cannot be read: writing the new one alone would leave the old row live.
      Reject(i, transform::kNullKey, "the key before the change cannot be read");
      continue;
    }
    if (merge && has_before && IsKeyChange(i + 1, i)) {
      AddRow(i + 1, Operation::kDelete);
      AddRow(i, operation == Operation::kDelete ? operation : Operation::kInsert);
      continue;
    }
    AddRow(i, operation);
  }
  return Status::Ok();
}

// The column of that name, spelled so if there is one, else alike but for case; null when there is
// none.
std::shared_ptr<arrow::Array> ColumnNamed(const arrow::RecordBatch& rows, const std::string& name) {
  std::shared_ptr<arrow::Array> column = rows.GetColumnByName(name);
  for (int i = 0; column == nullptr && i < rows.num_columns(); ++i) {
    if (format::FoldCase(rows.schema()->field(i)->name()) == format::FoldCase(name)) {
      column = rows.column(i);
    }
  }
  return column;
}

// The columns of the table, by name; missing ones NULL, others cast to the table's type.
Result<std::shared_ptr<arrow::RecordBatch>> TableColumns(const arrow::RecordBatch& rows,
                                                         const arrow::Schema& table) {
  arrow::ArrayVector columns;
  for (const std::shared_ptr<arrow::Field>& field : table.fields()) {
    std::shared_ptr<arrow::Array> column = ColumnNamed(rows, field->name());
    if (column == nullptr) {
      TARN_ASSIGN_OR_RETURN(column, arrow::MakeArrayOfNull(field->type(), rows.num_rows()));
    } else if (column->type_id() == arrow::Type::EXTENSION) {
      column = static_cast<const arrow::ExtensionArray&>(*column).storage();
    }
    if (!column->type()->Equals(*field->type())) {
      const auto cast = arrow::compute::Cast(*column, field->type());
      if (!cast.ok()) {
        return FromArrow(cast.status()).WithContext("column " + field->name());
      }
      column = *cast;
    }
    columns.push_back(std::move(column));
  }
  return arrow::RecordBatch::Make(arrow::schema(table.fields()), rows.num_rows(),
                                  std::move(columns));
}

}  // namespace

landing::DeadLetter MakeDeadLetter(const transform::RejectedRow& row, const std::string& task) {
  const nlohmann::json landed =
      nlohmann::json::parse(row.landed_json, nullptr, /*allow_exceptions=*/false);
  const auto text = [&](const char* name) -> std::string {
    if (!landed.is_object() || !landed.contains(name) || landed[name].is_null()) {
      return {};
    }
    return landed[name].is_string() ? landed[name].get<std::string>() : landed[name].dump();
  };
  const bool message = landed.is_object() && landed.contains("hdr__kafka_topic");
  // Of a message without value nothing has a key, unless its own key gives it columns.
  const bool tombstone = message && row.code == transform::kNullKey &&
                         landed.value("hdr__kafka_tombstone", nlohmann::json()) == true;
  return {.raw = row.landed_json,
          .source = text(message ? "hdr__kafka_topic" : "hdr__file_name"),
          .position = text(message ? "hdr__kafka_offset" : "hdr__file_row"),
          .error_code = tombstone ? std::string(kTombstone) : row.code,
          .error_text = tombstone ? std::string(kTombstoneText) : row.text,
          .rejected_by = task};
}

Result<ChangeSplit> SplitChanges(const ChangeSplitOptions& options,
                                 const arrow::RecordBatch& good) {
  Splitter splitter(options, good);
  TARN_RETURN_IF_ERROR(splitter.Run());
  const auto whole = arrow::RecordBatch::Make(good.schema(), good.num_rows(), good.columns());
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> taken,
                        lakehouse::TakeRows(whole, splitter.rows));
  TARN_ASSIGN_OR_RETURN(splitter.split.changes.rows, TableColumns(*taken, *options.table));
  return std::move(splitter.split);
}

}  // namespace tarn::task
