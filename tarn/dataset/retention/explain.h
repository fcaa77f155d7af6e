// Why the bytes of a file are kept, or when they go.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/dataset/file_view.h"
#include "tarn/dataset/ids.h"
#include "tarn/dataset/retention/retention_run.h"

namespace tarn::dataset::retention {

enum class FileFate : uint8_t {
  kKept,     // Some view that no mark concerns shows it.
  kMarked,   // Every view that shows it is marked; it goes once the last mark is due.
  kDoomed,   // No readable view shows it: the next sweep takes it, unless it has already.
  kForeign,  // It was imported without copy: never removed.
};

/// "kept", "marked", "doomed", "foreign".
std::string_view FileFateName(FileFate fate);

struct FileMark {
  TransactionRid transaction;
  std::string policy;
  Timestamp sweep_at{};
};

struct Explanation {
  File file;
  FileFate fate = FileFate::kDoomed;
  std::vector<std::string> branches;     // Whose latest view shows it; the first 100.
  std::vector<std::string> tags;         // Likewise.
  int64_t views = 0;                     // Committed transactions whose readable view shows it.
  std::vector<TransactionRid> examples;  // Of them, the newest 10.
  std::vector<FileMark> marks;           // Of them, the marked ones; the first 100.
};

struct ExplainRequest {
  DatasetRid dataset;
  TransactionRid transaction;  // In whose view the path is meant; may be one that is swept.
  std::string path;
};

/// Errors: TransactionNotFound; FileNotFoundOnTransactionRange. Cost: O(transactions of the view).
Result<Explanation> ExplainFile(const RetentionDeps& deps, const ExplainRequest& request);

}  // namespace tarn::dataset::retention
