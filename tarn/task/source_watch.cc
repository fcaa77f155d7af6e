#include "tarn/task/source_watch.h"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "tarn/storage/object_key.h"

namespace tarn::task {

SourceWatch::SourceWatch(std::string_view uri) {
  const Result<std::string> path = storage::PathOfFileUri(uri);
  if (!path.ok()) {
    return;
  }
  const Result<Identity> identity = Look(*path);
  if (identity.ok()) {
    path_ = *path;
    identity_ = *identity;
  }
}

Result<SourceWatch::Identity> SourceWatch::Look(const std::string& path) {
  struct stat state{};
  if (::stat(path.c_str(), &state) != 0) {
    return Status::Unavailable(
        fmt::format("the folder {} of the source is gone ({}); it is read again when it is back",
                    path, std::generic_category().message(errno)));
  }
  if (!S_ISDIR(state.st_mode)) {
    return Status::Unavailable(
        fmt::format("the source {} is no folder any more; it is read again when it is one", path));
  }
  return Identity{.device = static_cast<uint64_t>(state.st_dev),
                  .inode = static_cast<uint64_t>(state.st_ino)};
}

Status SourceWatch::Check() const {
  if (path_.empty()) {
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(const Identity now, Look(path_));
  return now == identity_ ? Status::Ok()
                          : Status::Unavailable(fmt::format(
                                "the folder {} of the source was replaced by another; it is opened "
                                "again",
                                path_));
}

}  // namespace tarn::task
