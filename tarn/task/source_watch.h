// SourceWatch: notices that the folder of a file source went away, or that another folder has its
// name now: whoever reads it has to open it again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tarn/base/status.h"

namespace tarn::task {

/// Remembers the folder as it is when this is made. Value.
class SourceWatch {
 public:
  /// `uri` of a source; of other schemes than file: nothing is ever noticed.
  explicit SourceWatch(std::string_view uri);

  /// Errors: kUnavailable naming the folder and what became of it. Cost: one stat.
  [[nodiscard]] Status Check() const;

 private:
  struct Identity {
    uint64_t device = 0;
    uint64_t inode = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  static Result<Identity> Look(const std::string& path);

  std::string path_;  // Empty = not watched.
  Identity identity_;
};

}  // namespace tarn::task
