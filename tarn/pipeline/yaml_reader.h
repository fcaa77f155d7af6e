// YamlReader: reads one YAML document key by key, with the line and column of every complaint.
//
// Every key must be asked for: what is left over is unknown, and an error. Only for this room.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/pipeline/variables.h"

namespace YAML {
class Node;
}

namespace tarn::pipeline {

/// A mapping of the document under its path ("landing.orders.commit"). One owner thread.
///
/// The readers of one key return the value, or `otherwise` when the key is absent. The first
/// complaint of the whole document is kept and given by `status`; after it, readers go on with
/// defaults, so that callers need not check each call.
class YamlReader {
 public:
  /// Parses `text`. Errors: kInvalidArgument "line 3, column 5: …" for what is no YAML, a repeated
  /// key, or a document that is no mapping.
  static Result<YamlReader> Parse(std::string_view text);
  /// From here on `${NAME}` in values of this mapping and all below it stands for a value of
  /// `variables`.
  void Expand(Variables variables);
  YamlReader(const YamlReader& other);
  YamlReader& operator=(const YamlReader& other);
  ~YamlReader();

  [[nodiscard]] bool Has(std::string_view key) const;
  std::string Text(std::string_view key, std::string otherwise = {});
  /// A text that must be there.
  std::string RequiredText(std::string_view key);
  std::vector<std::string> Texts(std::string_view key, std::vector<std::string> otherwise = {});
  bool Flag(std::string_view key, bool otherwise);
  int64_t Integer(std::string_view key, int64_t otherwise);
  /// A whole number of at least `least`.
  int64_t Count(std::string_view key, int64_t least, int64_t otherwise);
  int64_t Size(std::string_view key, int64_t otherwise_bytes);
  double Ratio(std::string_view key, double otherwise);
  /// Nothing for `off`.
  std::optional<std::chrono::microseconds> Duration(
      std::string_view key, std::optional<std::chrono::microseconds> otherwise);
  /// Longer than zero, and not `off`.
  std::chrono::milliseconds Period(std::string_view key, std::chrono::milliseconds otherwise);
  /// One of `names`, by index.
  size_t Choice(std::string_view key, const std::vector<std::string_view>& names, size_t otherwise);

  /// The mapping below a key; an empty one when it is absent.
  YamlReader Child(std::string_view key);
  /// Names of the keys in order of the text.
  [[nodiscard]] std::vector<std::string> Keys() const;
  /// True when the value of `key` is a mapping (else a scalar or list).
  [[nodiscard]] bool IsMapping(std::string_view key) const;

  /// Keys that the format has but this version does not offer.
  void Refuse(const std::vector<std::string_view>& keys);
  /// Complains about every key that was not asked for.
  void Finish();
  /// Complains about the value of `key` (empty: about the mapping itself).
  void Complain(std::string_view key, std::string_view message);

  [[nodiscard]] Status status() const;

 private:
  struct Document;
  YamlReader(std::shared_ptr<Document> document, std::unique_ptr<YAML::Node> node,
             std::string path);
  [[nodiscard]] YAML::Node Find(std::string_view key) const;
  std::string Expanded(std::string_view key, const std::string& text);
  YAML::Node Use(std::string_view key);
  std::optional<std::string> Scalar(std::string_view key);
  [[nodiscard]] std::string PathOf(std::string_view key) const;

  std::shared_ptr<Document> document_;
  std::unique_ptr<YAML::Node> node_;
  std::string path_;
  std::shared_ptr<const Variables> variables_;  // Null: `${` means nothing here.
  std::set<std::string, std::less<>> used_;
};

}  // namespace tarn::pipeline
