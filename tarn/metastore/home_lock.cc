#include "tarn/metastore/home_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace tarn::metastore {

namespace {

// Digits at the start of the lock file; "unknown" when its holder has not written them yet.
std::string HolderOf(int descriptor) {
  std::array<char, 32> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  std::string holder;
  for (ssize_t i = 0; i < size; ++i) {
    const char c = text[static_cast<size_t>(i)];
    if (c < '0' || c > '9') {
      break;
    }
    holder += c;
  }
  return holder.empty() ? "unknown" : holder;
}

}  // namespace

Result<std::unique_ptr<HomeLock>> HomeLock::Acquire(const std::filesystem::path& folder) {
  const std::string path = (folder / "tarn.lock").string();
  // Close-on-exec: a child process must not keep the home locked after its parent died.
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return Status::Unavailable("cannot lock home " + folder.string() + ": opening " + path + ": " +
                               std::strerror(errno));
  }
  std::unique_ptr<HomeLock> lock(new HomeLock(descriptor));
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    if (error == EWOULDBLOCK) {
      return Status::FailedPrecondition("home " + folder.string() + " is in use by process " +
                                        HolderOf(descriptor) + "; stop it or choose another home");
    }
    return Status::Unavailable("cannot lock home " + folder.string() + ": " + std::strerror(error));
  }
  const std::string holder = std::to_string(::getpid()) + "\n";
  if (::ftruncate(descriptor, 0) != 0 || ::pwrite(descriptor, holder.data(), holder.size(), 0) !=
                                             static_cast<ssize_t>(holder.size())) {
    return Status::Unavailable("cannot write " + path + ": " + std::strerror(errno));
  }
  return lock;
}

HomeLock::~HomeLock() { ::close(descriptor_); }

}  // namespace tarn::metastore
