// Namespaces: folders of the tree with properties, made and removed through the catalog.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tarn/base/rid.h"
#include "tarn/metastore/database.h"
#include "tarn/tree/tree.h"

namespace tarn::catalog {

using NamespaceProperties = std::map<std::string, std::string>;

struct NamespaceDefinition {
  Rid parent;  // Folder or project.
  std::string name;
  NamespaceProperties properties;
  std::string by;  // User id.
};
/// Errors: kAlreadyExists, also for a name that differs only in the case of ASCII letters; those of
/// Tree::Create.
Result<Rid> CreateNamespace(metastore::SqlTransaction& sql, tree::Tree& tree,
                            const NamespaceDefinition& definition);

/// Empty for folders that were never given any.
Result<NamespaceProperties> ReadProperties(metastore::SqlTransaction& sql, const Rid& folder);

struct PropertyChange {
  std::vector<std::string> removals;
  NamespaceProperties updates;
};
struct PropertyReport {
  std::vector<std::string> updated;
  std::vector<std::string> removed;
  std::vector<std::string> missing;  // To be removed, but not there.
};
/// Errors: kInvalidArgument for a key that is in both.
Result<PropertyReport> ChangeProperties(metastore::SqlTransaction& sql, const Rid& folder,
                                        const PropertyChange& change);

/// Removes a folder that holds nothing. Resources of it that are in the trash stay there with it.
/// Errors: kFailedPrecondition when it is not empty, naming what it holds.
Status DropNamespace(metastore::SqlTransaction& sql, tree::Tree& tree, const Rid& folder,
                     const std::string& by);

}  // namespace tarn::catalog
