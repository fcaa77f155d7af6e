// MemoryStore: an ObjectStore in memory, for tests. Behaves like an object store in the network:
// "a" and "a/b" may both exist, long segments are fine.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tarn/base/clock.h"
#include "tarn/storage/object_store.h"

namespace tarn::storage {

/// Threads: any. `clock` gives modification times and must outlive the store.
class MemoryStore final : public ObjectStore {
 public:
  explicit MemoryStore(const Clock& clock, std::string base_uri = "memory://store")
      : clock_(clock), base_uri_(std::move(base_uri)) {}

  [[nodiscard]] Capabilities capabilities() const override;
  [[nodiscard]] const std::string& base_uri() const override { return base_uri_; }
  Result<ObjectMeta> Head(std::string_view key) override;
  Result<std::unique_ptr<ObjectReader>> OpenReader(std::string_view key) override;
  Result<std::unique_ptr<ObjectWriter>> OpenWriter(std::string_view key, WriteMode mode) override;
  Result<ListPage> List(const ListRequest& request) override;
  Status Delete(std::string_view key) override;
  Result<std::string> Presign(std::string_view key, std::chrono::seconds valid_for) override;

  [[nodiscard]] size_t object_count() const;
  /// List calls so far: what a listing plan costs.
  [[nodiscard]] int64_t list_count() const;

 private:
  class Writer;
  struct Object {
    ObjectMeta meta;
    std::shared_ptr<const std::string> bytes;
  };

  Result<ObjectMeta> Publish(const std::string& key, std::string bytes, WriteMode mode);

  const Clock& clock_;
  const std::string base_uri_;
  mutable std::mutex mutex_;
  std::map<std::string, Object, std::less<>> objects_;  // Guarded by mutex_, as all below.
  uint64_t versions_ = 0;
  int64_t list_count_ = 0;
};

}  // namespace tarn::storage
