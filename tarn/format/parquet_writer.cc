#include "tarn/format/parquet_writer.h"

#include <cmath>
#include <unordered_set>

#include <arrow/api.h>
#include <arrow/io/interfaces.h>
#include <parquet/arrow/schema.h>
#include <parquet/arrow/writer.h>

#include "tarn/base/arrow_status.h"
#include "tarn/format/parquet_statistics.h"
#include "tarn/storage/arrow_file.h"

namespace tarn::format {

namespace {

constexpr int64_t kSampleValues = 1024;

// Calls `visit` for the leaf arrays below `array` in the order of Parquet's columns. Only the part
// of a list's elements that its offsets name is given.
template <typename Visit>
void ForEachLeaf(const std::shared_ptr<arrow::Array>& array, const Visit& visit) {
  switch (array->type_id()) {
    case arrow::Type::STRUCT: {
      const auto& structs = static_cast<const arrow::StructArray&>(*array);
      for (int i = 0; i < structs.num_fields(); ++i) {
        ForEachLeaf(structs.field(i), visit);
      }
      return;
    }
    case arrow::Type::MAP: {
      const auto& map = static_cast<const arrow::MapArray&>(*array);
      const int64_t begin = map.value_offset(0);
      const int64_t size = map.value_offset(map.length()) - begin;
      ForEachLeaf(map.keys()->Slice(begin, size), visit);
      ForEachLeaf(map.items()->Slice(begin, size), visit);
      return;
    }
    case arrow::Type::LIST: {
      const auto& list = static_cast<const arrow::ListArray&>(*array);
      const int64_t begin = list.value_offset(0);
      ForEachLeaf(list.values()->Slice(begin, list.value_offset(list.length()) - begin), visit);
      return;
    }
    case arrow::Type::EXTENSION:
      ForEachLeaf(static_cast<const arrow::ExtensionArray&>(*array).storage(), visit);
      return;
    default:
      visit(*array);
  }
}

int64_t CountNan(const arrow::Array& array) {
  int64_t count = 0;
  const auto scan = [&](const auto& typed) {
    for (int64_t i = 0; i < typed.length(); ++i) {
      count += std::isnan(typed.Value(i)) && typed.IsValid(i) ? 1 : 0;
    }
  };
  if (array.type_id() == arrow::Type::FLOAT) {
    scan(static_cast<const arrow::FloatArray&>(array));
  } else if (array.type_id() == arrow::Type::DOUBLE) {
    scan(static_cast<const arrow::DoubleArray&>(array));
  }
  return count;
}

bool IsReal(const arrow::Array& array) {
  return array.type_id() == arrow::Type::FLOAT || array.type_id() == arrow::Type::DOUBLE;
}

// Bytes of value `i` of an array of fixed width or with 32-bit offsets.
std::string_view BytesAt(const arrow::Array& array, int64_t i) {
  if (arrow::is_binary_like(array.type_id())) {
    return static_cast<const arrow::BinaryArray&>(array).GetView(i);
  }
  const int width = array.type()->byte_width();
  return {reinterpret_cast<const char*>(array.data()->buffers[1]->data()) +
              (array.offset() + i) * width,
          static_cast<size_t>(width)};
}

// True when values repeat enough for a dictionary to pay: at most a third of a sample is distinct.
bool Repeats(const arrow::Array& array) {
  const bool fixed = arrow::is_primitive(array.type_id()) && array.type()->byte_width() > 0;
  if (!fixed && !arrow::is_binary_like(array.type_id())) {
    return array.type_id() != arrow::Type::DECIMAL128;
  }
  const int64_t step = std::max<int64_t>(array.length() / kSampleValues, 1);
  std::unordered_set<std::string_view> distinct;
  int64_t sampled = 0;
  for (int64_t i = 0; i < array.length(); i += step) {
    if (array.IsValid(i)) {
      ++sampled;
      distinct.insert(BytesAt(array, i));
    }
  }
  return static_cast<int64_t>(distinct.size()) * 3 <= sampled || sampled == 0;
}

parquet::Compression::type CodecOf(ParquetCompression compression) {
  switch (compression) {
    case ParquetCompression::kZstd:
      return parquet::Compression::ZSTD;
    case ParquetCompression::kSnappy:
      return parquet::Compression::SNAPPY;
    case ParquetCompression::kNone:
      break;
  }
  return parquet::Compression::UNCOMPRESSED;
}

}  // namespace

class ParquetWriter::File {
 public:
  File(std::unique_ptr<storage::ObjectWriter> object, std::shared_ptr<arrow::Schema> schema,
       ParquetWriterOptions options)
      : object_(std::move(object)), schema_(std::move(schema)), options_(std::move(options)) {}

