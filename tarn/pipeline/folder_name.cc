#include "tarn/pipeline/folder_name.h"

#include <algorithm>

#include "tarn/tree/node.h"

namespace tarn::pipeline {

namespace {

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

}  // namespace

std::string ReadFolderName(YamlReader& keys, std::string_view key, const std::string& otherwise) {
  std::string name = keys.Text(key, otherwise);
  const Status valid = tree::CheckDisplayName(name);
  if (!valid.ok()) {
    keys.Complain(key, valid.message());
  } else if (std::any_of(name.begin(), name.end(), IsControl)) {
    keys.Complain(key, "a name cannot hold control characters");
  } else if (name.front() == ' ' || name.back() == ' ') {
    keys.Complain(key, "a name cannot begin or end with a blank");
  }
  return name;
}

}  // namespace tarn::pipeline
