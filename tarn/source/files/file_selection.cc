#include "tarn/source/files/file_selection.h"

#include "tarn/storage/object_key.h"

namespace tarn::source::files {

Result<FileSelection> FileSelection::Parse(const std::vector<std::string>& paths,
                                           const std::vector<std::string>& exclude,
                                           const std::vector<std::string>& exclude_folders) {
  if (paths.empty()) {
    return Status::InvalidArgument("no path pattern: name at least one, such as \"*\"");
  }
  FileSelection selection;
  for (const std::string& text : paths) {
    TARN_ASSIGN_OR_RETURN(PathPattern pattern, PathPattern::Parse(text));
    selection.patterns_.push_back(std::move(pattern));
  }
  for (const std::string& text : exclude) {
    TARN_ASSIGN_OR_RETURN(PathPattern pattern, PathPattern::Parse(text));
    selection.exclude_.push_back(std::move(pattern));
  }
  for (std::string folder : exclude_folders) {
    if (folder.ends_with('/')) {
      folder.pop_back();
    }
    TARN_RETURN_IF_ERROR(storage::CheckKey(folder));
    selection.exclude_folders_.push_back(folder + "/");
  }
  return selection;
}

std::optional<std::string> FileSelection::ExcludedBy(std::string_view key) const {
  for (const PathPattern& pattern : exclude_) {
    if (pattern.Match(key)) {
      return pattern.text();
    }
  }
  for (const std::string& folder : exclude_folders_) {
    if (key.starts_with(folder)) {
      return folder;
    }
  }
  return std::nullopt;
}

}  // namespace tarn::source::files
