#include "tarn/server/http/wire.h"

#include <algorithm>

#include <fmt/core.h>

namespace tarn::server::http {

namespace {
constexpr size_t kSinkBufferBytes = 64 << 10;  // Small writes of a producer are joined to this.
constexpr size_t kReadBytesMax = 1 << 20;      // One read of a body.
}  // namespace

Status BodyTooLarge(uint64_t size_bytes_max) {
  return Status::InvalidArgument(
             fmt::format("read the request body: larger than {} bytes", size_bytes_max))
      .WithReason("RequestEntityTooLarge",
                  fmt::format("{{\"maximumSizeBytes\":{}}}", size_bytes_max));
}

WireBodyReader::WireBodyReader(std::shared_ptr<Wire> wire, std::optional<uint64_t> content_length,
                               uint64_t size_bytes_max)
    : wire_(std::move(wire)), content_length_(content_length), size_bytes_max_(size_bytes_max) {}

Result<size_t> WireBodyReader::Read(char* out, size_t size) {
  TARN_RETURN_IF_ERROR(failure_);
  if (at_end_ || size == 0) {
    return size_t{0};
  }
  const WireRead read = wire_->ReadBody(out, std::min(size, kReadBytesMax));
  if (!read.failure.empty()) {
    failure_ = Failure(read);
    return failure_;
  }
  read_bytes_ += read.count;
  if (read_bytes_ > size_bytes_max_) {
    failure_ = BodyTooLarge(size_bytes_max_);
    return failure_;
  }
  at_end_ = read.count == 0;
  return read.count;
}

Status WireBodyReader::Failure(const WireRead& read) const {
  const std::string seen = content_length_
                               ? fmt::format("after {} of {} bytes", read_bytes_, *content_length_)
                               : fmt::format("after {} bytes", read_bytes_);
  if (read.timed_out) {
    return Status(ErrorCode::kDeadlineExceeded, "read the request body: too slow, cut " + seen)
        .WithReason("RequestBodyTimedOut");
  }
  return Status::InvalidArgument(
             fmt::format("read the request body: broken off {}: {}", seen, read.failure))
      .WithReason("RequestBodyIncomplete");
}

WireSink::WireSink(Wire& wire, ResponseHead head, std::optional<uint64_t> content_length)
    : wire_(wire), head_(std::move(head)), content_length_(content_length) {}

Status WireSink::Write(std::string_view bytes) {
  TARN_RETURN_IF_ERROR(failure_);
  written_bytes_ += bytes.size();
  if (head_.framing == Framing::kLength && written_bytes_ > content_length_.value_or(0)) {
    return Fail(Status::Internal(fmt::format("answer a request: more than the {} bytes stated",
                                             content_length_.value_or(0))));
  }
  if (buffer_.size() + bytes.size() < kSinkBufferBytes) {
    buffer_ += bytes;
    return Status::Ok();
  }
  TARN_RETURN_IF_ERROR(Flush());
  while (bytes.size() >= kSinkBufferBytes) {
    const std::string_view piece = bytes.substr(0, kWirePieceBytes);
    TARN_RETURN_IF_ERROR(Send(piece, ""));
    bytes.remove_prefix(piece.size());
  }
  buffer_ = bytes;
  return Status::Ok();
}

Status WireSink::Close() {
  TARN_RETURN_IF_ERROR(failure_);
  if (head_.framing == Framing::kLength && written_bytes_ != content_length_.value_or(0)) {
    return Fail(Status::Internal(fmt::format("answer a request: {} bytes instead of {}",
                                             written_bytes_, content_length_.value_or(0))));
  }
  const std::string rest = std::move(buffer_);
  buffer_.clear();
  return Send(rest, head_.framing == Framing::kChunked ? "0\r\n\r\n" : "");
}

Status WireSink::Fail(Status failure) {
  failure_ = std::move(failure);
  return failure_;
}

Status WireSink::Flush() {
  if (buffer_.empty()) {
    return Status::Ok();
  }
  const std::string piece = std::move(buffer_);
  buffer_.clear();
  return Send(piece, "");
}

Status WireSink::Send(std::string_view bytes, std::string_view end) {
  std::string before = head_sent_ ? std::string() : head_.text;
  std::string after(end);
  if (head_.framing == Framing::kChunked && !bytes.empty()) {
    before += fmt::format("{:x}\r\n", bytes.size());
    after.insert(0, "\r\n");
  }
  if (before.empty() && bytes.empty() && after.empty()) {
    return Status::Ok();
  }
  head_sent_ = true;
  const std::string failure = wire_.WritePiece({before, bytes, after});
  if (!failure.empty()) {
    return Fail(Status(ErrorCode::kCancelled, "answer a request: the client is gone: " + failure));
  }
  return Status::Ok();
}

}  // namespace tarn::server::http
