#include "tarn/dataset/branch.h"

#include <algorithm>

#include "tarn/base/json_text.h"
#include "tarn/base/rid.h"
#include "tarn/base/utf8.h"
#include "tarn/base/uuid.h"

namespace tarn::dataset {

namespace {

constexpr std::ptrdiff_t kNameCharactersMax = 256;

// Characters, not bytes: continuation bytes of UTF-8 do not count.
std::ptrdiff_t CountCharacters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

bool IsControl(std::string_view text, size_t i) {
  const auto c = static_cast<unsigned char>(text[i]);
  if (c < 0x20 || c == 0x7F) {
    return true;
  }
  // U+0080 to U+009F.
  return c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
}

// Blank at the given end: ASCII blank, no-break space, the spaces U+2000 to U+200A, U+3000.
bool IsBlank(std::string_view character) {
  if (character == " " || character == "\xC2\xA0" || character == "\xE3\x80\x80") {
    return true;
  }
  return character.size() == 3 && character.starts_with("\xE2\x80") &&
         static_cast<unsigned char>(character[2]) <= 0x8A;
}

std::string_view FirstCharacter(std::string_view text) {
  size_t size = 1;
  while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) {
    ++size;
  }
  return text.substr(0, size);
}

std::string_view LastCharacter(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) {
    --begin;
  }
  return text.substr(begin);
}

// What is wrong with the name, or null.
const char* Fault(std::string_view name) {
  if (name.empty()) {
    return "it is empty";
  }
  if (!IsValidUtf8(name)) {
    return "it is not UTF-8";
  }
  if (CountCharacters(name) > kNameCharactersMax) {
    return "it is longer than 256 characters";
  }
  if (IsBlank(FirstCharacter(name)) || IsBlank(LastCharacter(name))) {
    return "it begins or ends with a blank";
  }
  for (size_t i = 0; i < name.size(); ++i) {
    if (IsControl(name, i)) {
      return "it contains a control character";
    }
  }
  // Anything that begins like an identifier, also a malformed one, would be taken for one.
  if (IsRid(name) || name.starts_with("ri.")) {
    return "it looks like a resource identifier";
  }
  if (Uuid::Parse(name).ok()) {
    return "it looks like a UUID";
  }
  return nullptr;
}

}  // namespace

Status CheckBranchName(std::string_view name) {
  const char* const fault = Fault(name);
  if (fault == nullptr) {
    return Status::Ok();
  }
  return Status::InvalidArgument("branch name " + JsonString(name.substr(0, 300)) +
                                 " is not valid: " + fault)
      .WithReason("InvalidBranchName", JsonObject({{"branchName", name.substr(0, 2048)}}));
}

}  // namespace tarn::dataset
