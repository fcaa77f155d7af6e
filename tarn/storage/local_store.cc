#include "tarn/storage/local_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <system_error>
#include <vector>

#include <fmt/core.h>

#include "tarn/base/crash_point.h"
#include "tarn/base/hash.h"
#include "tarn/base/uuid.h"
#include "tarn/storage/local_listing.h"
#include "tarn/storage/object_key.h"

namespace tarn::storage {

namespace {

constexpr size_t kSegmentBytesMax = 255;
constexpr size_t kDurableDirectoriesMax = 100'000;
// A directory may be removed as empty between making it and using it; so often is it made again.
constexpr int kPublishAttemptsMax = 20;

std::string DirectoryOf(std::string_view key) {
  const size_t slash = key.rfind('/');
  return std::string(slash == std::string_view::npos ? std::string_view() : key.substr(0, slash));
}

std::string NameOf(std::string_view key) {
  const size_t slash = key.rfind('/');
  return std::string(slash == std::string_view::npos ? key : key.substr(slash + 1));
}

// "a/b/c" gives "", "a", "a/b": the directories that hold an entry of the next one.
std::vector<std::string> AncestorsOf(const std::string& directory) {
  std::vector<std::string> ancestors;
  if (!directory.empty()) {
    ancestors.emplace_back();
  }
  for (size_t slash = directory.find('/'); slash != std::string::npos;
       slash = directory.find('/', slash + 1)) {
    ancestors.push_back(directory.substr(0, slash));
  }
  return ancestors;
}

// A missing name, also where the path to it leads through an object or a link.
bool IsMissing(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

Status Missing(std::string_view key) { return Status::NotFound("no object " + QuoteKey(key)); }

Status Exists(std::string_view key) {
  return Status::AlreadyExists("object " + QuoteKey(key) + " exists");
}

// Makes every level of `directory` below `root`. Errors: kFailedPrecondition when a level is an
// object or a link.
Status MakeDirectories(int root, const std::string& directory, std::string_view key) {
  FileDescriptor level;
  std::string_view rest = directory;
  while (!rest.empty()) {
    const size_t slash = rest.find('/');
    const std::string name(rest.substr(0, slash));
    const int parent = level.valid() ? level.get() : root;
    if (::mkdirat(parent, name.c_str(), 0777) != 0 && errno != EEXIST) {
      if (errno == ENOENT) {
        return Status::Ok();  // Removed as empty meanwhile: the caller finds out and tries again.
      }
      return ErrnoStatus(errno, "cannot make the folders of", key);
    }
    FileDescriptor next(
        ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next.valid()) {
      return errno == ENOENT ? Status::Ok() : ErrnoStatus(errno, "cannot make the folders of", key);
    }
    level = std::move(next);
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  }
  return Status::Ok();
}

// Gives the temporary file its name. 0 or errno.
int MoveToName(int root, const std::string& temporary, int directory, const std::string& name,
               WriteMode mode) {
  if (mode == WriteMode::kOverwrite) {
    return ::renameat(root, temporary.c_str(), directory, name.c_str()) == 0 ? 0 : errno;
  }
  if (::renameat2(root, temporary.c_str(), directory, name.c_str(), RENAME_NOREPLACE) == 0) {
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) {
    return errno;
  }
  // Network file systems know no such rename; a hard link does not replace either.
  if (::linkat(root, temporary.c_str(), directory, name.c_str(), 0) != 0) {
    return errno;
  }
  ::unlinkat(root, temporary.c_str(), 0);
  return 0;
}

Status ToMoveStatus(int error, int directory, const std::string& name, std::string_view key) {
  if (error == EEXIST) {
    struct stat status{};
    const bool is_folder = ::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                           S_ISDIR(status.st_mode);
    return is_folder ? ErrnoStatus(EISDIR, "cannot write", key) : Exists(key);
  }
  return ErrnoStatus(error, "cannot write", key);
}

struct TemporaryFile {
  FileDescriptor file;
  std::string path;  // From the root.
};

// A file of its own in `.tmp`, locked while it is open so that RemoveAbandoned of another process
// leaves it alone.
Result<TemporaryFile> MakeTemporary(int root, std::string_view key) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::array<uint8_t, 16> random{};
    FillSecureRandom(random.data(), random.size());
    const std::string path =
        fmt::format("{}/{}", kTemporaryDirectory,
                    EncodeHex({reinterpret_cast<const char*>(random.data()), random.size()}));
    FileDescriptor file = OpenTemporary(root, path);
    if (!file.valid() && errno == ENOENT) {
      if (::mkdirat(root, std::string(kTemporaryDirectory).c_str(), 0777) != 0 && errno != EEXIST) {
        return ErrnoStatus(errno, "cannot write", key);
      }
      continue;
    }
    if (!file.valid()) {
      return ErrnoStatus(errno, "cannot write", key);
    }
    struct stat status{};
    if ((::flock(file.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) &&
        ::fstat(file.get(), &status) == 0 && status.st_nlink > 0) {
      return TemporaryFile{std::move(file), path};
    }
  }
  return Status::Unavailable("cannot write " + QuoteKey(key) +
                             ": temporary files vanish as soon as they are made");
}

}  // namespace

class LocalStore::Reader final : public ObjectReader {
 public:
  Reader(ObjectMeta meta, FileDescriptor file) : meta_(std::move(meta)), file_(std::move(file)) {}
  [[nodiscard]] const ObjectMeta& meta() const override { return meta_; }

