#include "tarn/lakehouse/kept_changes.h"

#include <algorithm>
#include <iterator>

#include "tarn/iceberg/literal.h"
#include "tarn/lakehouse/header_columns.h"

namespace tarn::lakehouse {

std::vector<FileScanTask> TakeApplied(TableFiles& files, std::string_view applied_identifier) {
  const auto first = std::stable_partition(
      files.changes.begin(), files.changes.end(),
      [&](const FileScanTask& task) { return LowestIdentifier(task.file) > applied_identifier; });
  std::vector<FileScanTask> applied(std::make_move_iterator(first),
                                    std::make_move_iterator(files.changes.end()));
  files.changes.erase(first, files.changes.end());
  return applied;
}

Result<std::vector<iceberg::DataFile>> Outlived(
    const std::vector<FileScanTask>& applied, const std::optional<std::chrono::microseconds>& keep,
    Timestamp now) {
  std::vector<iceberg::DataFile> outlived;
  for (const FileScanTask& task : applied) {
    if (keep) {
      const std::string* newest =
          task.file.upper_bounds.Find(Spec(HeaderColumn::kInsertedTimestamp).field_id);
      if (newest == nullptr) {
        continue;
      }
      TARN_ASSIGN_OR_RETURN(const iceberg::Literal micros,
                            iceberg::DecodeLiteral(iceberg::Type::TimestampTz(), *newest));
      if (FromMicros(micros.AsLong()) + *keep >= now) {
        continue;
      }
    }
    outlived.push_back(task.file);
  }
  return outlived;
}

}  // namespace tarn::lakehouse
