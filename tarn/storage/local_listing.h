// Listing a directory tree in the byte order of its keys: the reading half of LocalStore.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

#include "tarn/storage/object_store.h"
#include "tarn/storage/posix_file.h"

namespace tarn::storage {

/// Where LocalStore keeps objects that are being written.
constexpr std::string_view kTemporaryDirectory = ".tmp";

enum class EntryKind { kFile, kDirectory, kOther };

struct DirectoryEntry {
  std::string name;
  EntryKind kind = EntryKind::kOther;
};

/// The entries of an open directory without "." and "..", in no order. `path` is for messages.
Result<std::vector<DirectoryEntry>> ReadDirectory(int directory, std::string_view path);

/// One page of the regular files below `root`. `hidden` is a name directly below it to leave out,
/// empty = none. A directory that ends before `start_after` is not opened.
Result<ListPage> ListDirectories(int root, const ListRequest& request, std::string_view hidden);

ObjectMeta MetaOf(std::string key, const struct stat& status);

/// Creates `path` below `root` for writing, failing when it exists.
FileDescriptor OpenTemporary(int root, const std::string& path);

}  // namespace tarn::storage
