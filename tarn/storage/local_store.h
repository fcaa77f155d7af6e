// LocalStore: an ObjectStore in a directory of a POSIX file system.
//
// A key is a path below the root. An object becomes visible whole: it is written to a file in
// `<root>/.tmp`, synced, moved to its name, and the directories above are synced, so that Close
// returns after the object would survive a power cut. Differences from object stores: "a" and
// "a/b" cannot both exist, a segment of a key has at most 255 bytes.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "tarn/storage/object_store.h"
#include "tarn/storage/posix_file.h"

namespace tarn::storage {

enum class LocalAccess {
  kReadWrite,
  kReadOnly,  // Writes nothing, not even `.tmp`; every write fails with kPermissionDenied.
};

/// What Delete does to directories that it leaves empty.
enum class EmptyDirectories {
  kRemove,  // A root of ours: nobody else expects them.
  kKeep,    // A root of somebody else's, who may be about to write there.
};

struct LocalStoreOptions {
  std::filesystem::path root;
  LocalAccess access = LocalAccess::kReadWrite;
  EmptyDirectories empty_directories = EmptyDirectories::kRemove;
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

  [[nodiscard]] Capabilities capabilities() const override;
  [[nodiscard]] const std::string& base_uri() const override { return base_uri_; }
  /// The root, absolute, symbolic links resolved.
  [[nodiscard]] const std::string& root_path() const { return root_path_; }

  Result<ObjectMeta> Head(std::string_view key) override;
  Result<std::unique_ptr<ObjectReader>> OpenReader(std::string_view key) override;
  Result<std::unique_ptr<ObjectWriter>> OpenWriter(std::string_view key, WriteMode mode) override;
  Result<ListPage> List(const ListRequest& request) override;
  Status Delete(std::string_view key) override;
  Result<std::string> Presign(std::string_view key, std::chrono::seconds valid_for) override;

 private:
  class Reader;
  class Writer;

  LocalStore(const LocalStoreOptions& options, std::string root_path, FileDescriptor root);
  [[nodiscard]] Status CheckLocalKey(std::string_view key) const;
  [[nodiscard]] Status CheckWritable(std::string_view key) const;
  [[nodiscard]] Status RemoveAbandoned() const;
  // Makes the directories of `key` and moves the temporary file to its name, durably.
  Status Publish(const std::string& temporary, const std::string& key, WriteMode mode);
  Status SyncAncestors(const std::string& directory, std::string_view key);
  void RemoveEmptyDirectories(std::string_view key);

  const std::string root_path_;
  const std::string base_uri_;
  const LocalAccess access_;
  const EmptyDirectories empty_directories_;
  const FileDescriptor root_;
  std::mutex mutex_;
  // Directories whose own entries are known to be on disk. Guarded by mutex_; bounded.
  std::unordered_set<std::string> durable_directories_;
};

}  // namespace tarn::storage
