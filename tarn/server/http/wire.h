// Bodies on the wire as a worker thread sees them: the connection behind an interface, and the
// reader and the sink that frame bodies over it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tarn/base/status.h"
#include "tarn/server/http/message.h"
#include "tarn/server/http/response_head.h"

namespace tarn::server::http {

/// One write with one deadline.
inline constexpr size_t kWirePieceBytes = 256 << 10;

struct WireRead {
  size_t count = 0;     // 0 without a failure: the end of the body.
  std::string failure;  // Empty = none.
  bool timed_out = false;
};

/// The connection of one request. One owner thread at a time; both calls block.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual WireRead ReadBody(char* out, size_t size) = 0;
  /// Writes the three parts, at most kWirePieceBytes and some framing. Returns the failure, empty
  /// when all of it was taken.
  virtual std::string WritePiece(const std::array<std::string_view, 3>& piece) = 0;
};

/// "RequestEntityTooLarge" with the limit.
Status BodyTooLarge(uint64_t size_bytes_max);

/// A body that is still on the wire. Keeps failing after a failure.
class WireBodyReader final : public BodyReader {
 public:
  WireBodyReader(std::shared_ptr<Wire> wire, std::optional<uint64_t> content_length,
                 uint64_t size_bytes_max);
  Result<size_t> Read(char* out, size_t size) override;
  [[nodiscard]] std::optional<uint64_t> content_length() const override { return content_length_; }

 private:
  [[nodiscard]] Status Failure(const WireRead& read) const;

  const std::shared_ptr<Wire> wire_;
  const std::optional<uint64_t> content_length_;
  const uint64_t size_bytes_max_;
  uint64_t read_bytes_ = 0;
  bool at_end_ = false;
  Status failure_;
};

/// Frames what a producer pushes. The head leaves with the first full buffer, so that a producer
/// that fails early can still be answered with an error.
class WireSink final : public BodySink {
 public:
  /// `wire` outlives it. `head.framing` is not kNoBody.
  WireSink(Wire& wire, ResponseHead head, std::optional<uint64_t> content_length);

  Status Write(std::string_view bytes) override;
  /// Sends the rest and the end of the body. Errors: kInternal when the stated length was missed.
  Status Close();

  [[nodiscard]] bool head_sent() const { return head_sent_; }
  [[nodiscard]] bool keep_alive() const { return head_.keep_alive; }

 private:
  Status Fail(Status failure);
  Status Flush();
  Status Send(std::string_view bytes, std::string_view end);

  Wire& wire_;
  const ResponseHead head_;
  const std::optional<uint64_t> content_length_;
  std::string buffer_;
  uint64_t written_bytes_ = 0;
  bool head_sent_ = false;
  Status failure_;
};

}  // namespace tarn::server::http
