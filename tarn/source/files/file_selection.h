// FileSelection: the include and exclude rules of one landing task.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/source/files/path_pattern.h"

namespace tarn::source::files {

/// Value. Excludes win over includes.
class FileSelection {
 public:
  /// `exclude_folders` are plain folders, with or without a slash at the end: all below is out.
  /// Errors: kInvalidArgument without an include pattern, or on a bad one.
  static Result<FileSelection> Parse(const std::vector<std::string>& paths,
                                     const std::vector<std::string>& exclude,
                                     const std::vector<std::string>& exclude_folders);

  [[nodiscard]] const std::vector<PathPattern>& patterns() const { return patterns_; }
  /// The rule that excludes `key`, as it was written.
  [[nodiscard]] std::optional<std::string> ExcludedBy(std::string_view key) const;

 private:
  std::vector<PathPattern> patterns_;
  std::vector<PathPattern> exclude_;
  std::vector<std::string> exclude_folders_;  // Each with a slash at the end.
};

}  // namespace tarn::source::files
