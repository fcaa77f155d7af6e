#include "tarn/server/native/row_response.h"

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/query/result_format.h"
#include "tarn/server/native/native_api.h"

namespace tarn::server::native {

namespace {

constexpr int64_t kRowsDefault = 20;
constexpr int64_t kRowsMax = 10'000;

// One batch as the rows of a query.
class OneBatch final : public query::RunningQuery {
 public:
  explicit OneBatch(std::shared_ptr<arrow::RecordBatch> batch)
      : schema_(batch->schema()), batch_(std::move(batch)) {}
  [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const override { return schema_; }
  Result<std::shared_ptr<arrow::RecordBatch>> Next() override {
    return std::exchange(batch_, nullptr);
  }
  void Interrupt() override {}

 private:
  const std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::RecordBatch> batch_;
};

}  // namespace

Result<int64_t> RowsAsked(const RequestContext& context, std::string_view name) {
  TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> asked, QueryInt(context, name));
  const int64_t rows = asked.value_or(kRowsDefault);
  if (rows < 1 || rows > kRowsMax) {
    return Status::InvalidArgument(
        fmt::format("{} must be 1 to {}, found {}", name, kRowsMax, rows));
  }
  return rows;
}

Result<http::Response> RowsResponse(const RequestContext& context,
                                    std::shared_ptr<arrow::RecordBatch> rows) {
  const std::string_view accept = context.http.headers.Find("Accept").value_or("");
  const query::ResultFormat format = accept.find("text/csv") != std::string_view::npos
                                         ? query::ResultFormat::kCsv
                                         : query::ResultFormat::kJson;
  http::Response response;
  response.headers.Set("Content-Type", std::string(query::MediaTypeOf(format)));
  if (rows == nullptr) {
    response.body = format == query::ResultFormat::kCsv ? "" : "[]";
    return response;
  }
  OneBatch result(std::move(rows));
  TARN_RETURN_IF_ERROR(query::WriteResult(result, format, [&](std::string_view bytes) {
    response.body += bytes;
    return Status::Ok();
  }));
  return response;
}

}  // namespace tarn::server::native
