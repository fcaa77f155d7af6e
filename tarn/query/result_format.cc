#include "tarn/query/result_format.h"

#include <arrow/api.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/writer.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/engine/row_writer.h"

namespace tarn::query {

namespace {

// A sink as Arrow's stream.
class SinkStream final : public arrow::io::OutputStream {
 public:
  explicit SinkStream(const ByteSink& sink) : sink_(sink) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  [[nodiscard]] bool closed() const override { return closed_; }
  [[nodiscard]] arrow::Result<int64_t> Tell() const override { return written_bytes_; }
  arrow::Status Write(const void* data, int64_t size_bytes) override {
    written_bytes_ += size_bytes;
    return ToArrow(
        sink_(std::string_view(static_cast<const char*>(data), static_cast<size_t>(size_bytes))));
  }

 private:
  const ByteSink& sink_;
  int64_t written_bytes_ = 0;
  bool closed_ = false;
};

// Calls `write` for every batch.
template <typename Write>
Status VisitBatches(RunningQuery& query, const Write& write) {
  while (true) {
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch, query.Next());
    if (batch == nullptr) {
      return Status::Ok();
    }
    TARN_RETURN_IF_ERROR(write(*batch));
  }
}

Status WriteArrow(RunningQuery& query, const ByteSink& sink) {
  SinkStream stream(sink);
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::ipc::RecordBatchWriter> writer,
                        arrow::ipc::MakeStreamWriter(&stream, query.schema()));
  TARN_RETURN_IF_ERROR(VisitBatches(query, [&](const arrow::RecordBatch& batch) -> Status {
    TARN_RETURN_IF_ERROR(writer->WriteRecordBatch(batch));
    return Status::Ok();
  }));
  TARN_RETURN_IF_ERROR(writer->Close());
  return Status::Ok();
}

}  // namespace

Result<ResultFormat> ParseResultFormat(std::string_view text) {
  if (text == "json") {
    return ResultFormat::kJson;
  }
  if (text == "csv") {
    return ResultFormat::kCsv;
  }
  if (text == "arrow") {
    return ResultFormat::kArrow;
  }
  return Status::InvalidArgument(
      fmt::format("unknown result format \"{}\": use json, csv or arrow", text));
}

std::string_view MediaTypeOf(ResultFormat format) {
  switch (format) {
    case ResultFormat::kJson:
      return "application/json";
    case ResultFormat::kCsv:
      return "text/csv; charset=utf-8";
    case ResultFormat::kArrow:
      break;
  }
  return "application/vnd.apache.arrow.stream";
}

Status WriteResult(RunningQuery& query, ResultFormat format, const ByteSink& sink) {
  if (format == ResultFormat::kArrow) {
    return WriteArrow(query, sink);
  }
  TARN_ASSIGN_OR_RETURN(
      const std::unique_ptr<engine::RowWriter> writer,
      engine::MakeRowWriter(
          format == ResultFormat::kJson ? engine::RowFormat::kJson : engine::RowFormat::kCsv,
          query.schema(), sink));
  TARN_RETURN_IF_ERROR(
      VisitBatches(query, [&](const arrow::RecordBatch& batch) { return writer->Write(batch); }));
  return writer->Finish();
}

}  // namespace tarn::query
