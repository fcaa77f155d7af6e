#include "tarn/storage/s3/s3_writer.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

#include <fmt/core.h>

#include "tarn/base/log.h"
#include "tarn/storage/object_key.h"

namespace tarn::storage::s3 {

namespace {

constexpr std::string_view kWriteIdHeader = "x-amz-meta-tarn-write";
constexpr std::string_view kGoogleWriteIdHeader = "x-goog-meta-tarn-write";
constexpr int kPartsMax = 10'000;
constexpr int kPartsPerSize = 1000;
constexpr uint64_t kPartBytesMax = 1ULL << 30;

// Parts on their way. Shared by the owner of a writer and the pool's threads.
class PartTracker {
 public:
  void Begin() {
    const std::lock_guard lock(mutex_);
    ++moving_;
  }
  void End(Result<UploadedPart> part) {
    const std::lock_guard lock(mutex_);
    --moving_;
    if (part.ok()) {
      parts_.push_back(*std::move(part));
    } else if (failure_.ok()) {
      failure_ = part.status();
    }
    changed_.notify_all();
  }
  // Waits until at most `moving_max` parts move.
  Status Await(size_t moving_max) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return moving_ <= moving_max; });
    return failure_;
  }
  // In order of their numbers.
  std::vector<UploadedPart> Take() {
    const std::lock_guard lock(mutex_);
    std::ranges::sort(parts_, {}, &UploadedPart::number);
    return std::move(parts_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t moving_ = 0;  // Guarded by mutex_, as all below.
  std::vector<UploadedPart> parts_;
  Status failure_;
};

class S3Writer final : public ObjectWriter {
 public:
  S3Writer(WriterWorld world, WriterTarget target)
      : client_(world.client),
        pool_(world.pool),
        target_(std::move(target)),
        part_bytes_(world.client.options().part_bytes) {}

  ~S3Writer() override { Abort(); }

  Status Write(std::string_view bytes) override {
    if (ended_) {
      return Ended();
    }
    while (!bytes.empty()) {
      const std::string_view piece = bytes.substr(0, part_bytes_ - buffer_.size());
      buffer_ += piece;
      size_bytes_ += piece.size();
      bytes.remove_prefix(piece.size());
      // A full buffer waits for the next byte: the last part is sent by Close.
      if (buffer_.size() == part_bytes_ && !bytes.empty()) {
        TARN_RETURN_IF_ERROR(SendPart());
      }
    }
    return Status::Ok();
  }

  Result<ObjectMeta> Close() override {
    if (ended_) {
      return Ended();
    }
    if (upload_id_.empty()) {
      ended_ = true;
      return PutWhole();
    }
    if (!buffer_.empty()) {
      TARN_RETURN_IF_ERROR(Failed(SendPart()));
    }
    TARN_RETURN_IF_ERROR(Failed(tracker_.Await(0)));
    return Complete();
  }

  void Abort() override {
    if (ended_) {
      return;
    }
    ended_ = true;
    buffer_ = {};
    if (!upload_id_.empty()) {
      (void)tracker_.Await(0);
      AbortUpload();
    }
  }

 private:
  [[nodiscard]] Status Ended() const {
    return Status::FailedPrecondition("writer of " + QuoteKey(target_.key) + " has ended");
  }

  // Ends a writer that failed before the upload was completed; nothing of it is visible.
  Status Failed(const Status& status) {
    if (!status.ok()) {
      Abort();
    }
    return status;
  }

  void AbortUpload() {
    const Status aborted = client_.AbortUpload(target_.full_key, upload_id_);
    if (!aborted.ok()) {
      Log(LogLevel::kWarning, "storage",
          "an unfinished upload stays until it is old enough to be removed: " + aborted.ToString());
    }
  }

  [[nodiscard]] aws::NamedValues WriteHeaders() const {
    const bool google = client_.options().conditional_put == ConditionalPut::kGenerationMatch;
    return {{std::string(google ? kGoogleWriteIdHeader : kWriteIdHeader), target_.write_id}};
  }

  Status SendPart() {
    if (upload_id_.empty()) {
      TARN_ASSIGN_OR_RETURN(upload_id_, client_.StartUpload(target_.full_key, WriteHeaders()));
    }
    if (part_count_ == kPartsMax) {
      return Status(ErrorCode::kResourceExhausted, fmt::format("object {} has more than {} parts",
                                                               QuoteKey(target_.key), kPartsMax));
    }
    TARN_RETURN_IF_ERROR(tracker_.Await(client_.options().parts_parallel - 1));
    const int number = ++part_count_;
    auto bytes = std::make_shared<std::string>(std::move(buffer_));
    buffer_ = {};
    tracker_.Begin();
    const Status queued = pool_.Submit([this, number, bytes] {
      tracker_.End(client_.UploadPart(target_.full_key, upload_id_, number, *bytes));
    });
    if (!queued.ok()) {
      tracker_.End(queued);
      return queued;
    }
    if (part_count_ % kPartsPerSize == 0) {
      part_bytes_ = std::min(part_bytes_ * 2, kPartBytesMax);
    }
    return Status::Ok();
  }

  [[nodiscard]] ObjectMeta MetaOf(const http::Headers& headers, std::string_view etag) const {
    ObjectMeta meta = MetaOfHeaders(target_.key, headers);
    meta.size_bytes = size_bytes_;
    meta.etag = PlainEtag(etag);
    return meta;
  }

  Result<ObjectMeta> PutWhole() {
    Call call{.method = "PUT", .key = target_.full_key, .headers = WriteHeaders()};
    for (auto& header : ConditionOf(client_.options(), target_.mode)) {
      call.headers.push_back(std::move(header));
    }
    call.body = buffer_;
    const Reply reply = client_.Send(call);
    if (reply.ok()) {
      return MetaOf(reply.headers, http::FindHeader(reply.headers, "etag").value_or(""));
    }
    return Resolve(reply);
  }

  Result<ObjectMeta> Complete() {
    ended_ = true;
    const Reply reply = client_.CompleteUpload(target_.full_key, upload_id_, tracker_.Take(),
                                               ConditionOf(client_.options(), target_.mode));
    if (reply.ok()) {
      const Result<XmlElement> root = ParseXml(reply.body);
      return MetaOf(reply.headers, root.ok() ? root->TextOf("ETag") : std::string());
    }
    Result<ObjectMeta> found = Resolve(reply);
    if (!found.ok() && found.status().code() != ErrorCode::kCommitStateUnknown) {
      AbortUpload();
    }
    return found;
  }

  // What came of a write whose reply says failure, by looking at the object where that is open.
  Result<ObjectMeta> Resolve(const Reply& reply) {
    const bool condition = reply.http_status == 412;
    if (!reply.unknown && !condition) {
      return reply.status;
    }
    const Result<http::Headers> head = client_.Head(target_.full_key);
    if (head.ok()) {
      const auto id = http::FindHeader(*head, WriteHeaders().front().first);
      if (id == target_.write_id) {
        ObjectMeta meta = MetaOfHeaders(target_.key, *head);
        if (meta.size_bytes == size_bytes_) {
          return meta;
        }
        return Status::Corruption(fmt::format("object {} has {} bytes, {} were written",
                                              QuoteKey(target_.key), meta.size_bytes, size_bytes_));
      }
      if (target_.mode == WriteMode::kPutIfAbsent) {
        // Somebody else's: ours can no longer get there.
        return Status::AlreadyExists("object " + QuoteKey(target_.key) + " exists");
      }
    }
    if (condition && !reply.unknown) {
      return Status::AlreadyExists("object " + QuoteKey(target_.key) + " existed and is gone");
    }
    return Status(ErrorCode::kCommitStateUnknown,
                  fmt::format("whether {} was written is not known: {}", QuoteKey(target_.key),
                              reply.status.message()));
  }

  S3Client& client_;
  ThreadPool& pool_;
  const WriterTarget target_;
  uint64_t part_bytes_;
  std::string buffer_;
  uint64_t size_bytes_ = 0;
  std::string upload_id_;
  int part_count_ = 0;
  PartTracker tracker_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<ObjectWriter> MakeS3Writer(WriterWorld world, WriterTarget target) {
  return std::make_unique<S3Writer>(world, std::move(target));
}

aws::NamedValues ConditionOf(const S3Options& options, WriteMode mode) {
  if (mode == WriteMode::kOverwrite) {
    return {};
  }
  if (options.conditional_put == ConditionalPut::kGenerationMatch) {
    return {{"x-goog-if-generation-match", "0"}};
  }
  return {{"If-None-Match", "*"}};
}

}  // namespace tarn::storage::s3
