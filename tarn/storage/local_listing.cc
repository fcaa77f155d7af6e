#include "tarn/storage/local_listing.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <dirent.h>
#include <fmt/core.h>

#include "tarn/storage/object_key.h"

namespace tarn::storage {

namespace {

EntryKind KindOf(int directory, const dirent& entry) {
  switch (entry.d_type) {
    case DT_REG:
      return EntryKind::kFile;
    case DT_DIR:
      return EntryKind::kDirectory;
    case DT_UNKNOWN:
      break;
    default:
      return EntryKind::kOther;
  }
  // Some file systems do not say in the directory.
  struct stat status{};
  if (::fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return EntryKind::kOther;
  }
  return S_ISREG(status.st_mode)   ? EntryKind::kFile
         : S_ISDIR(status.st_mode) ? EntryKind::kDirectory
                                   : EntryKind::kOther;
}

// Whether a directory can hold keys of the page: `folder` ends with '/'.
bool MayHold(const std::string& folder, const ListRequest& request) {
  const bool before = folder < request.start_after && !request.start_after.starts_with(folder);
  return folder.starts_with(request.prefix) && !before && folder.size() < kKeyBytesMax;
}

bool IsListed(const std::string& key, const ListRequest& request) {
  return key.starts_with(request.prefix) && key > request.start_after;
}

class Walk {
 public:
  Walk(const ListRequest& request, std::string_view hidden) : request_(request), hidden_(hidden) {}

  // Appends the keys below an open directory whose keys begin with `folder` ("" or "a/b/").
  Status Visit(const FileDescriptor& directory, const std::string& folder) {
    TARN_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries,
                          ReadDirectory(directory.get(), folder));
    // A directory sorts as its keys do, with the slash: "a-b" < "a/c" < "a0".
    std::vector<std::string> names;
    for (const DirectoryEntry& entry : entries) {
      if (folder.empty() && !hidden_.empty() && entry.name == hidden_) {
        continue;
      }
      const bool is_directory = entry.kind == EntryKind::kDirectory;
      std::string name = folder + entry.name + (is_directory ? "/" : "");
      if (is_directory ? MayHold(name, request_)
                       : entry.kind == EntryKind::kFile && IsListed(name, request_)) {
        names.push_back(std::move(name));
      }
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      TARN_RETURN_IF_ERROR(name.ends_with('/') ? Enter(directory, folder, name)
                                               : Append(directory, folder, name));
      if (page_.truncated) {
        break;
      }
    }
    return Status::Ok();
  }

  ListPage TakePage() { return std::move(page_); }

 private:
  Status Enter(const FileDescriptor& parent, const std::string& folder, const std::string& key) {
    const std::string name = key.substr(folder.size(), key.size() - folder.size() - 1);
    const FileDescriptor directory(
        ::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory.valid()) {
      // It may have been removed, or replaced by something else, since its name was read.
      return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                 ? Status::Ok()
                 : ErrnoStatus(errno, "cannot list the folder", key);
    }
    return Visit(directory, key);
  }

  Status Append(const FileDescriptor& parent, const std::string& folder, const std::string& key) {
    struct stat status{};
    if (::fstatat(parent.get(), key.c_str() + folder.size(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return errno == ENOENT ? Status::Ok() : ErrnoStatus(errno, "cannot look up", key);
    }
    if (!S_ISREG(status.st_mode)) {
      return Status::Ok();
    }
    if (page_.objects.size() == request_.limit) {
      page_.truncated = true;
    } else {
      page_.objects.push_back(MetaOf(key, status));
    }
    return Status::Ok();
  }

  const ListRequest& request_;
  const std::string_view hidden_;
  ListPage page_;
};

// True when no key can begin with this folder ("a//", "../").
bool IsNoFolder(std::string_view folder) {
  return !folder.empty() && !CheckKey(folder.substr(0, folder.size() - 1)).ok();
}

}  // namespace

Result<std::vector<DirectoryEntry>> ReadDirectory(int directory, std::string_view path) {
  // fdopendir takes its descriptor over, and the position of a directory is the descriptor's.
  const int own = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(own < 0 ? nullptr : ::fdopendir(own),
                                                   &::closedir);
  if (stream == nullptr) {
    // Removed while it was open.
    if (errno == ENOENT) {
      return std::vector<DirectoryEntry>();
    }
    return ErrnoStatus(errno, "cannot list the folder", path);
  }
  std::vector<DirectoryEntry> entries;
  for (;;) {
    errno = 0;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): each call has a stream of its own.
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) {
      break;
    }
    std::string name = entry->d_name;
    if (name != "." && name != "..") {
      entries.push_back({std::move(name), KindOf(directory, *entry)});
    }
  }
  if (errno != 0) {
    return ErrnoStatus(errno, "cannot list the folder", path);
  }
  return entries;
}

Result<ListPage> ListDirectories(int root, const ListRequest& request, std::string_view hidden) {
  const size_t slash = request.prefix.rfind('/');
  const std::string folder =
      slash == std::string::npos ? std::string() : request.prefix.substr(0, slash + 1);
  const bool is_hidden =
      !hidden.empty() && folder.starts_with(hidden) && folder[hidden.size()] == '/';
  if (IsNoFolder(folder) || is_hidden) {
    return ListPage{};
  }
  const std::string path = folder.substr(0, folder.empty() ? 0 : folder.size() - 1);
  const FileDescriptor directory = OpenBeneath(root, path, O_RDONLY | O_DIRECTORY);
  if (!directory.valid()) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG) {
      return ListPage{};
    }
    return ErrnoStatus(errno, "cannot list the folder", folder);
  }
  Walk walk(request, hidden);
  TARN_RETURN_IF_ERROR(walk.Visit(directory, folder));
  return walk.TakePage();
}

ObjectMeta MetaOf(std::string key, const struct stat& status) {
  const int64_t nanos = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
  return {
      .key = std::move(key),
      .size_bytes = static_cast<uint64_t>(status.st_size),
      .etag = fmt::format("{:x}-{:x}-{:x}", status.st_ino, status.st_size, nanos),
      .modified = FromMicros(status.st_mtim.tv_sec * 1'000'000 + status.st_mtim.tv_nsec / 1'000)};
}

FileDescriptor OpenTemporary(int root, const std::string& path) {
  return FileDescriptor(
      ::openat(root, path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
}

}  // namespace tarn::storage