  Result<size_t> ReadAt(uint64_t offset_bytes, size_t size, void* out) override {
    // An object has the size that it had when it was opened, also when the file grows.
    if (offset_bytes >= meta_.size_bytes) {
      return size_t{0};
    }
    const size_t wanted = std::min<uint64_t>(size, meta_.size_bytes - offset_bytes);
    size_t done = 0;
    while (done < wanted) {
      const ssize_t count = ::pread(file_.get(), static_cast<char*>(out) + done, wanted - done,
                                    static_cast<off_t>(offset_bytes + done));
      if (count < 0 && errno == EINTR) {
        continue;
      }
      if (count < 0) {
        return ErrnoStatus(errno, "cannot read", meta_.key);
      }
      if (count == 0) {
        break;
      }
      done += static_cast<size_t>(count);
    }
    return done;
  }

 private:
  const ObjectMeta meta_;
  const FileDescriptor file_;
};

class LocalStore::Writer final : public ObjectWriter {
 public:
  Writer(LocalStore& store, std::string key, WriteMode mode, TemporaryFile temporary)
      : store_(store), key_(std::move(key)), mode_(mode), temporary_(std::move(temporary)) {}
  ~Writer() override { Abort(); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  Status Write(std::string_view bytes) override {
    if (!temporary_.file.valid()) {
      return Ended();
    }
    while (!bytes.empty()) {
      const ssize_t count = ::write(temporary_.file.get(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) {
        continue;
      }
      if (count < 0) {
        const Status failed = ErrnoStatus(errno, "cannot write", key_);
        Abort();
        return failed;
      }
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return Status::Ok();
  }

  Result<ObjectMeta> Close() override {
    if (!temporary_.file.valid()) {
      return Ended();
    }
    Result<ObjectMeta> meta = Finish();
    if (!meta.ok() && meta.status().code() != ErrorCode::kCommitStateUnknown) {
      Abort();
    }
    temporary_.file = FileDescriptor();
    return meta;
  }

  void Abort() override {
    if (temporary_.file.valid()) {
      ::unlinkat(store_.root_.get(), temporary_.path.c_str(), 0);
      temporary_.file = FileDescriptor();
    }
  }

 private:
  Result<ObjectMeta> Finish() {
    TARN_RETURN_IF_ERROR(SyncFile(temporary_.file.get(), key_));
    struct stat status{};
    if (::fstat(temporary_.file.get(), &status) != 0) {
      return ErrnoStatus(errno, "cannot write", key_);
    }
    CrashPoint("storage-before-publish");
    TARN_RETURN_IF_ERROR(store_.Publish(temporary_.path, key_, mode_));
    return MetaOf(key_, status);
  }

  [[nodiscard]] Status Ended() const {
    return Status::FailedPrecondition("writer of " + QuoteKey(key_) + " has ended");
  }

  LocalStore& store_;
  const std::string key_;
  const WriteMode mode_;
  TemporaryFile temporary_;
};

namespace {

// Creates a missing root level by level, each synced into the level above.
Status MakeRoot(const std::filesystem::path& root) {
  std::filesystem::path made;
  for (const std::filesystem::path& part : root) {
    const std::filesystem::path parent = made;
    made /= part;
    if (::mkdir(made.c_str(), 0777) == 0) {
      const FileDescriptor above(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      TARN_RETURN_IF_ERROR(SyncFile(above.get(), parent.string()));
    } else if (errno != EEXIST && errno != EISDIR && errno != EROFS && errno != EACCES) {
      return ErrnoStatus(errno, "cannot make the folder", made.string());
    }
  }
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<LocalStore>> LocalStore::Open(const LocalStoreOptions& options) {
  std::error_code error;
  if (options.root.empty()) {
    return Status::InvalidArgument("a local store needs a root folder");
  }
  std::filesystem::path root = std::filesystem::absolute(options.root, error).lexically_normal();
  if (options.access == LocalAccess::kReadWrite) {
    TARN_RETURN_IF_ERROR(MakeRoot(root));
  }
  FileDescriptor directory(::open(root.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (!directory.valid() || ::fstat(directory.get(), &status) != 0) {
    return ErrnoStatus(errno, "cannot open the folder", root.string());
  }
  if (!S_ISDIR(status.st_mode)) {
    return Status::InvalidArgument("not a folder: " + QuoteKey(root.string()));
  }
  std::string path = std::filesystem::canonical(root, error).string();
  if (error) {
    return ErrnoStatus(error.value(), "cannot open the folder", root.string());
  }
  std::unique_ptr<LocalStore> store(new LocalStore(options, std::move(path), std::move(directory)));
  if (options.access == LocalAccess::kReadWrite) {
    TARN_RETURN_IF_ERROR(store->RemoveAbandoned());
  }
  return store;
}

LocalStore::LocalStore(const LocalStoreOptions& options, std::string root_path, FileDescriptor root)
    : root_path_(std::move(root_path)),
      base_uri_("file://" + (root_path_ == "/" ? std::string() : root_path_)),
      access_(options.access),
      empty_directories_(options.empty_directories),
      root_(std::move(root)) {}

Capabilities LocalStore::capabilities() const {
  return {.put_if_absent = access_ == LocalAccess::kReadWrite,
          .etag = true,
          .start_after = true,
          .presign = false};
}

Status LocalStore::CheckLocalKey(std::string_view key) const {
  TARN_RETURN_IF_ERROR(CheckKey(key));
  size_t start = 0;
  while (start < key.size()) {
    const size_t slash = std::min(key.find('/', start), key.size());
    if (slash - start > kSegmentBytesMax) {
      return Status::InvalidArgument("bad object key " + QuoteKey(key) +
                                     ": a segment has more than 255 bytes, the limit of files");
    }
    start = slash + 1;
  }
  const bool temporary = key.substr(0, key.find('/')) == kTemporaryDirectory;
  if (temporary && access_ == LocalAccess::kReadWrite) {
    return Status::InvalidArgument("bad object key " + QuoteKey(key) + ": .tmp is reserved");
  }
  return Status::Ok();
}

Status LocalStore::CheckWritable(std::string_view key) const {
  TARN_RETURN_IF_ERROR(CheckLocalKey(key));
  if (access_ == LocalAccess::kReadOnly) {
    return Status::PermissionDenied("cannot write " + QuoteKey(key) + ": " + root_path_ +
                                    " was opened for reading only");
  }
  return Status::Ok();
}

Status LocalStore::RemoveAbandoned() const {
  const FileDescriptor directory =
      OpenBeneath(root_.get(), std::string(kTemporaryDirectory), O_RDONLY | O_DIRECTORY);
  if (!directory.valid()) {
    return IsMissing(errno) ? Status::Ok()
                            : ErrnoStatus(errno, "cannot open the folder", kTemporaryDirectory);
  }
  TARN_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries,
                        ReadDirectory(directory.get(), kTemporaryDirectory));
  for (const DirectoryEntry& entry : entries) {
    const FileDescriptor file(::openat(directory.get(), entry.name.c_str(),
                                       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    // Whoever still writes it holds the lock; a dead process holds none.
    if (file.valid() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      ::unlinkat(directory.get(), entry.name.c_str(), 0);
    }
  }
  return Status::Ok();
}

Result<ObjectMeta> LocalStore::Head(std::string_view key) {
  TARN_RETURN_IF_ERROR(CheckLocalKey(key));
  const FileDescriptor file = OpenBeneath(root_.get(), std::string(key), O_PATH);
  struct stat status{};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) {
    return IsMissing(errno) ? Missing(key) : ErrnoStatus(errno, "cannot look up", key);
  }
  if (!S_ISREG(status.st_mode)) {
    return Missing(key);
  }
  return MetaOf(std::string(key), status);
}

Result<std::unique_ptr<ObjectReader>> LocalStore::OpenReader(std::string_view key) {
  TARN_RETURN_IF_ERROR(CheckLocalKey(key));
  // Not blocking: a pipe with that name must not hold the thread.
  FileDescriptor file = OpenBeneath(root_.get(), std::string(key), O_RDONLY | O_NONBLOCK);
  struct stat status{};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) {
    return IsMissing(errno) ? Missing(key) : ErrnoStatus(errno, "cannot open", key);
  }
  if (!S_ISREG(status.st_mode)) {
    return Missing(key);
  }
  return std::make_unique<Reader>(MetaOf(std::string(key), status), std::move(file));
}

Result<std::unique_ptr<ObjectWriter>> LocalStore::OpenWriter(std::string_view key, WriteMode mode) {
  TARN_RETURN_IF_ERROR(CheckWritable(key));
  // Close decides; here it only saves writing what cannot be kept.
  if (mode == WriteMode::kPutIfAbsent && Head(key).ok()) {
    return Exists(key);
  }
  TARN_ASSIGN_OR_RETURN(TemporaryFile temporary, MakeTemporary(root_.get(), key));
  return std::make_unique<Writer>(*this, std::string(key), mode, std::move(temporary));
}

Result<ListPage> LocalStore::List(const ListRequest& request) {
  TARN_RETURN_IF_ERROR(CheckListRequest(request));
  return ListDirectories(
      root_.get(), request,
      access_ == LocalAccess::kReadWrite ? kTemporaryDirectory : std::string_view());
}

Status LocalStore::Delete(std::string_view key) {
  TARN_RETURN_IF_ERROR(CheckWritable(key));
  const FileDescriptor directory =
      OpenBeneath(root_.get(), DirectoryOf(key), O_RDONLY | O_DIRECTORY);
  if (!directory.valid()) {
    return IsMissing(errno) ? Status::Ok() : ErrnoStatus(errno, "cannot delete", key);
  }
  if (::unlinkat(directory.get(), NameOf(key).c_str(), 0) != 0) {
    // A folder of that name is no object: nothing to delete.
    return IsMissing(errno) || errno == EISDIR ? Status::Ok()
                                               : ErrnoStatus(errno, "cannot delete", key);
  }
  if (empty_directories_ == EmptyDirectories::kRemove) {
    RemoveEmptyDirectories(key);
  }
  return Status::Ok();
}

Result<std::string> LocalStore::Presign(std::string_view key, std::chrono::seconds) {
  return Status::Unimplemented("a local store has no links to " + QuoteKey(key));
}

Status LocalStore::Publish(const std::string& temporary, const std::string& key, WriteMode mode) {
  const std::string directory_path = DirectoryOf(key);
  const std::string name = NameOf(key);
  for (int attempt = 0; attempt < kPublishAttemptsMax; ++attempt) {
    const FileDescriptor directory =
        OpenBeneath(root_.get(), directory_path, O_RDONLY | O_DIRECTORY);
    if (!directory.valid()) {
      if (errno != ENOENT) {
        return ErrnoStatus(errno, "cannot write", key);
      }
      TARN_RETURN_IF_ERROR(MakeDirectories(root_.get(), directory_path, key));
      continue;
    }
    const int error = MoveToName(root_.get(), temporary, directory.get(), name, mode);
    if (error == ENOENT) {
      continue;
    }
    if (error != 0) {
      return ToMoveStatus(error, directory.get(), name, key);
    }
    CrashPoint("storage-after-rename");
    Status synced = SyncFile(directory.get(), key);
    if (synced.ok()) {
      synced = SyncAncestors(directory_path, key);
    }
    if (!synced.ok()) {
      return {ErrorCode::kCommitStateUnknown,
              "object " + QuoteKey(key) +
                  " is visible but may not survive a power cut: " + synced.message()};
    }
    return Status::Ok();
  }
  return Status::Unavailable("cannot write " + QuoteKey(key) +
                             ": its folder or its temporary file is removed again and again");
}

Status LocalStore::SyncAncestors(const std::string& directory, std::string_view key) {
  // Asked after the move: if another thread has removed and made the directory again, its entry is
  // not in the set, or that thread has synced it before it put it there.
  {
    const std::lock_guard lock(mutex_);
    if (directory.empty() || durable_directories_.contains(directory)) {
      return Status::Ok();
    }
  }
  const std::vector<std::string> ancestors = AncestorsOf(directory);
  for (const std::string& ancestor : ancestors) {
    const FileDescriptor level = OpenBeneath(root_.get(), ancestor, O_RDONLY | O_DIRECTORY);
    if (level.valid()) {
      TARN_RETURN_IF_ERROR(SyncFile(level.get(), key));
    } else if (!IsMissing(errno)) {
      return ErrnoStatus(errno, "cannot sync", key);
    }
  }
  const std::lock_guard lock(mutex_);
  if (durable_directories_.size() > kDurableDirectoriesMax) {
    durable_directories_.clear();
  }
  durable_directories_.insert(directory);
  return Status::Ok();
}

void LocalStore::RemoveEmptyDirectories(std::string_view key) {
  const std::lock_guard lock(mutex_);
  for (std::string directory = DirectoryOf(key); !directory.empty();
       directory = DirectoryOf(directory)) {
    const FileDescriptor parent =
        OpenBeneath(root_.get(), DirectoryOf(directory), O_RDONLY | O_DIRECTORY);
    if (!parent.valid() || ::unlinkat(parent.get(), NameOf(directory).c_str(), AT_REMOVEDIR) != 0) {
      return;
    }
    durable_directories_.erase(directory);
  }
}

}  // namespace tarn::storage
