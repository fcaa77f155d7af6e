#include "tarn/format/parquet_reader.h"

#include <algorithm>
#include <numeric>

#include <arrow/api.h>
#include <arrow/io/interfaces.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include "tarn/base/arrow_status.h"
#include "tarn/format/parquet_statistics.h"
#include "tarn/storage/arrow_file.h"

namespace tarn::format {

namespace {

constexpr int64_t kBufferBytes = 1LL << 20U;

// Shares an ObjectReader whose owner is elsewhere.
class SharedObject final : public storage::ObjectReader {
 public:
  explicit SharedObject(std::shared_ptr<storage::ObjectReader> object)
      : object_(std::move(object)) {}
  [[nodiscard]] const storage::ObjectMeta& meta() const override { return object_->meta(); }
  Result<size_t> ReadAt(uint64_t offset_bytes, size_t size, void* out) override {
    return object_->ReadAt(offset_bytes, size, out);
  }

 private:
  std::shared_ptr<storage::ObjectReader> object_;
};

}  // namespace

class ParquetReader::File {
 public:
  explicit File(std::shared_ptr<storage::ObjectReader> object) : object_(std::move(object)) {}

  Status Open() {
    return Guard("open", [&]() -> arrow::Status {
      parquet::ReaderProperties properties;
      properties.enable_buffered_stream();
      properties.set_buffer_size(kBufferBytes);
      parquet::arrow::FileReaderBuilder builder;
      ARROW_RETURN_NOT_OK(
          builder.Open(storage::ArrowInput(std::make_unique<SharedObject>(object_)), properties));
      parquet::ArrowReaderProperties arrow_properties;
      arrow_properties.set_pre_buffer(false);
      arrow_properties.set_use_threads(false);
      arrow_properties.set_arrow_extensions_enabled(true);
      builder.properties(arrow_properties);
      ARROW_RETURN_NOT_OK(builder.Build(&reader_));
      return reader_->GetSchema(&schema_);
    });
  }

  // Runs something of Arrow; what fails is the file's content, unless the store says otherwise.
  template <typename Run>
  Status Guard(std::string_view what, const Run& run) const {
    arrow::Status status;
    try {
      status = run();
    } catch (const std::exception& error) {
      status = arrow::Status::Invalid(error.what());
    }
    if (status.ok()) {
      return {};
    }
    const std::string context =
        std::string(what) + " Parquet file " + std::string(object_->meta().key);
    if (status.detail() != nullptr || status.IsOutOfMemory()) {
      return FromArrow(status).WithContext(context);
    }
    return Status::Corruption(status.ToString()).WithContext(context);
  }

  Status Scan(const ParquetScan& scan) {
    const auto& metadata = *this->metadata();
    std::vector<int> groups(static_cast<size_t>(metadata.num_row_groups()));
    std::iota(groups.begin(), groups.end(), 0);
    if (scan.row_groups.has_value()) {
      groups = *scan.row_groups;
    }
    std::vector<int> columns(static_cast<size_t>(schema_->num_fields()));
    std::iota(columns.begin(), columns.end(), 0);
    if (scan.columns.has_value()) {
      columns = *scan.columns;
    }
    const auto outside = [](const std::vector<int>& indexes, int count) {
      return std::any_of(indexes.begin(), indexes.end(),
                         [&](int i) { return i < 0 || i >= count; });
    };
    if (outside(groups, metadata.num_row_groups()) || outside(columns, schema_->num_fields())) {
      return Status::InvalidArgument("scan of Parquet file " + object_->meta().key +
                                     " names a column or row group that it does not have");
    }
    order_.clear();
    std::vector<int> sorted = columns;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    for (const int column : columns) {
      order_.push_back(static_cast<int>(std::lower_bound(sorted.begin(), sorted.end(), column) -
                                        sorted.begin()));
    }
    rows_left_ = 0;
    for (const int group : groups) {
      rows_left_ += metadata.RowGroup(group)->num_rows();
    }
    batches_.reset();
    batch_rows_ = scan.batch_rows;
    if (columns.empty()) {
      return {};
    }
    reader_->set_batch_size(scan.batch_rows);
    return Guard("read", [&]() -> arrow::Status {
      ARROW_ASSIGN_OR_RAISE(batches_, reader_->GetRecordBatchReader(groups, Leaves(sorted)));
      return arrow::Status::OK();
    });
  }

