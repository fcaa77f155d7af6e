// Catalog: loads tables and views by their pointers and commits to several of them at once.
//
// The REST server and tarn's own writers commit through CommitTables: requirements are checked on
// the newest metadata, updates applied, new metadata files written, and all pointers moved in one
// SQL transaction, together with whatever rows the caller adds to it.
//
// A process that dies leaves: before the pointer moved, metadata files that nobody refers to and
// the tables as they were; after it, the commit, whole. A commit that is sent again after its
// answer was lost finds its snapshots in the table and succeeds without doing anything.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/uuid.h"
#include "tarn/catalog/object.h"
#include "tarn/catalog/pointer_store.h"
#include "tarn/iceberg/manifest_cache.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/iceberg/table_requirement.h"
#include "tarn/iceberg/table_update.h"
#include "tarn/iceberg/view_metadata.h"
#include "tarn/metastore/database.h"
#include "tarn/storage/object_store.h"

namespace tarn::catalog {

using TableMetadataPtr = std::shared_ptr<const iceberg::TableMetadata>;
using ViewMetadataPtr = std::shared_ptr<const iceberg::ViewMetadata>;

/// A table at one version: immutable, so it may be kept and read by any thread.
struct LoadedTable {
  CatalogObject object;
  TableMetadataPtr metadata;
};
struct LoadedView {
  CatalogObject object;
  ViewMetadataPtr metadata;
};

/// Where a new object is put.
struct ObjectPlace {
  Rid folder;
  std::string name;
  std::string by;  // User id.
};

/// What one table of a commit changes.
struct TableChange {
  CatalogObject table;  // As loaded; its metadata_location is not used.
  std::vector<iceberg::TableRequirement> requirements;
  std::vector<iceberg::TableUpdate> updates;
  std::optional<ObjectPlace> create{};  // The commit makes the table; `table` is not used.
};
struct ViewChange {
  CatalogObject view;
  std::vector<iceberg::AssertViewUuid> requirements;
  std::vector<iceberg::ViewUpdate> updates;
};

struct CatalogOptions {
  size_t metadata_count_max = 1024;  // Decoded metadata files kept; they never change.
  size_t metadata_bytes_max = 96 << 20;
  int commit_attempts_max = 8;  // Of CommitTables and CommitView while others move the pointers.
  iceberg::ManifestCacheOptions manifest_cache;
};

struct CatalogDeps {
  metastore::Database& database;
  storage::ObjectStore& warehouse;
  tree::Tree& tree;
  UuidGenerator& uuids;
  const Clock& clock;
};

/// Resource. Threads: any. Holds only caches keyed by the names of immutable files, and locks that
/// spare commits of one process to one table the races among themselves.
class Catalog {
 public:
  Catalog(CatalogOptions options, CatalogDeps deps);
  ~Catalog();
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  /// Errors: kNotFound when the object is gone or its metadata file is; kInvalidArgument when the
  /// object is a view (a table).
  Result<LoadedTable> LoadTable(const Rid& rid);
  Result<LoadedView> LoadView(const Rid& rid);
  /// The metadata at a location, from the cache if it is there.
  Result<TableMetadataPtr> ReadTable(const std::string& location);
  Result<ViewMetadataPtr> ReadView(const std::string& location);

  /// Writes the first metadata file of a table; name and pointer follow in CreateObject.
  Result<std::string> WriteFirst(const iceberg::TableMetadata& metadata);
  Result<std::string> WriteFirst(const iceberg::ViewMetadata& metadata);

