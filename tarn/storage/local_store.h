// LocalStore: an ObjectStore in a directory of a POSIX file system.
//
// A key is a path below the root. An object becomes visible whole: it is written to a file in
// `<root>/.tmp`, synced, moved to its name, and the directories above are synced, so that Close
// returns after the object would survive a power cut. Differences from object stores: "a" and
// "a/b" cannot both exist, a segment of a key has at most 255 bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "tarn/storage/object_store.h"

namespace tarn::storage {

enum class LocalAccess {
  kReadWrite,
  kReadOnly,  // Writes nothing, not even `.tmp`; every write fails with kPermissionDenied.
};

struct LocalStoreOptions {
  std::filesystem::path root;
  LocalAccess access = LocalAccess::kReadWrite;
};

/// Threads: any. Several processes may share a root.
///
/// Symbolic links below the root are not followed: their names do not exist as keys (the root
/// itself may be one). An etag is made of inode, size and modification time in nanoseconds.
/// Costs: Close = two fsyncs (more when directories are new); List = the directories that can hold
/// keys of the page, each read whole.
class LocalStore final : public ObjectStore {
 public:
  /// Creates a missing root for kReadWrite and removes what crashed writers left in `.tmp`.
  /// Errors: kNotFound without a root to read; kInvalidArgument when it is not a directory;
  /// kPermissionDenied.
  static Result<std::unique_ptr<LocalStore>> Open(const LocalStoreOptions& options);
  ~LocalStore() override;
  LocalStore(const LocalStore&) = delete;
  LocalStore& operator=(const LocalStore&) = delete;

  [[nodiscard]] Capabilities capabilities() const override;
  [[nodiscard]] const std::string& base_uri() const override { return base_uri_; }
  /// The root, absolute, symbolic links resolved.
  [[nodiscard]] const std::string& root_path() const { return root_path_; }

  Result<ObjectMeta> Head(std::string_view key) override;
  Result<std::unique_ptr<ObjectReader>> OpenReader(std::string_view key) override;
  Result<std::unique_ptr<ObjectWriter>> OpenWriter(std::string_view key, WriteMode mode) override;
  Result<ListPage> List(const ListRequest& request) override;
  /// Also removes directories that it leaves empty.
  Status Delete(std::string_view key) override;
  Result<std::string> Presign(std::string_view key, std::chrono::seconds valid_for) override;

 private:
  class Writer;

  LocalStore(std::string root_path, int root_fd, LocalAccess access);
  [[nodiscard]] Status CheckLocalKey(std::string_view key) const;
  [[nodiscard]] Status CheckWritable(std::string_view key) const;
  Status RemoveAbandoned();
  // Makes the directories of `key` and moves the temporary file to its name, durably.
  Status Publish(const std::string& temporary, const std::string& key, WriteMode mode);
  Status SyncDirectories(const std::string& directory, std::string_view key);
  void PruneEmptyDirectories(std::string_view key);

  const std::string root_path_;
  const std::string base_uri_;
  const int root_fd_;
  const LocalAccess access_;
  std::mutex mutex_;
  // Directories whose own entries are known to be on disk. Guarded by mutex_; bounded.
  std::unordered_set<std::string> durable_directories_;
};

}  // namespace tarn::storage