  Result<std::shared_ptr<arrow::RecordBatch>> Next() {
    if (batches_ == nullptr) {
      const int64_t rows = std::min(rows_left_, batch_rows_);
      rows_left_ -= rows;
      return rows == 0 ? nullptr
                       : arrow::RecordBatch::Make(arrow::schema({}), rows, arrow::ArrayVector{});
    }
    std::shared_ptr<arrow::RecordBatch> batch;
    TARN_RETURN_IF_ERROR(Guard("read", [&]() -> arrow::Status {
      ARROW_RETURN_NOT_OK(batches_->ReadNext(&batch));
      if (batch != nullptr) {
        ARROW_ASSIGN_OR_RAISE(batch, batch->SelectColumns(order_));
      }
      return arrow::Status::OK();
    }));
    rows_left_ -= batch == nullptr ? 0 : batch->num_rows();
    if (batch == nullptr && rows_left_ != 0) {
      return Status::Corruption("Parquet file " + object_->meta().key + " lacks " +
                                std::to_string(rows_left_) + " of the rows its footer counts");
    }
    return batch;
  }

  [[nodiscard]] std::shared_ptr<parquet::FileMetaData> metadata() const {
    return reader_->parquet_reader()->metadata();
  }
  [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }
  [[nodiscard]] const storage::ObjectMeta& meta() const { return object_->meta(); }

 private:
  // Leaf columns below top-level columns `sorted`.
  [[nodiscard]] std::vector<int> Leaves(const std::vector<int>& sorted) const {
    const auto* descriptor = metadata()->schema();
    std::vector<int> leaves;
    for (int leaf = 0; leaf < descriptor->num_columns(); ++leaf) {
      const int root = descriptor->group_node()->FieldIndex(*descriptor->GetColumnRoot(leaf));
      if (std::binary_search(sorted.begin(), sorted.end(), root)) {
        leaves.push_back(leaf);
      }
    }
    return leaves;
  }

  std::shared_ptr<storage::ObjectReader> object_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::shared_ptr<arrow::Schema> schema_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
  std::vector<int> order_;
  int64_t rows_left_ = 0;
  int64_t batch_rows_ = 1;
};

ParquetReader::ParquetReader(std::unique_ptr<File> file) : file_(std::move(file)) {}
ParquetReader::~ParquetReader() = default;

Result<std::unique_ptr<ParquetReader>> ParquetReader::Open(storage::ObjectStore& store,
                                                           const std::string& key) {
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<storage::ObjectReader> object, store.OpenReader(key));
  return Open(std::move(object));
}

Result<std::unique_ptr<ParquetReader>> ParquetReader::Open(
    std::shared_ptr<storage::ObjectReader> object) {
  auto file = std::make_unique<File>(std::move(object));
  TARN_RETURN_IF_ERROR(file->Open());
  return std::unique_ptr<ParquetReader>(new ParquetReader(std::move(file)));
}

const std::shared_ptr<arrow::Schema>& ParquetReader::schema() const { return file_->schema(); }
int64_t ParquetReader::row_count() const { return file_->metadata()->num_rows(); }
int ParquetReader::row_group_count() const { return file_->metadata()->num_row_groups(); }

int64_t ParquetReader::row_group_rows(int row_group) const {
  return file_->metadata()->RowGroup(row_group)->num_rows();
}

std::optional<std::string> ParquetReader::footer(const std::string& key) const {
  const auto& pairs = file_->metadata()->key_value_metadata();
  if (pairs == nullptr || !pairs->Contains(key)) {
    return std::nullopt;
  }
  return pairs->Get(key).ValueOr("");
}

Result<FileStatistics> ParquetReader::ReadStatistics() const {
  auto statistics =
      StatisticsOf(*file_->metadata(), static_cast<int64_t>(file_->meta().size_bytes));
  if (!statistics.ok()) {
    return statistics.status().WithContext("file " + file_->meta().key);
  }
  return statistics;
}

Status ParquetReader::Scan(const ParquetScan& scan) { return file_->Scan(scan); }

Result<std::shared_ptr<arrow::RecordBatch>> ParquetReader::Next() { return file_->Next(); }

Result<std::shared_ptr<arrow::Table>> ParquetReader::ReadAll(int64_t rows_max) {
  if (row_count() > rows_max) {
    return Status(ErrorCode::kResourceExhausted,
                  "Parquet file " + file_->meta().key + " has " + std::to_string(row_count()) +
                      " rows, allowed are " + std::to_string(rows_max));
  }
  TARN_RETURN_IF_ERROR(Scan({}));
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches;
  for (;;) {
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::RecordBatch> batch, Next());
    if (batch == nullptr) {
      break;
    }
    batches.push_back(std::move(batch));
  }
  TARN_ASSIGN_OR_RETURN(auto table, arrow::Table::FromRecordBatches(schema(), batches));
  return table;
}

}  // namespace tarn::format
