#include "tarn/storage/object_key.h"

#include "tarn/base/json_text.h"
#include "tarn/base/utf8.h"

namespace tarn::storage {

namespace {

Status BadKey(std::string_view key, std::string_view fault) {
  return Status::InvalidArgument("bad object key " + QuoteKey(key) + ": " + std::string(fault));
}

}  // namespace

std::string QuoteKey(std::string_view key) {
  constexpr size_t kShownMax = 200;
  if (key.size() <= kShownMax) {
    return JsonString(key);
  }
  return JsonString(key.substr(0, kShownMax)) + "… (" + std::to_string(key.size()) + " bytes)";
}

Status CheckKey(std::string_view key) {
  if (key.empty()) {
    return BadKey(key, "it is empty");
  }
  if (key.size() > kKeyBytesMax) {
    return BadKey(key, "it has more than 1024 bytes");
  }
  if (key.find('\0') != std::string_view::npos) {
    return BadKey(key, "it contains NUL");
  }
  if (!IsValidUtf8(key)) {
    return BadKey(key, "it is not UTF-8");
  }
  std::string_view rest = key;
  for (;;) {
    const size_t slash = rest.find('/');
    const std::string_view segment = rest.substr(0, slash);
    if (segment.empty()) {
      return BadKey(key, "it has an empty segment (a slash at an end, or two in a row)");
    }
    if (segment == "." || segment == "..") {
      return BadKey(key, "it has a segment \".\" or \"..\"");
    }
    if (slash == std::string_view::npos) {
      return Status::Ok();
    }
    rest.remove_prefix(slash + 1);
  }
}

Status CheckListRequest(const ListRequest& request) {
  if (request.limit < 1 || request.limit > 10'000) {
    return Status::InvalidArgument("a list page has 1 to 10000 objects, not " +
                                   std::to_string(request.limit));
  }
  return Status::Ok();
}

Result<std::string> PathOfFileUri(std::string_view uri) {
  std::string_view path = uri;
  if (path.starts_with("file:")) {
    path.remove_prefix(5);
    if (path.starts_with("//localhost/")) {
      path.remove_prefix(11);
    } else if (path.starts_with("///")) {
      path.remove_prefix(2);
    }
  }
  if (!path.starts_with('/') || path.starts_with("//")) {
    return Status::InvalidArgument("not an absolute file URI such as file:///data/in: " +
                                   QuoteKey(uri));
  }
  return std::string(path);
}

}  // namespace tarn::storage
