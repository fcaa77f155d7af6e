// GET /tarn/v1/datasets/{rid}/view: all files of a view as one Arrow stream.
#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/array/builder_time.h>
#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/arrow_status.h"
#include "tarn/base/hash.h"
#include "tarn/server/native/dataset_request.h"

namespace tarn::server::native {

namespace {

using dataset::DatasetRid;
using dataset::File;

std::shared_ptr<arrow::Schema> ViewSchema() {
  return arrow::schema({arrow::field("path", arrow::utf8(), /*nullable=*/false),
                        arrow::field("transactionRid", arrow::utf8(), /*nullable=*/false),
                        arrow::field("sizeBytes", arrow::int64(), /*nullable=*/false),
                        arrow::field("updatedTime", arrow::timestamp(arrow::TimeUnit::MICRO, "UTC"),
                                     /*nullable=*/false),
                        arrow::field("checksum", arrow::utf8()),
                        arrow::field("rowCount", arrow::int64())});
}

// A response body as Arrow writes its outputs. One owner thread.
class SinkStream final : public arrow::io::OutputStream {
 public:
  explicit SinkStream(http::BodySink& sink) : sink_(sink) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  [[nodiscard]] bool closed() const override { return closed_; }
  [[nodiscard]] arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Write(const void* bytes, int64_t size) override {
    position_ += size;
    return ToArrow(sink_.Write({static_cast<const char*>(bytes), static_cast<size_t>(size)}));
  }
  using Writable::Write;

 private:
  http::BodySink& sink_;
  bool closed_ = false;
  int64_t position_ = 0;
};

Result<std::shared_ptr<arrow::RecordBatch>> BatchOf(const std::shared_ptr<arrow::Schema>& schema,
                                                    std::span<const File> files) {
  arrow::StringBuilder path;
  arrow::StringBuilder transaction;
  arrow::Int64Builder size_bytes;
  arrow::TimestampBuilder updated(schema->field(3)->type(), arrow::default_memory_pool());
  arrow::StringBuilder checksum;
  arrow::Int64Builder row_count;
  for (const File& file : files) {
    TARN_RETURN_IF_ERROR(path.Append(file.path));
    TARN_RETURN_IF_ERROR(transaction.Append(file.transaction.ToString()));
    TARN_RETURN_IF_ERROR(size_bytes.Append(file.size_bytes));
    TARN_RETURN_IF_ERROR(updated.Append(ToMicros(file.updated_at)));
    TARN_RETURN_IF_ERROR(file.checksum ? checksum.Append(FormatXxh3(*file.checksum))
                                       : checksum.AppendNull());
    TARN_RETURN_IF_ERROR(file.row_count ? row_count.Append(*file.row_count)
                                        : row_count.AppendNull());
  }
  std::vector<std::shared_ptr<arrow::Array>> columns;
  for (arrow::ArrayBuilder* const builder : std::initializer_list<arrow::ArrayBuilder*>{
           &path, &transaction, &size_bytes, &updated, &checksum, &row_count}) {
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> column, builder->Finish());
    columns.push_back(std::move(column));
  }
  return arrow::RecordBatch::Make(schema, static_cast<int64_t>(files.size()), std::move(columns));
}

Status WriteView(NativeApi& api, const dataset::FileView& view, const std::string& prefix,
                 http::BodySink& sink) {
  SinkStream stream(sink);
  const std::shared_ptr<arrow::Schema> schema = ViewSchema();
  TARN_ASSIGN_OR_RETURN(const auto writer, arrow::ipc::MakeStreamWriter(&stream, schema));
  TARN_RETURN_IF_ERROR(
      api.deps.query.datasets.StreamFiles(view, prefix, [&](std::span<const File> files) -> Status {
        TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch,
                              BatchOf(schema, files));
        return StatusOf(writer->WriteRecordBatch(*batch));
      }));
  return StatusOf(writer->Close());
}

Result<http::Response> ReadView(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kViewer));
  dataset::ViewSelector selector;
  const std::string at = context.query.Find("at").value_or("");
  const Result<Timestamp> time = ParseTimestamp(at);
  if (!at.empty() && !time.ok()) {
    TARN_ASSIGN_OR_RETURN(selector, SelectorOf(api, rid, at));
  } else {
    TARN_ASSIGN_OR_RETURN(const std::string branch, BranchOf(api, context, rid));
    TARN_ASSIGN_OR_RETURN(selector, SelectorOf(api, rid, branch));
    if (time.ok()) {
      selector.at = *time;
    }
  }
  TARN_ASSIGN_OR_RETURN(const dataset::FileView view,
                        api.deps.query.datasets.ResolveView(rid, selector));
  if (view.end) {
    TARN_ASSIGN_OR_RETURN(const dataset::Transaction end,
                          api.deps.query.datasets.GetTransaction(rid, *view.end));
    if (end.state == dataset::TransactionState::kOpen) {
      TARN_RETURN_IF_ERROR(DatasetOf(api, context, access::Role::kEditor));
    }
  }
  http::Response response;
  response.headers.Set("Content-Type", "application/vnd.apache.arrow.stream");
  if (view.end) {
    response.headers.Set("X-Tarn-Transaction", view.end->ToString());
  }
  const std::string prefix = context.query.Find("prefix").value_or("");
  response.producer = [&api, view, prefix](http::BodySink& sink) {
    return WriteView(api, view, prefix, sink);
  };
  return response;
}

constexpr NativeRoute kRoutes[] = {
    {.method = "GET",
     .pattern = "/datasets/{rid}/view",
     .scope = access::Scope::kDatasetsRead,
     .handler = &ReadView,
     .summary = "All files of a view as an Arrow stream; `at` is a transaction, a time or a tag.",
     .query = "branch fallback at prefix",
     .answer = "application/vnd.apache.arrow.stream"},
};

}  // namespace

std::span<const NativeRoute> DatasetViewRoutes() { return kRoutes; }

}  // namespace tarn::server::native
