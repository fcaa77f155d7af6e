#include "tarn/storage/s3/s3_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <future>
#include <mutex>

#include <fmt/core.h>

#include "tarn/storage/object_key.h"

namespace tarn::storage::s3 {

namespace {

constexpr uint64_t kTailBytes = 64ULL << 10;   // What opening brings along.
constexpr uint64_t kBlockBytes = 64ULL << 10;  // At least so much is fetched for a small read.
constexpr uint64_t kAheadMin = 256ULL << 10;   // Fetched ahead of sequential reads, doubling …
constexpr uint64_t kAheadMax = 8ULL << 20;     // … up to this.
constexpr uint64_t kParallelMin = 1ULL << 20;  // From here on the next block is fetched meanwhile.
constexpr uint64_t kDirectMin = 4ULL << 20;    // Reads of this size go straight to the caller.

struct Block {
  uint64_t offset = 0;
  uint64_t size = 0;
  std::unique_ptr<char[]> bytes;

  [[nodiscard]] bool Holds(uint64_t at, uint64_t count) const {
    return at >= offset && at + count <= offset + size;
  }
  void CopyTo(char* out, uint64_t at, size_t count) const {
    std::memcpy(out, bytes.get() + (at - offset), count);
  }
};

class S3Reader final : public ObjectReader {
 public:
  S3Reader(ReaderWorld world, std::string full_key, ObjectMeta meta, Block tail)
      : client_(world.client),
        pool_(world.pool),
        full_key_(std::move(full_key)),
        meta_(std::move(meta)),
        tail_(std::move(tail)) {}
  ~S3Reader() override {
    if (next_.valid()) {
      next_.wait();
    }
  }

  [[nodiscard]] const ObjectMeta& meta() const override { return meta_; }

  Result<size_t> ReadAt(uint64_t offset_bytes, size_t size, void* out) override {
    if (offset_bytes >= meta_.size_bytes || size == 0) {
      return size_t{0};
    }
    const size_t count = std::min<uint64_t>(size, meta_.size_bytes - offset_bytes);
    char* const to = static_cast<char*>(out);
    if (tail_.Holds(offset_bytes, count)) {
      tail_.CopyTo(to, offset_bytes, count);
      return count;
    }
    Plan plan = Decide(offset_bytes, count, to);
    if (plan.done) {
      return count;
    }
    if (!plan.next.valid() && plan.fetch <= count) {
      TARN_RETURN_IF_ERROR(client_.Read(full_key_, meta_.etag, offset_bytes, count, to));
      return count;
    }
    TARN_ASSIGN_OR_RETURN(Block block,
                          plan.next.valid() ? plan.next.get() : Fetch(offset_bytes, plan.fetch));
    block.CopyTo(to, offset_bytes, count);
    Keep(std::move(block));
    return count;
  }

 private:
  struct Plan {
    bool done = false;                // The block at hand had it.
    uint64_t fetch = 0;               // Else: so much is to be fetched from the offset on …
    std::future<Result<Block>> next;  // … unless this, which is under way, has it.
  };

  Plan Decide(uint64_t offset, uint64_t count, char* to) {
    const std::lock_guard lock(mutex_);
    const bool sequential = offset == next_offset_;
    next_offset_ = offset + count;
    Plan plan;
    if (block_.Holds(offset, count)) {
      block_.CopyTo(to, offset, count);
      plan.done = true;
      return plan;
    }
    ahead_ = sequential ? std::clamp(ahead_ * 2, kAheadMin, kAheadMax) : 0;
    if (next_.valid() && offset == next_at_ && count <= next_size_) {
      plan.next = std::move(next_);
      return plan;
    }
    const uint64_t rest = meta_.size_bytes - offset;
    plan.fetch = count >= kDirectMin
                     ? count
                     : std::min(rest, std::max({count, ahead_, std::min(kBlockBytes, rest)}));
    return plan;
  }

  Result<Block> Fetch(uint64_t offset, uint64_t size) {
    Block block{
        .offset = offset, .size = size, .bytes = std::make_unique_for_overwrite<char[]>(size)};
    TARN_RETURN_IF_ERROR(client_.Read(full_key_, meta_.etag, offset, size, block.bytes.get()));
    return block;
  }

  // Makes `block` the one at hand and, in a long walk, starts to fetch the one behind it.
  void Keep(Block block) {
    const std::lock_guard lock(mutex_);
    const uint64_t behind = block.offset + block.size;
    block_ = std::move(block);
    if (ahead_ < kParallelMin || next_.valid() || behind >= meta_.size_bytes) {
      return;
    }
    next_at_ = behind;
    next_size_ = std::min(ahead_, meta_.size_bytes - behind);
    const auto promise = std::make_shared<std::promise<Result<Block>>>();
    std::future<Result<Block>> next = promise->get_future();
    const Status queued = pool_.TrySubmit(
        [this, promise, at = next_at_, size = next_size_] { promise->set_value(Fetch(at, size)); });
    if (queued.ok()) {
      next_ = std::move(next);
    }
  }

  S3Client& client_;
  ThreadPool& pool_;
  const std::string full_key_;
  const ObjectMeta meta_;
  const Block tail_;
  std::mutex mutex_;
  Block block_;  // Guarded by mutex_, as all below.
  uint64_t next_offset_ = 0;
  uint64_t ahead_ = 0;
  std::future<Result<Block>> next_;
  uint64_t next_at_ = 0;
  uint64_t next_size_ = 0;
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

Result<std::unique_ptr<ObjectReader>> OpenS3Reader(ReaderWorld world, const std::string& full_key,
                                                   std::string_view key) {
  S3Client& client = world.client;
  const Reply reply =
      client.Send({.key = full_key, .headers = {{"Range", fmt::format("bytes=-{}", kTailBytes)}}});
  // An empty object has no last bytes, and a server that ignores ranges may send too much.
  if (reply.http_status == 416 || reply.status.code() == ErrorCode::kResourceExhausted) {
    TARN_ASSIGN_OR_RETURN(const http::Headers headers, client.Head(full_key));
    return std::make_unique<S3Reader>(world, full_key, MetaOfHeaders(std::string(key), headers),
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
  Block tail{.offset = begin,
             .size = reply.body.size(),
             .bytes = std::make_unique_for_overwrite<char[]>(reply.body.size())};
  std::memcpy(tail.bytes.get(), reply.body.data(), reply.body.size());
  return std::make_unique<S3Reader>(world, full_key, std::move(meta), std::move(tail));
}

}  // namespace tarn::storage::s3
