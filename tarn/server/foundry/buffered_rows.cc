#include "tarn/server/foundry/buffered_rows.h"

#include <stop_token>
#include <utility>

namespace tarn::server::foundry {

namespace {

/// Keeps the first bytes until there are too many of them or all is there.
class HoldingSink {
 public:
  explicit HoldingSink(http::BodySink& sink) : sink_(sink) {}

  Status Write(std::string_view bytes) {
    if (streaming_) {
      return sink_.Write(bytes);
    }
    held_ += bytes;
    return held_.size() > kHeldBackBytesMax ? Flush() : Status::Ok();
  }
  Status Flush() {
    streaming_ = true;
    const std::string held = std::exchange(held_, {});
    return held.empty() ? Status::Ok() : sink_.Write(held);
  }

 private:
  http::BodySink& sink_;
  std::string held_;
  bool streaming_ = false;
};

}  // namespace

http::Response RowsResponse(std::unique_ptr<query::RunningQuery> query, query::ResultFormat format,
                            const RequestContext& context, FailureName name_failure) {
  http::Response response;
  response.headers.Set("Content-Type", "application/octet-stream");
  response.headers.Set("X-Content-Type-Options", "nosniff");
  const std::shared_ptr<query::RunningQuery> rows = std::move(query);
  response.producer = [rows, format, stop = context.http.stop,
                       name_failure = std::move(name_failure)](http::BodySink& sink) -> Status {
    const std::stop_callback interrupt(stop, [&rows] { rows->Interrupt(); });
    HoldingSink holding(sink);
    const Status written = query::WriteResult(
        *rows, format, [&holding](std::string_view bytes) { return holding.Write(bytes); });
    if (!written.ok()) {
      return name_failure(written);
    }
    return holding.Flush();
  };
  return response;
}

}  // namespace tarn::server::foundry
