#include "tarn/storage/s3/s3_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <mutex>

#include <fmt/core.h>

#include "tarn/storage/object_key.h"

namespace tarn::storage::s3 {

namespace {

constexpr uint64_t kTailBytes = 64ULL << 10;   // What opening brings along.
constexpr uint64_t kBlockBytes = 64ULL << 10;  // At least so much is fetched for a small read.
constexpr uint64_t kAheadMin = 256ULL << 10;   // Fetched ahead of sequential reads, doubling …
constexpr uint64_t kAheadMax = 8ULL << 20;     // … up to this.
constexpr uint64_t kDirectMin = 4ULL << 20;    // Reads of this size go straight to the caller.

struct Block {
  uint64_t offset = 0;
  std::string bytes;
  [[nodiscard]] bool Holds(uint64_t at, uint64_t size) const {
    return at >= offset && at + size <= offset + bytes.size();
  }
};

class S3Reader final : public ObjectReader {
 public:
  S3Reader(S3Client& client, std::string full_key, ObjectMeta meta, Block tail)
      : client_(client),
        full_key_(std::move(full_key)),
        meta_(std::move(meta)),
        tail_(std::move(tail)) {}

  [[nodiscard]] const ObjectMeta& meta() const override { return meta_; }

  Result<size_t> ReadAt(uint64_t offset_bytes, size_t size, void* out) override {
    if (offset_bytes >= meta_.size_bytes || size == 0) {
      return size_t{0};
    }
    const size_t count = std::min<uint64_t>(size, meta_.size_bytes - offset_bytes);
    char* const to = static_cast<char*>(out);
    if (tail_.Holds(offset_bytes, count)) {
      std::memcpy(to, tail_.bytes.data() + (offset_bytes - tail_.offset), count);
      return count;
    }
    const uint64_t fetch = Plan(offset_bytes, count, to);
    if (fetch == 0) {
      return count;
    }
    if (fetch <= count) {
      TARN_RETURN_IF_ERROR(client_.Read(full_key_, meta_.etag, offset_bytes, count, to));
      return count;
    }
    Block block{.offset = offset_bytes, .bytes = std::string(fetch, '\0')};
    TARN_RETURN_IF_ERROR(
        client_.Read(full_key_, meta_.etag, offset_bytes, fetch, block.bytes.data()));
    std::memcpy(to, block.bytes.data(), count);
    const std::lock_guard lock(mutex_);
    block_ = std::move(block);
    return count;
  }

 private:
  // How much to fetch from `offset` on; 0 when the block had it and it was copied to `to`.
  uint64_t Plan(uint64_t offset, uint64_t count, char* to) {
    const std::lock_guard lock(mutex_);
    const bool sequential = offset == next_offset_;
    next_offset_ = offset + count;
    if (block_.Holds(offset, count)) {
      std::memcpy(to, block_.bytes.data() + (offset - block_.offset), count);
      return 0;
    }
    ahead_ = sequential ? std::clamp(ahead_ * 2, kAheadMin, kAheadMax) : 0;
    const uint64_t rest = meta_.size_bytes - offset;
    if (count >= kDirectMin) {
      return count;
    }
    return std::min(rest, std::max({count, ahead_, count < kBlockBytes ? kBlockBytes : 0}));
  }

  S3Client& client_;
  const std::string full_key_;
  const ObjectMeta meta_;
  const Block tail_;
  std::mutex mutex_;
  Block block_;  // Guarded by mutex_, as all below.
  uint64_t next_offset_ = 0;
  uint64_t ahead_ = 0;
};

// First byte and size of the whole, from "bytes 5-9/10".
struct ContentRange {
  uint64_t begin = 0;
  uint64_t total = 0;
};

std::optional<ContentRange> ParseContentRange(const http::Headers& headers) {
  const std::string text = http::FindHeader(headers, "content-range").value_or("");
  const size_t slash = text.find('/');
  if (!text.starts_with("bytes ") || slash == std::string::npos) {
    return std::nullopt;
  }
  ContentRange range;
  const char* const end = text.data() + text.size();
  const auto begin = std::from_chars(text.data() + 6, end, range.begin);
  const auto total = std::from_chars(text.data() + slash + 1, end, range.total);
  if (begin.ec != std::errc() || total.ec != std::errc() || total.ptr != end ||
      range.begin > range.total) {
    return std::nullopt;
  }
  return range;
}

}  // namespace

Result<std::unique_ptr<ObjectReader>> OpenS3Reader(S3Client& client, const std::string& full_key,
                                                   std::string_view key) {
  const Reply reply =
      client.Send({.key = full_key, .headers = {{"Range", fmt::format("bytes=-{}", kTailBytes)}}});
  // An empty object has no last bytes, and a server that ignores ranges may send too much.
  if (reply.http_status == 416 || reply.status.code() == ErrorCode::kResourceExhausted) {
    TARN_ASSIGN_OR_RETURN(const http::Headers headers, client.Head(full_key));
    return std::make_unique<S3Reader>(client, full_key, MetaOfHeaders(std::string(key), headers),
                                      Block{});
  }
  if (reply.status.code() == ErrorCode::kNotFound) {
    return Status::NotFound("no object " + QuoteKey(key));
  }
  if (!reply.ok()) {
    return reply.status;
  }
  ObjectMeta meta = MetaOfHeaders(std::string(key), reply.headers);
  uint64_t begin = 0;
  meta.size_bytes = reply.body.size();
  if (reply.http_status == 206) {
    const std::optional<ContentRange> range = ParseContentRange(reply.headers);
    if (!range || range->begin + reply.body.size() != range->total) {
      return Status::Corruption("the server's answer has no usable Content-Range for " +
                                QuoteKey(key));
    }
    begin = range->begin;
    meta.size_bytes = range->total;
  }
  return std::make_unique<S3Reader>(client, full_key, std::move(meta),
                                    Block{.offset = begin, .bytes = reply.body});
}

}  // namespace tarn::storage::s3
