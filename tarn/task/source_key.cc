#include "tarn/task/source_key.h"

#include <algorithm>

#include "tarn/format/column_node.h"

namespace tarn::task {

bool TakesSourceKey(const transform::MappingSpec& mapping) {
  return mapping.mode == transform::Mode::kMerge && mapping.key.empty();
}

Result<std::vector<std::string>> SourceKeyOf(const landing::SourceKeys& keys,
                                             const transform::MappingSpec& mapping) {
  TARN_ASSIGN_OR_RETURN(std::vector<std::string> key, keys.Common());
  for (std::string& name : key) {
    const auto renamed =
        std::find_if(mapping.rename.begin(), mapping.rename.end(), [&](const auto& rename) {
          return format::FoldCase(rename.from) == format::FoldCase(name);
        });
    if (renamed != mapping.rename.end()) {
      name = renamed->to;
    }
  }
  return key;
}

}  // namespace tarn::task
