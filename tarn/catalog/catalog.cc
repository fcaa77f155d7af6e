#include "tarn/catalog/catalog.h"

#include "tarn/base/log.h"
#include "tarn/catalog/catalog_state.h"
#include "tarn/catalog/location.h"
#include "tarn/iceberg/commit.h"

namespace tarn::catalog {

namespace {

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

// A cached file may be gone by now; only one that is there can be registered.
Status RequireFile(storage::ObjectStore& store, const std::string& location) {
  TARN_ASSIGN_OR_RETURN(const std::string key, storage::KeyOf(store, location));
  const Result<storage::ObjectMeta> found = store.Head(key);
  return found.status().code() == ErrorCode::kNotFound
             ? Status::NotFound("Failed to open input stream for file: " + location)
             : found.status();
}

ObjectDefinition DefinitionOf(const ObjectPlace& object, ObjectKind kind, std::string uuid,
                              std::string metadata_location, std::string location) {
  return {.kind = kind,
          .folder = object.folder,
          .name = object.name,
          .uuid = std::move(uuid),
          .metadata_location = std::move(metadata_location),
          .writers = Writers::kAnyone,
          .by = object.by,
          .location = std::move(location)};
}

ObjectDefinition DefinitionOf(const ObjectPlace& object, const iceberg::TableMetadata& metadata,
                              std::string file, std::string location) {
  return DefinitionOf(object, ObjectKind::kTable, metadata.table_uuid, std::move(file),
                      std::move(location));
}

ObjectDefinition DefinitionOf(const ObjectPlace& object, const iceberg::ViewMetadata& metadata,
                              std::string file, std::string location) {
  return DefinitionOf(object, ObjectKind::kView, metadata.view_uuid, std::move(file),
                      std::move(location));
}

}  // namespace

Catalog::Catalog(CatalogOptions options, CatalogDeps deps)
    : options_(options),
      deps_(deps),
      caches_(std::make_unique<Caches>(options)),
      locks_(std::make_unique<Locks>()),
      waiting_(std::make_unique<Waiting>()) {}
Catalog::~Catalog() = default;

iceberg::ManifestCache& Catalog::manifest_cache() { return caches_->manifests; }

Result<TableMetadataPtr> Catalog::ReadTable(const std::string& location) {
  if (TableMetadataPtr cached = caches_->tables.Find(location)) {
    return cached;
  }
  TARN_ASSIGN_OR_RETURN(iceberg::TableMetadata metadata,
                        iceberg::ReadTableMetadata(deps_.warehouse, location));
  TableMetadataPtr shared = std::make_shared<const iceberg::TableMetadata>(std::move(metadata));
  caches_->Add(location, shared);
  return shared;
}

Result<ViewMetadataPtr> Catalog::ReadView(const std::string& location) {
  if (ViewMetadataPtr cached = caches_->views.Find(location)) {
    return cached;
  }
  TARN_ASSIGN_OR_RETURN(iceberg::ViewMetadata metadata,
                        iceberg::ReadViewMetadata(deps_.warehouse, location));
  ViewMetadataPtr shared = std::make_shared<const iceberg::ViewMetadata>(std::move(metadata));
  caches_->Add(location, shared);
  return shared;
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

void Catalog::RemoveFile(const std::string& location) {
  const Result<std::string> key = storage::KeyOf(deps_.warehouse, location);
  const Status removed = key.ok() ? deps_.warehouse.Delete(*key) : key.status();
  if (!removed.ok()) {
    Log(LogLevel::kWarning, "catalog", "left " + location + " behind: " + removed.ToString());
  }
}

// Names a new object and stores its pointer, once its location is found to be free.
Result<CatalogObject> Catalog::CreateIn(metastore::SqlTransaction& sql,
                                        const ObjectDefinition& definition) {
  TARN_RETURN_IF_ERROR(RequireFreeLocation(
      sql, deps_.warehouse,
      {.location = definition.location, .owner = {}, .folder = definition.folder}));
  // What was dropped there, in this folder, is taken over.
  TARN_RETURN_IF_ERROR(
      sql.Execute("DELETE FROM catalog_dropped WHERE location = ?1", {definition.location}));
  return CreateObject(sql, deps_.tree, definition);
}

// Looks the outcome up after the reply to a creation was lost.
Result<bool> Catalog::IsNamed(const ObjectDefinition& definition) {
  std::optional<CatalogObject> object;
  TARN_RETURN_IF_ERROR(deps_.database.Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(object, FindObject(sql, definition.folder, definition.name));
    return Status::Ok();
  }));
  return object && object->metadata_location == definition.metadata_location;
}

Result<CatalogObject> Catalog::Publish(const ObjectDefinition& definition,
                                       const metastore::SqlFunction& check) {
  CatalogObject object;
  const Status made = deps_.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    if (check) {
      TARN_RETURN_IF_ERROR(check(sql));
    }
    TARN_ASSIGN_OR_RETURN(object, CreateIn(sql, definition));
    return Status::Ok();
  });
  if (made.code() == ErrorCode::kCommitStateUnknown) {
    const Result<bool> named = IsNamed(definition);
    if (named.ok() && *named) {
      return object;
    }
  }
  TARN_RETURN_IF_ERROR(made);
  return object;
}

