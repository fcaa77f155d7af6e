#include "tarn/pipeline/yaml_check.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace tarn::pipeline {

namespace {

constexpr int64_t kValuesMax = 100'000;
constexpr size_t kLevelsMax = 200;

// Counts values as if aliases were replaced. Events do not replace them, so there are never more
// than the text has.
class ValueCount final : public YAML::EventHandler {
 public:
  [[nodiscard]] const std::string& refused() const { return refused_; }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override { sizes_.clear(); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { Leaf(mark, anchor, 1); }
  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                const std::string& /*value*/) override {
    Leaf(mark, anchor, 1);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = sizes_.find(anchor);
    if (known == sizes_.end()) {
      Refuse(mark, "an alias stands inside the value that it names");
      return;
    }
    Leaf(mark, YAML::NullAnchor, known->second);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(mark, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(mark, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Level {
    YAML::anchor_t anchor = YAML::NullAnchor;
    int64_t values = 1;
  };

  void Refuse(const YAML::Mark& mark, const std::string& what) {
    if (refused_.empty()) {
      refused_ = fmt::format("line {}, column {}: {}", mark.line + 1, mark.column + 1, what);
    }
  }

  void Leaf(const YAML::Mark& mark, YAML::anchor_t anchor, int64_t values) {
    if (anchor != YAML::NullAnchor) {
      sizes_[anchor] = values;
    }
    Add(values);
    if (!levels_.empty() && levels_.back().values > kValuesMax) {
      Refuse(mark, fmt::format("more than {} values", kValuesMax));
    }
  }
  void Open(const YAML::Mark& mark, YAML::anchor_t anchor) {
    levels_.push_back({.anchor = anchor});
    if (levels_.size() > kLevelsMax) {
      Refuse(mark, fmt::format("more than {} levels", kLevelsMax));
    }
  }
  void Close() {
    const Level level = levels_.back();
    levels_.pop_back();
    if (level.anchor != YAML::NullAnchor) {
      sizes_[level.anchor] = level.values;
    }
    Add(level.values);
  }
  void Add(int64_t values) {
    if (!levels_.empty()) {
      levels_.back().values = std::min(levels_.back().values + values, kValuesMax + 1);
    }
  }

  std::string refused_;
  std::vector<Level> levels_;
  std::map<YAML::anchor_t, int64_t> sizes_;  // Of the anchors that are closed.
};

}  // namespace

Status CheckYaml(std::string_view text) {
  std::istringstream in{std::string(text)};
  ValueCount count;
  try {
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(count)) {
    }
  } catch (const YAML::Exception&) {
    return Status::Ok();  // The reader tells it, with its place.
  }
  return count.refused().empty() ? Status::Ok() : Status::InvalidArgument(count.refused());
}

}  // namespace tarn::pipeline
