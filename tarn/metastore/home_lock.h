// HomeLock: one process per home folder. The kernel frees it when the process dies.
#pragma once

#include <filesystem>
#include <memory>

#include "tarn/base/status.h"

namespace tarn::metastore {

/// Holds an exclusive flock on `<folder>/tarn.lock` for its lifetime; the file names the holder.
class HomeLock {
 public:
  /// Errors: kFailedPrecondition when another process (or another lock of this one) holds it, with
  /// the folder and the holder's process id; kUnavailable when the file cannot be made.
  static Result<std::unique_ptr<HomeLock>> Acquire(const std::filesystem::path& folder);
  ~HomeLock();
  HomeLock(const HomeLock&) = delete;
  HomeLock& operator=(const HomeLock&) = delete;

 private:
  explicit HomeLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace tarn::metastore
