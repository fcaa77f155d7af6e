// Catalog: loads tables and views by their pointers and commits to several of them at once.
//
// The REST server and tarn's own writers commit through CommitTables: requirements are checked on
// the newest metadata, updates applied, new metadata files written, and all pointers moved in one
// SQL transaction, together with whatever rows the caller adds to it.
#pragma once

#include <functional>
#include <memory>
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

/// What one table of a commit changes.
struct TableChange {
  CatalogObject table;  // As loaded; its metadata_location is not used.
  std::vector<iceberg::TableRequirement> requirements;
  std::vector<iceberg::TableUpdate> updates;
};

struct CatalogOptions {
  size_t metadata_count_max = 64;  // Decoded metadata files kept; they never change.
  iceberg::ManifestCacheOptions manifest_cache;
};

struct CatalogDeps {
  metastore::Database& database;
  storage::ObjectStore& warehouse;
  tree::Tree& tree;
  UuidGenerator& uuids;
  const Clock& clock;
};

/// Resource. Threads: any. Holds only caches keyed by the names of immutable files.
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

  /// Commits all changes or none, and in the same SQL transaction whatever `also` does.
  ///
  /// Returns the tables after the commit, in the order of `changes`; a change that alters nothing
  /// keeps its metadata. Errors: kConflict when a requirement failed or a pointer moved meanwhile
  /// (re-read, plan again); kNotFound; kInvalidArgument for updates that are wrong in themselves;
  /// kCommitStateUnknown: the outcome could not be found out, nothing may be deleted. On every
  /// other error nothing has changed and no file is left.
  Result<std::vector<LoadedTable>> CommitTables(const std::vector<TableChange>& changes,
                                                const metastore::SqlFunction& also = {});

  [[nodiscard]] iceberg::ManifestCache& manifest_cache();
  [[nodiscard]] const CatalogDeps& deps() const { return deps_; }

 private:
  struct Pending;  // One table of a commit under way.
  struct Caches;

  Result<Pending> Prepare(const TableChange& change);
  Status Move(const std::vector<Pending>& pending, const metastore::SqlFunction& also);
  Result<bool> IsCommitted(const std::vector<Pending>& pending);
  void RemoveWritten(const std::vector<Pending>& pending);

  CatalogOptions options_;
  CatalogDeps deps_;
  std::unique_ptr<Caches> caches_;
};

}  // namespace tarn::catalog
