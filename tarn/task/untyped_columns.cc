#include "tarn/task/untyped_columns.h"

#include <string>

namespace tarn::task {

namespace {

void Collect(const std::vector<format::Field>& fields, std::vector<std::string>& path,
             std::vector<std::vector<std::string>>& untyped) {
  for (const format::Field& field : fields) {
    path.push_back(field.name);
    if (field.type.detail == format::FieldDetail::kUntyped) {
      untyped.push_back(path);
    } else if (field.type.kind == format::FieldKind::kStruct) {
      Collect(field.type.children, path, untyped);
    }
    path.pop_back();
  }
}

}  // namespace

void LeaveOutUntyped(const std::vector<format::Field>& fields, transform::MappingSpec& spec) {
  spec.untyped.clear();
  std::vector<std::string> path;
  Collect(fields, path, spec.untyped);
}

}  // namespace tarn::task
