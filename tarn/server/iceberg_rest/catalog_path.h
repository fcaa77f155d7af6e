// CatalogPath: the warehouse, namespace and name in the path of an Iceberg REST request.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/catalog/object.h"

namespace tarn::server::iceberg_rest {

/// Value.
struct CatalogPath {
  std::string prefix;               // Empty for the default warehouse.
  std::vector<std::string> levels;  // Of the namespace; empty where the path has none.
  std::string name;                 // Of the table or view; likewise.

  [[nodiscard]] catalog::Identifier identifier() const { return {levels, name}; }
};

/// Reads the raw target of a request, "/iceberg/v1[/prefix]/namespaces[/ns[/tables/name[/…]]]", or
/// one of the routes without a namespace, "/iceberg/v1[/prefix]/tables/rename" and the like.
///
/// Parts are decoded as form fields, since one client family writes blanks as '+'; levels of a
/// namespace are separated by the character 0x1F. Errors: kInvalidArgument on broken escapes.
Result<CatalogPath> ParseCatalogPath(std::string_view target);

/// "a.b", as messages name a namespace.
std::string FormatLevels(const std::vector<std::string>& levels);
/// Levels in one text, separated by 0x1F or, where there is none of it, as one level.
std::vector<std::string> SplitLevels(std::string_view text);

}  // namespace tarn::server::iceberg_rest