  // Fails early when the schema has no Parquet form.
  Status CheckSchema() {
    const auto properties = parquet::WriterProperties::Builder().build();
    std::shared_ptr<parquet::SchemaDescriptor> descriptor;
    const arrow::Status made =
        parquet::arrow::ToParquetSchema(schema_.get(), *properties, &descriptor);
    if (!made.ok()) {
      return Status::InvalidArgument("schema has no Parquet form: " + made.ToString());
    }
    descriptor_ = std::move(descriptor);
    nan_counts_.assign(static_cast<size_t>(descriptor_->num_columns()), std::nullopt);
    return {};
  }

  Status Write(const arrow::RecordBatch& batch) {
    if (!batch.schema()->Equals(*schema_, false)) {
      return Status::InvalidArgument(
          "batch has another schema than the Parquet file: " + batch.schema()->ToString() +
          " instead of " + schema_->ToString());
    }
    if (batch.num_rows() == 0) {
      return {};
    }
    if (writer_ == nullptr) {
      TARN_RETURN_IF_ERROR(Start(&batch));
    }
    CountNans(batch);
    const int64_t bytes = BytesOf(batch);
    if (group_rows_ > 0 && (group_rows_ + batch.num_rows() > options_.row_group_rows ||
                            group_bytes_ + bytes > options_.row_group_bytes)) {
      TARN_RETURN_IF_ERROR(writer_->NewBufferedRowGroup());
      group_rows_ = 0;
      group_bytes_ = 0;
    }
    TARN_RETURN_IF_ERROR(writer_->WriteRecordBatch(batch));
    group_rows_ = (group_rows_ + batch.num_rows() - 1) % options_.row_group_rows + 1;
    group_bytes_ += bytes;
    row_count_ += batch.num_rows();
    return {};
  }

  [[nodiscard]] int64_t size_bytes() const {
    const auto written = sink_ == nullptr ? 0 : sink_->Tell().ValueOr(0);
    return written + group_bytes_ / 3;
  }
  [[nodiscard]] int64_t row_count() const { return row_count_; }

  Result<FileStatistics> Close() {
    if (writer_ == nullptr) {
      TARN_RETURN_IF_ERROR(Start(nullptr));
    }
    TARN_RETURN_IF_ERROR(writer_->Close());
    TARN_RETURN_IF_ERROR(sink_->Close());
    TARN_ASSIGN_OR_RETURN(const storage::ObjectMeta meta, object_->Close());
    TARN_ASSIGN_OR_RETURN(
        FileStatistics statistics,
        StatisticsOf(*writer_->metadata(), static_cast<int64_t>(meta.size_bytes)));
    if (statistics.row_count != row_count_) {
      return Status::Internal("Parquet footer counts " + std::to_string(statistics.row_count) +
                              " rows, written were " + std::to_string(row_count_));
    }
    for (size_t i = 0; i < statistics.columns.size(); ++i) {
      statistics.columns[i].nan_count = nan_counts_[i];
    }
    closed_ = true;
    return statistics;
  }

  void Abort() {
    if (!closed_) {
      closed_ = true;
      object_->Abort();
    }
  }

 private:
  static int64_t BytesOf(const arrow::RecordBatch& batch) {
    int64_t bytes = 0;
    for (const auto& column : batch.columns()) {
      ForEachLeaf(column, [&](const arrow::Array& leaf) {
        if (arrow::is_binary_like(leaf.type_id())) {
          bytes += static_cast<const arrow::BinaryArray&>(leaf).total_values_length();
        }
        bytes += leaf.length() * 8;
      });
    }
    return bytes;
  }

  void CountNans(const arrow::RecordBatch& batch) {
    size_t index = 0;
    for (const auto& column : batch.columns()) {
      ForEachLeaf(column, [&](const arrow::Array& leaf) {
        if (index < nan_counts_.size() && IsReal(leaf)) {
          nan_counts_[index] = nan_counts_[index].value_or(0) + CountNan(leaf);
        }
        ++index;
      });
    }
  }

