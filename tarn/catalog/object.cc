#include "tarn/catalog/object.h"

namespace tarn::catalog {

std::string_view ObjectKindName(ObjectKind kind) {
  return kind == ObjectKind::kTable ? "table" : "view";
}

std::string Identifier::ToString() const {
  std::string text;
  for (const std::string& level : levels) {
    text += level + ".";
  }
  return text + name;
}

}  // namespace tarn::catalog
