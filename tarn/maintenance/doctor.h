// Doctor: what is wrong or slow with a table, and what to do about it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/catalog/catalog.h"

namespace tarn::maintenance {

enum class Severity : uint8_t { kNote, kWarning, kError };
/// "note", "warning", "error".
std::string_view SeverityName(Severity severity);

struct Finding {
  Severity severity = Severity::kNote;
  std::string finding;  // What was found, with its numbers.
  std::string advice;   // What to do; empty when there is nothing to do.
  friend bool operator==(const Finding&, const Finding&) = default;
};

struct DoctorOptions {
  int64_t files_checked_max = 10'000;  // Data and delete files whose presence is checked.
  int64_t missing_listed_max = 5;      // Missing files that are named.
};

/// Looks at the newest snapshot: files that are missing or have another size, manifests that cannot
/// be read, files smaller than they should be, deletes that slow reading down, long lists of
/// manifests, snapshots and metadata versions, properties nobody understands. Errors first.
///
/// Reads only. Errors: kNotFound; a table that is broken is no error but a finding.
/// Cost: all manifests of the newest snapshot and one request per file checked.
Result<std::vector<Finding>> DiagnoseTable(catalog::Catalog& catalog, const Rid& table,
                                           const DoctorOptions& options = {});

}  // namespace tarn::maintenance