template <typename Loaded, typename Metadata>
Result<Loaded> Catalog::PublishNew(const ObjectPlace& object, const Metadata& metadata,
                                   const metastore::SqlFunction& check) {
  TARN_ASSIGN_OR_RETURN(std::string location,
                        CanonicalLocation(deps_.warehouse, metadata.location));
  TARN_ASSIGN_OR_RETURN(std::string file, WriteFirst(metadata));
  Result<CatalogObject> made =
      Publish(DefinitionOf(object, metadata, file, std::move(location)), check);
  if (!made.ok()) {
    if (made.status().code() != ErrorCode::kCommitStateUnknown) {
      RemoveFile(file);
    }
    return made.status();
  }
  auto shared = std::make_shared<const Metadata>(metadata);
  caches_->Add(file, shared);
  return Loaded{.object = *std::move(made), .metadata = std::move(shared)};
}

Result<LoadedTable> Catalog::CreateTable(const ObjectPlace& object,
                                         const iceberg::TableMetadata& metadata,
                                         const metastore::SqlFunction& check) {
  return PublishNew<LoadedTable>(object, metadata, check);
}

Result<LoadedView> Catalog::CreateView(const ObjectPlace& object,
                                       const iceberg::ViewMetadata& metadata,
                                       const metastore::SqlFunction& check) {
  return PublishNew<LoadedView>(object, metadata, check);
}

Result<LoadedTable> Catalog::RegisterTable(const ObjectPlace& object,
                                           const std::string& metadata_location,
                                           const metastore::SqlFunction& check) {
  TARN_ASSIGN_OR_RETURN(const std::string file,
                        CanonicalLocation(deps_.warehouse, metadata_location));
  TARN_RETURN_IF_ERROR(RequireFile(deps_.warehouse, file));
  TARN_ASSIGN_OR_RETURN(TableMetadataPtr metadata, ReadTable(file));
  TARN_ASSIGN_OR_RETURN(std::string location,
                        CanonicalLocation(deps_.warehouse, metadata->location));
  const auto check_files = [&](metastore::SqlTransaction& sql) -> Status {
    const LocationClaim claim{.location = location, .owner = {}, .folder = object.folder};
    TARN_RETURN_IF_ERROR(RequireOwnFile(sql, deps_.warehouse, claim, file));
    for (const iceberg::SnapshotPtr& snapshot : metadata->snapshots) {
      if (!snapshot->manifest_list.empty()) {
        TARN_RETURN_IF_ERROR(RequireOwnFile(sql, deps_.warehouse, claim, snapshot->manifest_list));
      }
    }
    return check ? check(sql) : Status::Ok();
  };
  TARN_ASSIGN_OR_RETURN(CatalogObject made,
                        Publish(DefinitionOf(object, *metadata, file, location), check_files));
  return LoadedTable{.object = std::move(made), .metadata = std::move(metadata)};
}

Result<LoadedView> Catalog::RegisterView(const ObjectPlace& object,
                                         const std::string& metadata_location,
                                         const metastore::SqlFunction& check) {
  TARN_ASSIGN_OR_RETURN(const std::string file,
                        CanonicalLocation(deps_.warehouse, metadata_location));
  TARN_RETURN_IF_ERROR(RequireFile(deps_.warehouse, file));
  TARN_ASSIGN_OR_RETURN(ViewMetadataPtr metadata, ReadView(file));
  TARN_ASSIGN_OR_RETURN(std::string location,
                        CanonicalLocation(deps_.warehouse, metadata->location));
  const auto check_file = [&](metastore::SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(RequireOwnFile(
        sql, deps_.warehouse, {.location = location, .owner = {}, .folder = object.folder}, file));
    return check ? check(sql) : Status::Ok();
  };
  TARN_ASSIGN_OR_RETURN(CatalogObject made,
                        Publish(DefinitionOf(object, *metadata, file, location), check_file));
  return LoadedView{.object = std::move(made), .metadata = std::move(metadata)};
}

Result<LoadedTable> Catalog::ReplaceTable(const CatalogObject& object,
                                          const std::string& metadata_location,
                                          const metastore::SqlFunction& check) {
  TARN_ASSIGN_OR_RETURN(const std::string file,
                        CanonicalLocation(deps_.warehouse, metadata_location));
  TARN_RETURN_IF_ERROR(RequireFile(deps_.warehouse, file));
  TARN_ASSIGN_OR_RETURN(TableMetadataPtr metadata, ReadTable(file));
  TARN_ASSIGN_OR_RETURN(std::string location,
                        CanonicalLocation(deps_.warehouse, metadata->location));
  CatalogObject replaced = object;
  replaced.metadata_location = file;
  replaced.location = location;
  replaced.uuid = metadata->table_uuid;
  const Locks::Held held = locks_->Take({object.rid});
  const LocationClaim claim{.location = location, .owner = object.rid, .folder = object.folder};
  const Status moved = deps_.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    if (check) {
      TARN_RETURN_IF_ERROR(check(sql));
    }
    TARN_ASSIGN_OR_RETURN(const std::optional<CatalogObject> now, FindObject(sql, object.rid));
    if (!now) {
      return Status::NotFound("Table does not exist: " + object.name);
    }
    TARN_RETURN_IF_ERROR(RequireFreeLocation(sql, deps_.warehouse, claim));
    TARN_RETURN_IF_ERROR(RequireOwnFile(sql, deps_.warehouse, claim, file));
    TARN_RETURN_IF_ERROR(MovePointer(sql, {.rid = object.rid,
                                           .expected_location = now->metadata_location,
                                           .next_location = file,
                                           .object_location = location}));
    return StatusOf(sql.Execute("UPDATE catalog_pointer SET uuid = ?2 WHERE rid = ?1",
                                {object.rid.ToString(), metadata->table_uuid}));
  });
  TARN_RETURN_IF_ERROR(moved);
  return LoadedTable{.object = std::move(replaced), .metadata = std::move(metadata)};
}

}  // namespace tarn::catalog
