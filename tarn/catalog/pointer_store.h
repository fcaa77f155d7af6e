// PointerStore: the catalog's rows in the metastore: which metadata file is a table's or view's
// newest, moved only by compare-and-set.
//
// Functions work in the caller's SQL transaction, so one commit can move several pointers and
// commit dataset transactions beside them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/catalog/object.h"
#include "tarn/metastore/database.h"
#include "tarn/tree/tree.h"

namespace tarn::catalog {

std::vector<metastore::Migration> Migrations();

struct ObjectDefinition {
  ObjectKind kind = ObjectKind::kTable;
  Rid folder;
  std::string name;
  std::string uuid;
  std::string metadata_location;
  Writers writers = Writers::kAnyone;
  std::string by;  // User id.
};

/// Names the object in the tree and stores its pointer.
/// Errors: kAlreadyExists "Table already exists: …"; those of Tree::Create.
Result<CatalogObject> CreateObject(metastore::SqlTransaction& sql, tree::Tree& tree,
                                   const ObjectDefinition& object);

/// Nothing when there is none, or it is in the trash.
Result<std::optional<CatalogObject>> FindObject(metastore::SqlTransaction& sql, const Rid& rid);
Result<std::optional<CatalogObject>> FindObject(metastore::SqlTransaction& sql, const Rid& folder,
                                                std::string_view name);

struct ObjectPage {
  std::vector<CatalogObject> objects;  // By bytes of their names.
  bool truncated = false;              // More follow: list again after the last name.
};
/// Tables or views of a folder whose names come after `after`. `limit`: 1..10,000.
Result<ObjectPage> ListObjects(metastore::SqlTransaction& sql, const Rid& folder, ObjectKind kind,
                               std::string_view after, int64_t limit);

/// One compare-and-set.
struct PointerMove {
  Rid rid;
  std::string expected_location;
  std::string next_location;
};
/// Errors: kConflict when the pointer is not `expected_location` (re-read and retry); kNotFound
/// when the object is gone.
Status MovePointer(metastore::SqlTransaction& sql, const PointerMove& move);

/// Takes the object out of the catalog and the tree's live names. Its files stay.
Status DropObject(metastore::SqlTransaction& sql, const Rid& rid);

/// The folder of a namespace below a project. Errors: kNotFound "Namespace does not exist: a.b".
Result<Rid> GetNamespace(metastore::SqlTransaction& sql, const Rid& project,
                         const std::vector<std::string>& levels);

}  // namespace tarn::catalog
