#include "tarn/base/rid.h"

#include <cctype>

namespace tarn {

namespace {

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// One part between dots: its first character must pass `first`, the others may also be dashes.
bool IsPart(std::string_view part, bool digit_first, bool may_be_empty) {
  if (part.empty()) {
    return may_be_empty;
  }
  if (!IsLower(part[0]) && !(digit_first && IsDigit(part[0]))) {
    return false;
  }
  for (const char c : part) {
    if (!IsLower(c) && !IsDigit(c) && c != '-') {
      return false;
    }
  }
  return true;
}

bool IsLocator(std::string_view part) {
  if (part.empty()) {
    return false;
  }
  for (const char c : part) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_' && c != '-') {
      return false;
    }
  }
  return true;
}

}  // namespace

bool IsRid(std::string_view text) {
  if (!text.starts_with("ri.")) {
    return false;
  }
  std::string_view rest = text.substr(3);
  for (int index = 0; index < 3; ++index) {
    const size_t dot = rest.find('.');
    if (dot == std::string_view::npos ||
        !IsPart(rest.substr(0, dot), /*digit_first=*/index == 1, /*may_be_empty=*/index == 1)) {
      return false;
    }
    rest = rest.substr(dot + 1);
  }
  return IsLocator(rest);
}

Result<Rid> Rid::Parse(std::string_view text) {
  if (!IsRid(text)) {
    return Status::InvalidArgument("not a resource identifier: \"" + std::string(text) + "\"");
  }
  return Rid(std::string(text));
}

Rid Rid::Make(std::string_view service, std::string_view type, const Uuid& locator) {
  std::string text = "ri.";
  text.append(service).append(".main.").append(type).append(".").append(locator.ToString());
  return Rid(std::move(text));
}

std::string_view Rid::Part(int index) const {
  std::string_view rest = text_;
  for (int i = 0; i < index; ++i) {
    const size_t dot = rest.find('.');
    if (dot == std::string_view::npos) {
      return {};
    }
    rest = rest.substr(dot + 1);
  }
  return index == 4 ? rest : rest.substr(0, rest.find('.'));
}

std::string_view Rid::service() const { return Part(1); }
std::string_view Rid::type() const { return Part(3); }
std::string_view Rid::locator() const { return Part(4); }

}  // namespace tarn
