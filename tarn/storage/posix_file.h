// The system calls of LocalStore: descriptors that close themselves, opening below a directory
// without leaving it, and errno as Status.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "tarn/base/status.h"

namespace tarn::storage {

/// Owns one descriptor, or none. Movable value.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// A failed system call on `key`: no such file → kNotFound; no right → kPermissionDenied; disk
/// full, quota, out of descriptors → kResourceExhausted; a name that cannot exist →
/// kInvalidArgument; read-only or broken medium and the rest → kUnavailable.
Status ErrnoStatus(int error, std::string_view attempted, std::string_view key);

/// openat(2) of a path below `directory` that follows no symbolic link and cannot leave it. An
/// empty path opens the directory itself. Invalid with errno set on failure (ELOOP: a link).
FileDescriptor OpenBeneath(int directory, const std::string& path, int flags);

/// As OpenBeneath without openat2(2), for kernels and sandboxes that lack it: one call per level.
FileDescriptor OpenBeneathByLevels(int directory, const std::string& path, int flags);

/// fsync(2), repeated when interrupted. Errors: as ErrnoStatus.
Status SyncFile(int fd, std::string_view key);

}  // namespace tarn::storage
