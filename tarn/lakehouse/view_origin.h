// ViewOrigin: how a view of a target came to be, kept in the properties of its metadata, so that a
// reader can plan it from the files of the internal table instead of running its text.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/lakehouse/table_spec.h"

namespace tarn::lakehouse {

enum class TableView : uint8_t { kCurrent, kHistory };

/// Value.
struct ViewOrigin {
  TableView view = TableView::kCurrent;
  Mode mode = Mode::kMerge;
  std::string internal_schema;  // Folder of the internal table, in the view's project.
  std::string internal_name;
  std::string history_name;  // The history view beside the current one; empty without history.
  std::vector<std::string> key;
  std::vector<std::string> view_headers;
  NullKeys null_keys = NullKeys::kRejected;
  FoldOptions fold;
  friend bool operator==(const ViewOrigin&, const ViewOrigin&) = default;
};

ViewOrigin OriginOf(const TableSpec& spec, TableView view);

/// As properties: tarn.view, tarn.internal-schema, tarn.internal-table, tarn.mode, tarn.key, ….
std::map<std::string, std::string> FormatOrigin(const ViewOrigin& origin);

/// Nothing when the properties have no tarn.view. Anyone can write properties: believe them only of
/// views that nobody but tarn may commit to. Errors: kCorruption naming the property.
Result<std::optional<ViewOrigin>> ParseOrigin(const std::map<std::string, std::string>& properties);

}  // namespace tarn::lakehouse