  // Opens the file, with encodings chosen for the first batch.
  Status Start(const arrow::RecordBatch* first) {
    parquet::WriterProperties::Builder builder;
    builder.compression(CodecOf(options_.compression))
        ->max_row_group_length(options_.row_group_rows)
        ->data_pagesize(options_.page_bytes)
        ->enable_store_decimal_as_integer();
    if (options_.compression == ParquetCompression::kZstd) {
      builder.compression_level(options_.compression_level);
    }
    for (const std::string& path : options_.bloom_filter_columns) {
      builder.enable_bloom_filter(path, parquet::BloomFilterOptions{});
    }
    if (first != nullptr) {
      ChooseEncodings(*first, builder);
    }
    parquet::ArrowWriterProperties::Builder arrow_builder;
    arrow_builder.set_use_threads(options_.use_threads);
    sink_ = storage::ArrowOutput(*object_);
    TARN_ASSIGN_OR_RETURN(
        writer_, parquet::arrow::FileWriter::Open(*schema_, arrow::default_memory_pool(), sink_,
                                                  builder.build(), arrow_builder.build()));
    if (!options_.footer.empty()) {
      std::vector<std::string> keys;
      std::vector<std::string> values;
      for (const auto& [key, value] : options_.footer) {
        keys.push_back(key);
        values.push_back(value);
      }
      TARN_RETURN_IF_ERROR(writer_->AddKeyValueMetadata(
          arrow::key_value_metadata(std::move(keys), std::move(values))));
    }
    return {};
  }

  void ChooseEncodings(const arrow::RecordBatch& batch,
                       parquet::WriterProperties::Builder& builder) const {
    int index = 0;
    for (const auto& column : batch.columns()) {
      ForEachLeaf(column, [&](const arrow::Array& leaf) {
        if (index >= descriptor_->num_columns()) {
          return;
        }
        const auto* described = descriptor_->Column(index++);
        if (Repeats(leaf)) {
          return;
        }
        // PLAIN, not a delta encoding: vectorised readers of Iceberg's Spark runtime know no other.
        builder.disable_dictionary(described->path()->ToDotString());
        if (leaf.type_id() == arrow::Type::FIXED_SIZE_BINARY) {
          // Hashes: time spent on compressing them is lost.
          builder.compression(described->path()->ToDotString(), parquet::Compression::UNCOMPRESSED);
        }
      });
    }
  }

  std::unique_ptr<storage::ObjectWriter> object_;
  std::shared_ptr<arrow::Schema> schema_;
  ParquetWriterOptions options_;
  std::shared_ptr<parquet::SchemaDescriptor> descriptor_;
  std::shared_ptr<arrow::io::OutputStream> sink_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
  std::vector<std::optional<int64_t>> nan_counts_;
  int64_t group_rows_ = 0;
  int64_t group_bytes_ = 0;
  int64_t row_count_ = 0;
  bool closed_ = false;
};

ParquetWriter::ParquetWriter(std::unique_ptr<File> file) : file_(std::move(file)) {}

ParquetWriter::~ParquetWriter() {
  if (file_ != nullptr) {
    file_->Abort();
  }
}

Result<std::unique_ptr<ParquetWriter>> ParquetWriter::Open(
    std::unique_ptr<storage::ObjectWriter> object, std::shared_ptr<arrow::Schema> schema,
    ParquetWriterOptions options) {
  auto file = std::make_unique<File>(std::move(object), std::move(schema), std::move(options));
  const Status checked = file->CheckSchema();
  if (!checked.ok()) {
    file->Abort();
    return checked;
  }
  return std::unique_ptr<ParquetWriter>(new ParquetWriter(std::move(file)));
}

Status ParquetWriter::Write(const arrow::RecordBatch& batch) { return file_->Write(batch); }
int64_t ParquetWriter::size_bytes() const { return file_->size_bytes(); }
int64_t ParquetWriter::row_count() const { return file_->row_count(); }
Result<FileStatistics> ParquetWriter::Close() { return file_->Close(); }
void ParquetWriter::Abort() { file_->Abort(); }

}  // namespace tarn::format
