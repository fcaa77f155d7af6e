#include "tarn/metastore/published_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tarn::metastore {

namespace {

Status Failed(const std::string& doing, const std::filesystem::path& path) {
  return Status::Unavailable(doing + " " + path.string() + ": " + std::strerror(errno));
}

Status Sync(const std::filesystem::path& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) {
    return Failed("open", path);
  }
  const Status synced = ::fsync(descriptor) == 0 ? Status::Ok() : Failed("sync", path);
  ::close(descriptor);
  return synced;
}

}  // namespace

Status PublishFile(const std::filesystem::path& part, const std::filesystem::path& file) {
  TARN_RETURN_IF_ERROR(Sync(part, O_RDONLY));
  if (::rename(part.c_str(), file.c_str()) != 0) {
    return Failed("rename", part);
  }
  return Sync(std::filesystem::absolute(file).parent_path(), O_RDONLY | O_DIRECTORY);
}

}  // namespace tarn::metastore
