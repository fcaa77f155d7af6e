#include "tarn/transform/direct_mapping.h"

#include <algorithm>

#include <arrow/api.h>

#include "tarn/base/arrow_status.h"

namespace tarn::transform {

namespace {

bool OnlyChoosesColumns(const MappingSpec& spec) {
  return spec.where.empty() && spec.expect.empty() && spec.delete_when.empty() &&
         spec.sequence_by.empty() && spec.event_time.empty() && !spec.deduplicate &&
         spec.rename.empty() &&
         std::all_of(spec.columns.begin(), spec.columns.end(), [](const ColumnMapping& column) {
           return column.expression.empty() && !column.hash;
         });
}

// Passed header columns whose values the changes need.
constexpr std::string_view kWanted[] = {"hdr__cdc_operation", "hdr__cdc_timestamp",
                                        "hdr__event_timestamp"};
constexpr std::string_view kTombstone = "hdr__kafka_tombstone";
constexpr std::string_view kMustBeNull[] = {"hdr__cdc_before", "hdr__absent", kTombstone};

}  // namespace

std::optional<DirectMapping> DirectMapping::Of(const CompiledMapping& mapping,
                                               const arrow::Schema& landed) {
  if (!OnlyChoosesColumns(mapping.spec) || mapping.has_elements) {
    return std::nullopt;
  }
  DirectMapping direct;
  for (const MappedColumn& column : mapping.columns) {
    const std::shared_ptr<arrow::Field> field = landed.GetFieldByName(column.name);
    if (column.hashed || field == nullptr || !field->type()->Equals(*column.type)) {
      return std::nullopt;
    }
    direct.columns_.push_back(column.name);
  }
  direct.mapped_ = direct.columns_.size();
  const auto passes = [&](std::string_view name) {
    return std::find(mapping.passed_columns.begin(), mapping.passed_columns.end(), name) !=
           mapping.passed_columns.end();
  };
  for (const std::string_view name : kWanted) {
    if (passes(name)) {
      direct.columns_.emplace_back(name);
    }
  }
  for (const std::string_view name : kMustBeNull) {
    // A message without value is a row like any other where all rows are appended.
    const bool any_row = name == kTombstone && mapping.spec.mode == Mode::kAppend;
    if (passes(name) && !any_row) {
      direct.null_columns_.emplace_back(name);
    }
  }
  if (mapping.spec.null_keys == NullKeys::kReject) {
    for (const int key : mapping.key_columns) {
      const std::string& name = mapping.columns[static_cast<size_t>(key)].name;
      if (name.find('.') != std::string::npos) {
        return std::nullopt;  // Statistics could be those of a member of a struct.
      }
      direct.full_columns_.push_back(name);
    }
  }
  return direct;
}

Result<std::shared_ptr<arrow::RecordBatch>> DirectMapping::Map(const arrow::RecordBatch& landed,
                                                               int64_t first_row) const {
  if (landed.num_columns() != static_cast<int>(columns_.size())) {
    return Status::Internal("rows with other columns than the mapping reads");
  }
  arrow::FieldVector fields = landed.schema()->fields();
  arrow::ArrayVector columns = landed.columns();
  arrow::Int64Builder rows;
  TARN_RETURN_IF_ERROR(rows.Reserve(landed.num_rows()));
  for (int64_t i = 0; i < landed.num_rows(); ++i) {
    rows.UnsafeAppend(first_row + i);
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> row_array, rows.Finish());
  const auto at = static_cast<ptrdiff_t>(mapped_);
  fields.insert(fields.begin() + at, arrow::field(std::string(kRowColumn), arrow::int64()));
  columns.insert(columns.begin() + at, std::move(row_array));
  return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), landed.num_rows(),
                                  std::move(columns));
}

}  // namespace tarn::transform
