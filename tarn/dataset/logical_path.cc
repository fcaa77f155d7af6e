#include "tarn/dataset/logical_path.h"

#include <string>

#include "tarn/base/json_text.h"
#include "tarn/base/utf8.h"

namespace tarn::dataset {

namespace {

// What is wrong with the path, or null.
const char* Fault(std::string_view path) {
  if (path.empty()) {
    return "it is empty";
  }
  if (path.size() > kPathBytesMax) {
    return "it is longer than 4096 bytes";
  }
  if (path.front() == '/') {
    return "it begins with a slash";
  }
  if (path.find('\0') != std::string_view::npos) {
    return "it contains a NUL";
  }
  if (!IsValidUtf8(path)) {
    return "it is not UTF-8";
  }
  size_t begin = 0;
  while (begin <= path.size()) {
    const size_t slash = std::min(path.find('/', begin), path.size());
    const std::string_view segment = path.substr(begin, slash - begin);
    if (segment.empty()) {
      return "it has an empty segment";
    }
    if (segment == "." || segment == "..") {
      return "it has a segment \".\" or \"..\"";
    }
    begin = slash + 1;
  }
  return nullptr;
}

}  // namespace

Status CheckLogicalPath(std::string_view path) {
  const char* const fault = Fault(path);
  if (fault == nullptr) {
    return Status::Ok();
  }
  const std::string_view shown = path.substr(0, kPathBytesMax);
  return Status::InvalidArgument("file path " + JsonString(path.substr(0, 200)) +
                                 " is not valid: " + fault)
      .WithReason("InvalidFilePath", JsonObject({{"filePath", shown}}));
}

}  // namespace tarn::dataset
