// PointerStore: the catalog's rows in the metastore: which metadata file is a table's or view's
// newest, moved only by compare-and-set.
//
// Names and places are the tree's: an object that is renamed, moved or put into the trash there is
// so here, through whatever door. Functions work in the caller's SQL transaction, so one commit can
// move several pointers and commit dataset transactions beside them.
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
  std::string by;          // User id.
  std::string location{};  // Of the object; empty = the folder above that of its metadata file.
};

/// Names the object in the tree and stores its pointer.
/// Errors: kAlreadyExists when the folder has such a name, also one that differs only in the case
/// of ASCII letters; those of Tree::Create. Cost: reads the names of the folder.
Result<CatalogObject> CreateObject(metastore::SqlTransaction& sql, tree::Tree& tree,
                                   const ObjectDefinition& object);

/// Nothing when there is none, or it is in the trash itself.
Result<std::optional<CatalogObject>> FindObject(metastore::SqlTransaction& sql, const Rid& rid);
Result<std::optional<CatalogObject>> FindObject(metastore::SqlTransaction& sql, const Rid& folder,
                                                std::string_view name);

/// The child of `folder` that keeps `name` from being given: one of that name, else one whose name
/// differs in nothing but the case of ASCII letters. `except` (a RID or empty) does not count.
Result<std::optional<tree::Node>> FindClash(metastore::SqlTransaction& sql, const Rid& folder,
                                            std::string_view name, const Rid& except = {});

struct ObjectPage {
  std::vector<CatalogObject> objects;  // By bytes of their names.
  bool truncated = false;              // More follow: list again after the last name.
};
/// Tables or views of a folder whose names come after `after`. `limit`: 1..10,000.
/// Cost: reads the names of the folder.
Result<ObjectPage> ListObjects(metastore::SqlTransaction& sql, const Rid& folder, ObjectKind kind,
                               std::string_view after, int64_t limit);

/// One compare-and-set.
struct PointerMove {
  Rid rid;
  std::string expected_location;
  std::string next_location;
  std::string object_location{};  // The object's new folder; empty = it stays.
};

/// Reason of MovePointer's kConflict: nobody's requirement failed, the next attempt may pass.
inline constexpr std::string_view kPointerMoved = "CatalogPointerMoved";

/// Errors: kConflict, reason kPointerMoved, when the pointer is not `expected_location` (re-read
/// and retry); kNotFound when the object is gone.
Status MovePointer(metastore::SqlTransaction& sql, const PointerMove& move);

/// Takes the object out of the catalog. Its files and its name in the tree stay.
Status DropObject(metastore::SqlTransaction& sql, const Rid& rid);

/// Who left the catalog, kept so that its files are not anybody's. Value.
struct DroppedObject {
  CatalogObject object;
  std::string by;  // User id.
  Timestamp at{};
  bool purge = false;  // Its files are to be deleted.
};
/// Takes the object out of the catalog and out of the tree, and remembers it.
Status DropObject(metastore::SqlTransaction& sql, tree::Tree& tree, const DroppedObject& dropped);
/// Objects whose files wait for their deletion, oldest first.
Result<std::vector<DroppedObject>> ListPurges(metastore::SqlTransaction& sql, int64_t limit);
/// The files of a dropped object are gone: its location is free.
Status ForgetDropped(metastore::SqlTransaction& sql, const Rid& rid);

/// The folders of a namespace below a project, outermost first; none for the project itself.
/// Errors: kNotFound "Namespace does not exist: a.b".
Result<std::vector<Rid>> GetNamespacePath(metastore::SqlTransaction& sql, const Rid& project,
                                          const std::vector<std::string>& levels);
/// The last of them, or the project. Errors: kNotFound "Namespace does not exist: a.b".
Result<Rid> GetNamespace(metastore::SqlTransaction& sql, const Rid& project,
                         const std::vector<std::string>& levels);

}  // namespace tarn::catalog
