// XML as S3 answers in it: elements and text. Attributes, namespaces, comments and processing
// instructions are skipped, document types refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"

namespace tarn::storage::s3 {

/// An element. Value.
struct XmlElement {
  std::string name;  // Without namespace prefix.
  std::string text;  // All text directly inside.
  std::vector<XmlElement> children;

  /// The first child of that name, or nullptr.
  [[nodiscard]] const XmlElement* Find(std::string_view child) const;
  /// The text of the first child of that name, or empty.
  [[nodiscard]] std::string TextOf(std::string_view child) const;
};

/// The root element of a document. Errors: kCorruption naming the byte where it is wrong, also for
/// more than 32 levels.
Result<XmlElement> ParseXml(std::string_view document);

/// Text as it stands inside an element.
std::string EscapeXml(std::string_view text);

}  // namespace tarn::storage::s3
