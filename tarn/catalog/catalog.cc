#include "tarn/catalog/catalog.h"

#include <list>
#include <mutex>
#include <unordered_map>

#include "tarn/base/crash_point.h"
#include "tarn/base/log.h"
#include "tarn/iceberg/commit.h"
#include "tarn/iceberg/metadata_builder.h"

namespace tarn::catalog {

namespace {

// Values by the name of the immutable file they were read from; the least recently used goes.
template <typename T>
class LocationCache {
 public:
  explicit LocationCache(size_t count_max) : count_max_(count_max) {}

  std::shared_ptr<const T> Find(const std::string& location) {
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(location);
    if (found == index_.end()) {
      return nullptr;
    }
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->second;
  }

  void Add(const std::string& location, std::shared_ptr<const T> value) {
    const std::lock_guard lock(mutex_);
    if (count_max_ == 0 || index_.contains(location)) {
      return;
    }
    entries_.emplace_front(location, std::move(value));
    index_[location] = entries_.begin();
    if (entries_.size() > count_max_) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
  }

 private:
  using Entries = std::list<std::pair<std::string, std::shared_ptr<const T>>>;
  const size_t count_max_;
  std::mutex mutex_;
  Entries entries_;                                                    // Guarded by mutex_.
  std::unordered_map<std::string, typename Entries::iterator> index_;  // Guarded by mutex_.
};

// The object behind `rid`, which must be of `kind`.
Result<CatalogObject> GetObject(metastore::Database& database, const Rid& rid, ObjectKind kind) {
  std::optional<CatalogObject> object;
  TARN_RETURN_IF_ERROR(database.Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(object, FindObject(sql, rid));
    return Status::Ok();
  }));
  if (!object) {
    return Status::NotFound((kind == ObjectKind::kTable ? "Table" : "View") +
                            (" does not exist: " + rid.ToString()));
  }
  if (object->kind != kind) {
    return Status::InvalidArgument(object->name + " is a " +
                                   std::string(ObjectKindName(object->kind)));
  }
  return *object;
}

}  // namespace

struct Catalog::Caches {
  explicit Caches(const CatalogOptions& options)
      : tables(options.metadata_count_max),
        views(options.metadata_count_max),
        manifests(options.manifest_cache) {}
  LocationCache<iceberg::TableMetadata> tables;
  LocationCache<iceberg::ViewMetadata> views;
  iceberg::ManifestCache manifests;
};

struct Catalog::Pending {
  LoadedTable base;
  TableMetadataPtr next;      // The base's when nothing changes.
  std::string next_location;  // Empty when nothing changes.
};

Catalog::Catalog(CatalogOptions options, CatalogDeps deps)
    : options_(options), deps_(deps), caches_(std::make_unique<Caches>(options)) {}
Catalog::~Catalog() = default;

iceberg::ManifestCache& Catalog::manifest_cache() { return caches_->manifests; }

Result<TableMetadataPtr> Catalog::ReadTable(const std::string& location) {
  if (TableMetadataPtr cached = caches_->tables.Find(location)) {
    return cached;
  }
  TARN_ASSIGN_OR_RETURN(iceberg::TableMetadata metadata,
                        iceberg::ReadTableMetadata(deps_.warehouse, location));
  auto shared = std::make_shared<const iceberg::TableMetadata>(std::move(metadata));
  caches_->tables.Add(location, shared);
  return TableMetadataPtr(shared);
}

Result<ViewMetadataPtr> Catalog::ReadView(const std::string& location) {
  if (ViewMetadataPtr cached = caches_->views.Find(location)) {
    return cached;
  }
  TARN_ASSIGN_OR_RETURN(iceberg::ViewMetadata metadata,
                        iceberg::ReadViewMetadata(deps_.warehouse, location));
  auto shared = std::make_shared<const iceberg::ViewMetadata>(std::move(metadata));
  caches_->views.Add(location, shared);
  return ViewMetadataPtr(shared);
}

Result<LoadedTable> Catalog::LoadTable(const Rid& rid) {
  TARN_ASSIGN_OR_RETURN(CatalogObject object, GetObject(deps_.database, rid, ObjectKind::kTable));
  TARN_ASSIGN_OR_RETURN(TableMetadataPtr metadata, ReadTable(object.metadata_location));
  return LoadedTable{.object = std::move(object), .metadata = std::move(metadata)};
}

Result<LoadedView> Catalog::LoadView(const Rid& rid) {
  TARN_ASSIGN_OR_RETURN(CatalogObject object, GetObject(deps_.database, rid, ObjectKind::kView));
  TARN_ASSIGN_OR_RETURN(ViewMetadataPtr metadata, ReadView(object.metadata_location));
  return LoadedView{.object = std::move(object), .metadata = std::move(metadata)};
}

