#include "tarn/source/kafka/topic_selection.h"

#include <algorithm>

#include <fmt/format.h>

namespace tarn::source::kafka {

namespace {

constexpr size_t kTopicBytesMax = 249;

bool IsPattern(std::string_view name) { return name.find('%') != std::string_view::npos; }

Status CheckName(std::string_view name) {
  const bool characters =
      name.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-%") ==
      std::string_view::npos;
  if (name.empty() || name == "." || name == ".." || name.size() > kTopicBytesMax || !characters) {
    return Status::InvalidArgument(fmt::format(
        "\"{}\" is no topic: at most {} letters, digits, '.', '_' and '-', and % for any "
        "characters",
        name, kTopicBytesMax));
  }
  return Status::Ok();
}

}  // namespace

bool MatchesTopic(std::string_view pattern, std::string_view text) {
  // Greedy with one place to go back to: linear but for the last %.
  size_t at = 0;
  size_t in = 0;
  size_t star = std::string_view::npos;
  size_t star_text = 0;
  while (at < text.size()) {
    if (in < pattern.size() && pattern[in] == '%') {
      star = in++;
      star_text = at;
    } else if (in < pattern.size() && pattern[in] == text[at]) {
      ++in;
      ++at;
    } else if (star != std::string_view::npos) {
      in = star + 1;
      at = ++star_text;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('%', in) == std::string_view::npos;
}

Result<TopicSelection> TopicSelection::Make(std::vector<std::string> topics,
                                            std::vector<std::string> exclude) {
  if (topics.empty()) {
    return Status::InvalidArgument("no topic is given");
  }
  for (const std::string& name : topics) {
    TARN_RETURN_IF_ERROR(CheckName(name));
  }
  for (const std::string& name : exclude) {
    TARN_RETURN_IF_ERROR(CheckName(name));
  }
  TopicSelection selection;
  selection.topics_ = std::move(topics);
  selection.exclude_ = std::move(exclude);
  return selection;
}

bool TopicSelection::Matches(std::string_view topic) const {
  const auto any = [&](const std::vector<std::string>& patterns) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
      return pattern == topic ||
             (IsPattern(pattern) && !topic.starts_with("__") && MatchesTopic(pattern, topic));
    });
  };
  return any(topics_) && !any(exclude_);
}

std::vector<std::string> TopicSelection::named() const {
  std::vector<std::string> names;
  for (const std::string& name : topics_) {
    if (!IsPattern(name) && Matches(name)) {
      names.push_back(name);
    }
  }
  return names;
}

bool TopicSelection::has_patterns() const {
  return std::any_of(topics_.begin(), topics_.end(),
                     [](const std::string& name) { return IsPattern(name); });
}

}  // namespace tarn::source::kafka
