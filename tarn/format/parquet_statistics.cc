#include "tarn/format/parquet_statistics.h"

#include <arrow/api.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/metadata.h>
#include <parquet/statistics.h>

#include "tarn/base/arrow_status.h"

namespace tarn::format {

namespace {

// Merges the bounds of one leaf column over all row groups.
template <typename DType>
std::shared_ptr<parquet::Statistics> Merge(
    const parquet::ColumnDescriptor* descriptor,
    const std::vector<std::shared_ptr<parquet::Statistics>>& parts) {
  auto merged = parquet::MakeStatistics<DType>(descriptor);
  for (const auto& part : parts) {
    merged->Merge(static_cast<const parquet::TypedStatistics<DType>&>(*part));
  }
  return merged;
}

std::shared_ptr<parquet::Statistics> MergeAny(
    const parquet::ColumnDescriptor* descriptor,
    const std::vector<std::shared_ptr<parquet::Statistics>>& parts) {
  switch (descriptor->physical_type()) {
    case parquet::Type::BOOLEAN:
      return Merge<parquet::BooleanType>(descriptor, parts);
    case parquet::Type::INT32:
      return Merge<parquet::Int32Type>(descriptor, parts);
    case parquet::Type::INT64:
      return Merge<parquet::Int64Type>(descriptor, parts);
    case parquet::Type::FLOAT:
      return Merge<parquet::FloatType>(descriptor, parts);
    case parquet::Type::DOUBLE:
      return Merge<parquet::DoubleType>(descriptor, parts);
    case parquet::Type::BYTE_ARRAY:
      return Merge<parquet::ByteArrayType>(descriptor, parts);
    case parquet::Type::FIXED_LEN_BYTE_ARRAY:
      return Merge<parquet::FLBAType>(descriptor, parts);
    default:
      return nullptr;
  }
}

ColumnStatistics ColumnOf(const parquet::FileMetaData& metadata, int column) {
  const parquet::ColumnDescriptor* descriptor = metadata.schema()->Column(column);
  ColumnStatistics result{.field_id = descriptor->schema_node()->field_id(),
                          .path = descriptor->path()->ToDotString(),
                          .null_count = 0};
  std::vector<std::shared_ptr<parquet::Statistics>> parts;
  bool bounded = true;
  for (int group = 0; group < metadata.num_row_groups(); ++group) {
    const auto chunk = metadata.RowGroup(group)->ColumnChunk(column);
    result.column_size_bytes += chunk->total_compressed_size();
    result.value_count += chunk->num_values();
    const auto statistics = chunk->is_stats_set() ? chunk->statistics() : nullptr;
    if (statistics == nullptr || !statistics->HasNullCount()) {
      result.null_count.reset();
      bounded = false;
      continue;
    }
    if (result.null_count.has_value()) {
      *result.null_count += statistics->null_count();
    }
    if (statistics->HasMinMax()) {
      parts.push_back(statistics);
    } else if (statistics->null_count() < chunk->num_values()) {
      bounded = false;  // Values without bounds: too long, or all NaN.
    }
  }
  if (bounded && !parts.empty()) {
    const auto merged = MergeAny(descriptor, parts);
    std::shared_ptr<arrow::Scalar> min;
    std::shared_ptr<arrow::Scalar> max;
    if (merged != nullptr && merged->HasMinMax() &&
        parquet::arrow::StatisticsAsScalars(*merged, &min, &max).ok()) {
      result.min = std::move(min);
      result.max = std::move(max);
    }
  }
  return result;
}

}  // namespace

Result<FileStatistics> StatisticsOf(const parquet::FileMetaData& metadata, int64_t size_bytes) {
  try {
    FileStatistics result{.row_count = metadata.num_rows(), .size_bytes = size_bytes};
    for (int group = 0; group < metadata.num_row_groups(); ++group) {
      if (metadata.num_columns() == 0) {
        break;
      }
      const auto first = metadata.RowGroup(group)->ColumnChunk(0);
      int64_t offset = first->data_page_offset();
      if (first->has_dictionary_page() && first->dictionary_page_offset() > 0) {
        offset = std::min(offset, first->dictionary_page_offset());
      }
      result.split_offsets.push_back(offset);
    }
    for (int column = 0; column < metadata.num_columns(); ++column) {
      result.columns.push_back(ColumnOf(metadata, column));
    }
    return result;
  } catch (const std::exception& error) {
    return Status::Corruption(std::string("Parquet metadata: ") + error.what());
  }
}

}  // namespace tarn::format