  /// Makes an object from its first metadata, and in the same SQL transaction, before it, whatever
  /// `check` does. Errors: kAlreadyExists, kPermissionDenied and kInvalidArgument for the location
  /// (location.h), those of `check`; nothing is left of a failure but of kCommitStateUnknown.
  Result<LoadedTable> CreateTable(const ObjectPlace& object, const iceberg::TableMetadata& metadata,
                                  const metastore::SqlFunction& check = {});
  Result<LoadedView> CreateView(const ObjectPlace& object, const iceberg::ViewMetadata& metadata,
                                const metastore::SqlFunction& check = {});
  /// Makes an object whose metadata file is there already. Errors beside those of CreateTable:
  /// kNotFound when the file is not there; kInvalidArgument when it cannot be read.
  Result<LoadedTable> RegisterTable(const ObjectPlace& object, const std::string& metadata_location,
                                    const metastore::SqlFunction& check = {});
  Result<LoadedView> RegisterView(const ObjectPlace& object, const std::string& metadata_location,
                                  const metastore::SqlFunction& check = {});
  /// Points an object that is there to another metadata file, whatever it pointed to.
  Result<LoadedTable> ReplaceTable(const CatalogObject& object,
                                   const std::string& metadata_location,
                                   const metastore::SqlFunction& check = {});

  /// Commits all changes or none, and in the same SQL transaction whatever `also` does.
  ///
  /// Returns the tables after the commit, in the order of `changes`; a change that alters nothing
  /// keeps its metadata. Errors: kConflict when a requirement failed or, after the last attempt, a
  /// pointer moved meanwhile (re-read, plan again); kNotFound; kInvalidArgument for updates that
  /// are wrong in themselves; kPermissionDenied for locations; kAlreadyExists for a table that was
  /// to be made; kCommitStateUnknown: the outcome could not be found out, nothing may be deleted.
  /// On every other error nothing has changed and no file is left. `also` may run several times.
  /// Commits that wait for the same table travel together, in one metadata file and one SQL
  /// transaction, as if they had come one after the other.
  Result<std::vector<LoadedTable>> CommitTables(const std::vector<TableChange>& changes,
                                                const metastore::SqlFunction& also = {});
  /// The same for one view.
  Result<LoadedView> CommitView(const ViewChange& change, const metastore::SqlFunction& also = {});

  /// Deletes the files of objects that were dropped to be purged: those below their own location,
  /// data files only where "gc.enabled" is not false. Can be run again at any time; returns how
  /// many objects were done with. Errors: those of the first object that failed.
  Result<int64_t> FinishPurges();

  [[nodiscard]] iceberg::ManifestCache& manifest_cache();
  [[nodiscard]] const CatalogDeps& deps() const { return deps_; }

 private:
  struct Pending;  // One table of a commit under way.
  struct Caches;
  class Locks;
  class Waiting;

  Result<Pending> Prepare(const TableChange& change);
  Status Move(std::vector<Pending>& pending, const metastore::SqlFunction& also);
  Result<std::vector<LoadedTable>> TryCommit(const std::vector<TableChange>& changes,
                                             const metastore::SqlFunction& also);
  Result<LoadedTable> CommitAlone(const TableChange& change, const metastore::SqlFunction& also);
  Result<LoadedTable> CommitWaiting(const TableChange& change, const metastore::SqlFunction& also);
  void CommitTogether(const Rid& rid, Waiting& waiting);
  Result<LoadedTable> MoveTo(const LoadedTable& base, iceberg::TableMetadata next,
                             const metastore::SqlFunction& also);
  Result<LoadedView> TryCommitView(const ViewChange& change, const metastore::SqlFunction& also);
  Result<bool> IsCommitted(const std::vector<Pending>& pending);
  Result<bool> IsNamed(const ObjectDefinition& definition);
  // Of a table or a view whose first metadata is to be written.
  template <typename Loaded, typename Metadata>
  Result<Loaded> PublishNew(const ObjectPlace& object, const Metadata& metadata,
                            const metastore::SqlFunction& check);
  Result<CatalogObject> Publish(const ObjectDefinition& definition,
                                const metastore::SqlFunction& check);
  Result<CatalogObject> CreateIn(metastore::SqlTransaction& sql,
                                 const ObjectDefinition& definition);
  void RemoveFile(const std::string& location);
  void RemoveWritten(const std::vector<Pending>& pending);

  CatalogOptions options_;
  CatalogDeps deps_;
  std::unique_ptr<Caches> caches_;
  std::unique_ptr<Locks> locks_;
  std::unique_ptr<Waiting> waiting_;
};

}  // namespace tarn::catalog
