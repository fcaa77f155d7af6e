#include "tarn/tree/node.h"

#include <algorithm>

#include "tarn/base/json_text.h"
#include "tarn/base/utf8.h"

namespace tarn::tree {

namespace {
constexpr int64_t kNameCharactersMax = 700;
}  // namespace

std::string_view NodeTypeName(NodeType type) {
  switch (type) {
    case NodeType::kRoot:
      return "root";
    case NodeType::kSpace:
      return "space";
    case NodeType::kProject:
      return "project";
    case NodeType::kFolder:
      return "folder";
    case NodeType::kDataset:
      return "dataset";
    case NodeType::kTable:
      return "table";
    case NodeType::kView:
      return "view";
    case NodeType::kPipeline:
      return "pipeline";
  }
  return "unknown";
}

bool IsFolderLike(NodeType type) { return type <= NodeType::kFolder; }

const Rid& RootRid() {
  static const Rid kRoot = Rid::Parse("ri.compass.main.folder.0").value();
  return kRoot;
}

Rid NewRid(NodeType type, UuidGenerator& ids) {
  return IsFolderLike(type) ? Rid::Make("compass", "folder", ids.NextV7())
                            : Rid::Make("foundry", NodeTypeName(type), ids.NextV7());
}

Status CheckDisplayName(std::string_view name) {
  if (name.empty()) {
    return Status::InvalidArgument("the display name is empty").WithReason("MissingDisplayName");
  }
  const auto invalid = [&](std::string_view why) {
    return Status::InvalidArgument("display name " + JsonString(name) + " " + std::string(why))
        .WithReason("InvalidDisplayName", JsonObject({{"displayName", name}}));
  };
  if (!IsValidUtf8(name)) {
    return invalid("is not valid UTF-8");
  }
  // Every character has exactly one byte that does not continue another.
  const auto characters = std::count_if(name.begin(), name.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  });
  if (characters > kNameCharactersMax) {
    return invalid("has " + std::to_string(characters) + " characters, at most 700 are allowed");
  }
  if (name == "." || name == "..") {
    return invalid("has a meaning in paths");
  }
  if (name.find('/') != std::string_view::npos || name.find('\0') != std::string_view::npos) {
    return invalid("contains a slash or NUL");
  }
  return {};
}

}  // namespace tarn::tree
