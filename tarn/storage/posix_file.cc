#include "tarn/storage/posix_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <linux/openat2.h>

#include "tarn/storage/object_key.h"

namespace tarn::storage {

namespace {

ErrorCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
      return ErrorCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EFBIG:
      return ErrorCode::kResourceExhausted;
    case ENAMETOOLONG:
    case EILSEQ:
    case EINVAL:
      return ErrorCode::kInvalidArgument;
    case EISDIR:
    case ENOTDIR:
    case ELOOP:
      return ErrorCode::kFailedPrecondition;
    default:
      return ErrorCode::kUnavailable;
  }
}

std::string_view Meaning(int error) {
  switch (error) {
    case ENOSPC:
      return "the disk is full";
    case EDQUOT:
      return "the disk quota is used up";
    case EROFS:
      return "the file system is read-only";
    case ENAMETOOLONG:
      return "a part of the name is longer than the file system allows";
    case EISDIR:
      return "a folder has this name";
    case ENOTDIR:
      return "a part of the name is an object, not a folder";
    case ELOOP:
      return "a part of the name is a symbolic link";
    default:
      return {};
  }
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    if (valid()) {
      ::close(fd_);
    }
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (valid()) {
    ::close(fd_);
  }
}

Status ErrnoStatus(int error, std::string_view attempted, std::string_view key) {
  const std::string_view meaning = Meaning(error);
  std::string message(attempted);
  message += " " + QuoteKey(key) + ": ";
  message += meaning.empty() ? std::generic_category().message(error) : std::string(meaning);
  return {CodeOf(error), std::move(message)};
}

FileDescriptor OpenBeneath(int directory, const std::string& path, int flags) {
  static std::atomic<bool> have_openat2{true};
  const std::string& opened = path.empty() ? std::string(".") : path;
  if (have_openat2.load(std::memory_order_relaxed)) {
    open_how how{};
    how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    for (int attempt = 0; attempt < 100; ++attempt) {
      const long fd = ::syscall(SYS_openat2, directory, opened.c_str(), &how, sizeof(how));
      if (fd >= 0) {
        return FileDescriptor(static_cast<int>(fd));
      }
      // EAGAIN: a rename elsewhere made the kernel unsure; EINTR: a signal came.
      if (errno != EAGAIN && errno != EINTR) {
        break;
      }
    }
    // Old kernels say ENOSYS, sandboxes with a filter EPERM, which a real refusal may be too.
    if (errno != ENOSYS && errno != EPERM) {
      return {};
    }
    if (errno == ENOSYS) {
      have_openat2.store(false);
    }
  }
  return OpenBeneathByLevels(directory, path, flags);
}

FileDescriptor OpenBeneathByLevels(int directory, const std::string& path, int flags) {
  std::string_view rest = path.empty() ? std::string_view(".") : std::string_view(path);
  FileDescriptor level;
  for (;;) {
    const size_t slash = rest.find('/');
    const std::string name(rest.substr(0, slash));
    if (name == "..") {
      errno = EXDEV;
      return {};
    }
    const bool last = slash == std::string_view::npos;
    const int level_flags = last ? flags : O_PATH | O_DIRECTORY;
    const int parent = level.valid() ? level.get() : directory;
    FileDescriptor next(::openat(parent, name.c_str(), level_flags | O_NOFOLLOW | O_CLOEXEC));
    if (!next.valid()) {
      return {};
    }
    if (last && (flags & O_PATH) != 0) {
      // O_PATH with O_NOFOLLOW opens the link itself.
      struct stat status{};
      if (::fstat(next.get(), &status) != 0 || S_ISLNK(status.st_mode)) {
        errno = ELOOP;
        return {};
      }
    }
    if (last) {
      return next;
    }
    level = std::move(next);
    rest.remove_prefix(slash + 1);
  }
}

Status SyncFile(int fd, std::string_view key) {
  while (::fsync(fd) != 0) {
    if (errno != EINTR) {
      return ErrnoStatus(errno, "cannot sync", key);
    }
  }
  return Status::Ok();
}

}  // namespace tarn::storage
