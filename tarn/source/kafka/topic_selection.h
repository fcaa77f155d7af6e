// TopicSelection: which topics of a cluster a task reads. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"

namespace tarn::source::kafka {

/// True when `text` matches `pattern`, in which % stands for any characters. Case counts.
bool MatchesTopic(std::string_view pattern, std::string_view text);

/// Names and patterns with %. Topics of the cluster itself (names that begin with __) are only read
/// by name. Value.
class TopicSelection {
 public:
  /// Errors: kInvalidArgument when there is no topic, or a name cannot be one.
  static Result<TopicSelection> Make(std::vector<std::string> topics,
                                     std::vector<std::string> exclude);

  [[nodiscard]] bool Matches(std::string_view topic) const;
  /// The topics given by name: they have to be there.
  [[nodiscard]] std::vector<std::string> named() const;
  /// True when topics may come that nobody named.
  [[nodiscard]] bool has_patterns() const;

 private:
  std::vector<std::string> topics_;
  std::vector<std::string> exclude_;
};

}  // namespace tarn::source::kafka
