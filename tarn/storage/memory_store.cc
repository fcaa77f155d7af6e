#include "tarn/storage/memory_store.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "tarn/storage/object_key.h"

namespace tarn::storage {

namespace {

class MemoryReader final : public ObjectReader {
 public:
  MemoryReader(ObjectMeta meta, std::shared_ptr<const std::string> bytes)
      : meta_(std::move(meta)), bytes_(std::move(bytes)) {}
  [[nodiscard]] const ObjectMeta& meta() const override { return meta_; }
  Result<size_t> ReadAt(uint64_t offset_bytes, size_t size, void* out) override {
    if (offset_bytes >= bytes_->size()) {
      return size_t{0};
    }
    const size_t count = std::min<size_t>(size, bytes_->size() - offset_bytes);
    std::memcpy(out, bytes_->data() + offset_bytes, count);
    return count;
  }

 private:
  const ObjectMeta meta_;
  const std::shared_ptr<const std::string> bytes_;
};

Status Missing(std::string_view key) { return Status::NotFound("no object " + QuoteKey(key)); }

Status Exists(std::string_view key) {
  return Status::AlreadyExists("object " + QuoteKey(key) + " exists");
}

}  // namespace

class MemoryStore::Writer final : public ObjectWriter {
 public:
  Writer(MemoryStore& store, std::string key, WriteMode mode)
      : store_(store), key_(std::move(key)), mode_(mode) {}
  Status Write(std::string_view bytes) override {
    if (ended_) {
      return Status::FailedPrecondition("writer of " + QuoteKey(key_) + " has ended");
    }
    bytes_ += bytes;
    return Status::Ok();
  }
  Result<ObjectMeta> Close() override {
    if (ended_) {
      return Status::FailedPrecondition("writer of " + QuoteKey(key_) + " has ended");
    }
    ended_ = true;
    return store_.Publish(key_, std::move(bytes_), mode_);
  }
  void Abort() override { ended_ = true; }

 private:
  MemoryStore& store_;
  const std::string key_;
  const WriteMode mode_;
  std::string bytes_;
  bool ended_ = false;
};

Capabilities MemoryStore::capabilities() const {
  return {.put_if_absent = true, .etag = true, .start_after = true, .presign = false};
}

Result<ObjectMeta> MemoryStore::Head(std::string_view key) {
  TARN_RETURN_IF_ERROR(CheckKey(key));
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) {
    return Missing(key);
  }
  return found->second.meta;
}

Result<std::unique_ptr<ObjectReader>> MemoryStore::OpenReader(std::string_view key) {
  TARN_RETURN_IF_ERROR(CheckKey(key));
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) {
    return Missing(key);
  }
  return std::make_unique<MemoryReader>(found->second.meta, found->second.bytes);
}

Result<std::unique_ptr<ObjectWriter>> MemoryStore::OpenWriter(std::string_view key,
                                                              WriteMode mode) {
  TARN_RETURN_IF_ERROR(CheckKey(key));
  const std::lock_guard lock(mutex_);
  if (mode == WriteMode::kPutIfAbsent && objects_.contains(key)) {
    return Exists(key);
  }
  return std::make_unique<Writer>(*this, std::string(key), mode);
}

Result<ListPage> MemoryStore::List(const ListRequest& request) {
  TARN_RETURN_IF_ERROR(CheckListRequest(request));
  const std::lock_guard lock(mutex_);
  ++list_count_;
  ListPage page;
  auto object = request.start_after < request.prefix ? objects_.lower_bound(request.prefix)
                                                     : objects_.upper_bound(request.start_after);
  for (; object != objects_.end() && object->first.starts_with(request.prefix); ++object) {
    if (page.objects.size() == request.limit) {
      page.truncated = true;
      break;
    }
    page.objects.push_back(object->second.meta);
  }
  return page;
}

Status MemoryStore::Delete(std::string_view key) {
  TARN_RETURN_IF_ERROR(CheckKey(key));
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  if (found != objects_.end()) {
    objects_.erase(found);
  }
  return Status::Ok();
}

Result<std::string> MemoryStore::Presign(std::string_view key, std::chrono::seconds) {
  return Status::Unimplemented("a store in memory has no links to " + QuoteKey(key));
}

size_t MemoryStore::object_count() const {
  const std::lock_guard lock(mutex_);
  return objects_.size();
}

int64_t MemoryStore::list_count() const {
  const std::lock_guard lock(mutex_);
  return list_count_;
}

Result<ObjectMeta> MemoryStore::Publish(const std::string& key, std::string bytes, WriteMode mode) {
  const std::lock_guard lock(mutex_);
  if (mode == WriteMode::kPutIfAbsent && objects_.contains(key)) {
    return Exists(key);
  }
  const ObjectMeta meta{.key = key,
                        .size_bytes = bytes.size(),
                        .etag = fmt::format("{:016x}", ++versions_),
                        .modified = clock_.Now()};
  objects_[key] = Object{meta, std::make_shared<const std::string>(std::move(bytes))};
  return meta;
}

}  // namespace tarn::storage
