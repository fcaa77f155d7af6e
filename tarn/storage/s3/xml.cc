#include "tarn/storage/s3/xml.h"

#include <charconv>

#include <fmt/core.h>

namespace tarn::storage::s3 {

namespace {

constexpr int kDepthMax = 32;

void AppendUtf8(uint32_t code, std::string& out) {
  const auto put = [&out](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<XmlElement> Document() {
    TARN_RETURN_IF_ERROR(SkipMisc());
    TARN_ASSIGN_OR_RETURN(XmlElement root, Element(0));
    TARN_RETURN_IF_ERROR(SkipMisc());
    return at_ == text_.size() ? Result<XmlElement>(std::move(root)) : Bad("text after the end");
  }

 private:
  [[nodiscard]] Status Bad(std::string_view what) const {
    return Status::Corruption(fmt::format("XML is wrong at byte {}: {}", at_, what));
  }
  [[nodiscard]] bool At(std::string_view prefix) const {
    return text_.substr(at_).starts_with(prefix);
  }
  Status SkipPast(std::string_view end) {
    const size_t found = text_.find(end, at_);
    if (found == std::string_view::npos) {
      return Bad("no end of what begins here");
    }
    at_ = found + end.size();
    return Status::Ok();
  }
  void SkipBlanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) {
      ++at_;
    }
  }
  // Blanks, comments and instructions outside of the root.
  Status SkipMisc() {
    if (At("\xEF\xBB\xBF")) {
      at_ += 3;
    }
    for (SkipBlanks(); At("<?") || At("<!--"); SkipBlanks()) {
      TARN_RETURN_IF_ERROR(SkipPast(At("<?") ? "?>" : "-->"));
    }
    return Status::Ok();
  }

  Result<std::string> Name() {
    const size_t begin = at_;
    while (at_ < text_.size() && std::string_view(" \t\r\n/>=<").find(text_[at_]) == text_.npos) {
      ++at_;
    }
    if (at_ == begin) {
      return Bad("a name is missing");
    }
    const std::string_view name = text_.substr(begin, at_ - begin);
    return std::string(name.substr(name.find(':') + 1));
  }

  // To the '>' of a start tag; true when the element is empty.
  Result<bool> SkipAttributes() {
    for (SkipBlanks(); at_ < text_.size(); SkipBlanks()) {
      if (At(">")) {
        ++at_;
        return false;
      }
      if (At("/>")) {
        at_ += 2;
        return true;
      }
      TARN_RETURN_IF_ERROR(Name());
      SkipBlanks();
      if (!At("=")) {
        return Bad("an attribute has no value");
      }
      ++at_;
      SkipBlanks();
      if (!At("\"") && !At("'")) {
        return Bad("a value is not quoted");
      }
      const std::string_view quote = text_.substr(at_++, 1);
      TARN_RETURN_IF_ERROR(SkipPast(quote));
    }
    return Bad("a tag has no end");
  }

  Status Entity(std::string& out) {
    const size_t end = text_.find(';', at_);
    if (end == std::string_view::npos || end - at_ > 12) {
      return Bad("an entity has no end");
    }
    const std::string_view name = text_.substr(at_ + 1, end - at_ - 1);
    if (name == "amp" || name == "lt" || name == "gt" || name == "quot" || name == "apos") {
      out += name == "amp"    ? '&'
             : name == "lt"   ? '<'
             : name == "gt"   ? '>'
             : name == "quot" ? '"'
                              : '\'';
    } else if (name.starts_with('#')) {
      const bool hex = name.size() > 1 && (name[1] == 'x' || name[1] == 'X');
      const std::string_view digits = name.substr(hex ? 2 : 1);
      uint32_t code = 0;
      const auto [stop, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
      if (error != std::errc() || stop != digits.data() + digits.size() || code > 0x10FFFF ||
          (code >= 0xD800 && code < 0xE000)) {
        return Bad("a character reference is wrong");
      }
      AppendUtf8(code, out);
    } else {
      return Bad("an unknown entity");
    }
    at_ = end + 1;
    return Status::Ok();
  }

  Result<XmlElement> Element(int depth) {
    if (!At("<") || At("<!") || At("</")) {
      return Bad("an element is missing");
    }
    if (depth == kDepthMax) {
      return Bad("too many levels");
    }
    ++at_;
    XmlElement element;
    TARN_ASSIGN_OR_RETURN(element.name, Name());
    TARN_ASSIGN_OR_RETURN(const bool empty, SkipAttributes());
    if (empty) {
      return element;
    }
    while (!At("</")) {
      TARN_RETURN_IF_ERROR(Content(element, depth));
    }
    at_ += 2;
    TARN_ASSIGN_OR_RETURN(const std::string closed, Name());
    SkipBlanks();
    if (closed != element.name || !At(">")) {
      return Bad("the end of another element");
    }
    ++at_;
    return element;
  }

  Status Content(XmlElement& element, int depth) {
    if (at_ >= text_.size()) {
      return Bad("the document ends inside an element");
    }
    if (At("<![CDATA[")) {
      const size_t begin = at_ + 9;
      TARN_RETURN_IF_ERROR(SkipPast("]]>"));
      element.text += text_.substr(begin, at_ - 3 - begin);
    } else if (At("<!--") || At("<?")) {
      return SkipPast(At("<?") ? "?>" : "-->");
    } else if (At("<")) {
      TARN_ASSIGN_OR_RETURN(XmlElement child, Element(depth + 1));
      element.children.push_back(std::move(child));
    } else if (At("&")) {
      return Entity(element.text);
    } else {
      const size_t end = std::min(text_.find_first_of("<&", at_), text_.size());
      element.text += text_.substr(at_, end - at_);
      at_ = end;
    }
    return Status::Ok();
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const XmlElement* XmlElement::Find(std::string_view child) const {
  for (const XmlElement& element : children) {
    if (element.name == child) {
      return &element;
    }
  }
  return nullptr;
}

std::string XmlElement::TextOf(std::string_view child) const {
  const XmlElement* found = Find(child);
  return found == nullptr ? std::string() : found->text;
}

Result<XmlElement> ParseXml(std::string_view document) { return Parser(document).Document(); }

std::string EscapeXml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("&#{};", static_cast<int>(c));
        } else {
          out += c;
        }
    }
  }
  return out;
}

}  // namespace tarn::storage::s3