Result<std::string> Catalog::WriteFirst(const iceberg::TableMetadata& metadata) {
  return iceberg::WriteMetadata(deps_.warehouse, metadata, "", deps_.uuids);
}

Result<std::string> Catalog::WriteFirst(const iceberg::ViewMetadata& metadata) {
  return iceberg::WriteMetadata(deps_.warehouse, metadata, "", deps_.uuids);
}

Result<Catalog::Pending> Catalog::Prepare(const TableChange& change) {
  Pending pending;
  TARN_ASSIGN_OR_RETURN(pending.base, LoadTable(change.table.rid));
  const iceberg::TableMetadata& base = *pending.base.metadata;
  TARN_RETURN_IF_ERROR(iceberg::CheckRequirements(&base, change.requirements));
  TARN_ASSIGN_OR_RETURN(iceberg::UpdateResult result,
                        iceberg::ApplyUpdates(&base, change.updates, ToMillis(deps_.clock.Now())));
  if (!result.changed) {
    pending.next = pending.base.metadata;
    return pending;
  }
  const std::string& base_location = pending.base.object.metadata_location;
  // Files that fall out of the log stay until orphan clean-up: readers may still be at them.
  iceberg::LogPreviousMetadata(base, base_location, result.metadata);
  TARN_ASSIGN_OR_RETURN(
      pending.next_location,
      iceberg::WriteMetadata(deps_.warehouse, result.metadata, base_location, deps_.uuids));
  pending.next = std::make_shared<const iceberg::TableMetadata>(std::move(result.metadata));
  return pending;
}

Status Catalog::Move(const std::vector<Pending>& pending, const metastore::SqlFunction& also) {
  return deps_.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    for (const Pending& table : pending) {
      if (!table.next_location.empty()) {
        TARN_RETURN_IF_ERROR(
            MovePointer(sql, {.rid = table.base.object.rid,
                              .expected_location = table.base.object.metadata_location,
                              .next_location = table.next_location}));
      }
    }
    return also ? also(sql) : Status::Ok();
  });
}

// Looks the outcome up after a commit whose reply was lost.
Result<bool> Catalog::IsCommitted(const std::vector<Pending>& pending) {
  for (const Pending& table : pending) {
    if (table.next_location.empty()) {
      continue;
    }
    TARN_ASSIGN_OR_RETURN(const LoadedTable now, LoadTable(table.base.object.rid));
    bool found = now.object.metadata_location == table.next_location;
    for (const iceberg::MetadataLogEntry& entry : now.metadata->metadata_log) {
      found = found || entry.metadata_file == table.next_location;
    }
    return found;  // All pointers moved together, so one of them tells.
  }
  return false;
}

void Catalog::RemoveWritten(const std::vector<Pending>& pending) {
  for (const Pending& table : pending) {
    if (table.next_location.empty()) {
      continue;
    }
    const Result<std::string> key = storage::KeyOf(deps_.warehouse, table.next_location);
    const Status removed = key.ok() ? deps_.warehouse.Delete(*key) : key.status();
    if (!removed.ok()) {
      Log(LogLevel::kWarning, "catalog",
          "left " + table.next_location + " behind: " + removed.ToString());
    }
  }
}

Result<std::vector<LoadedTable>> Catalog::CommitTables(const std::vector<TableChange>& changes,
                                                       const metastore::SqlFunction& also) {
  std::vector<Pending> pending;
  for (const TableChange& change : changes) {
    Result<Pending> prepared = Prepare(change);
    if (!prepared.ok()) {
      RemoveWritten(pending);
      return prepared.status();
    }
    pending.push_back(std::move(prepared).value());
  }
  CrashPoint("catalog-before-pointer");
  Status moved = Move(pending, also);
  if (moved.code() == ErrorCode::kCommitStateUnknown) {
    const Result<bool> committed = IsCommitted(pending);
    if (!committed.ok() || !*committed) {
      return moved;
    }
    moved = Status::Ok();
  }
  if (!moved.ok()) {
    RemoveWritten(pending);
    return moved;
  }
  CrashPoint("catalog-after-pointer");
  std::vector<LoadedTable> tables;
  for (Pending& table : pending) {
    LoadedTable& loaded = tables.emplace_back(std::move(table.base));
    loaded.metadata = table.next;
    if (!table.next_location.empty()) {
      loaded.object.metadata_location = table.next_location;
      caches_->tables.Add(table.next_location, table.next);
    }
  }
  return tables;
}

}  // namespace tarn::catalog
