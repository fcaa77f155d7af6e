// CatalogObject: a table or view as the catalog knows it: its place in the tree and the pointer to
// its newest metadata file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/rid.h"
#include "tarn/base/status.h"

namespace tarn::catalog {

/// Values are stored; never renumber.
enum class ObjectKind : uint8_t { kTable = 0, kView = 1 };

/// "table" or "view".
std::string_view ObjectKindName(ObjectKind kind);

/// Who may commit to a table. Values are stored; never renumber.
enum class Writers : uint8_t {
  kAnyone = 0,   // Whoever has the role for it.
  kProduct = 1,  // Internal and published tables: only tarn's own writers.
};

/// Value, as it was when read.
struct CatalogObject {
  Rid rid;
  ObjectKind kind = ObjectKind::kTable;
  Rid folder;  // The namespace it lives in.
  std::string name;
  std::string uuid;               // Of the metadata.
  std::string metadata_location;  // URI.
  Writers writers = Writers::kAnyone;
  std::string location{};  // URI of the folder that is its own.
  friend bool operator==(const CatalogObject&, const CatalogObject&) = default;
};

/// A name on the wire and in SQL: namespace levels below the warehouse (a project), then the name.
struct Identifier {
  std::vector<std::string> levels;
  std::string name;

  /// "a.b.name".
  [[nodiscard]] std::string ToString() const;
  friend bool operator==(const Identifier&, const Identifier&) = default;
};

}  // namespace tarn::catalog
