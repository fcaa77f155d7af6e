#include "tarn/maintenance/orphans.h"

#include <unordered_set>

#include <fmt/format.h>

#include "tarn/catalog/pointer_store.h"
#include "tarn/iceberg/snapshot_expiry.h"
#include "tarn/lakehouse/table_making.h"
#include "tarn/tree/tree.h"

namespace tarn::maintenance {

namespace {

constexpr int64_t kTablesOfFolderMax = 10'000;

using Keys = std::unordered_set<std::string>;

// Everything a table refers to, as keys of the store.
Status AddReferenced(catalog::Catalog& catalog, const catalog::LoadedTable& table, Keys& keys) {
  storage::ObjectStore& store = catalog.deps().warehouse;
  TARN_ASSIGN_OR_RETURN(
      const std::vector<std::string> files,
      iceberg::ListReferencedFiles(store, catalog.manifest_cache(), *table.metadata,
                                   table.object.metadata_location));
  for (const std::string& uri : files) {
    Result<std::string> key = storage::KeyOf(store, uri);
    if (!key.ok()) {
      return Status::FailedPrecondition(fmt::format(
          "table {} refers to {}, which is outside of the store: what else it may spell otherwise "
          "is not known, so nothing is taken for an orphan",
          table.object.name, uri));
    }
    keys.insert(std::move(key).value());
  }
  return Status::Ok();
}

// The published tables of a pipeline's table list files of it.
Status AddPublished(catalog::Catalog& catalog, const catalog::LoadedTable& table, Keys& keys) {
  const auto schema = table.metadata->properties.find(std::string(lakehouse::kSchemaProperty));
  if (table.object.writers != catalog::Writers::kProduct ||
      schema == table.metadata->properties.end()) {
    return Status::Ok();
  }
  std::vector<catalog::CatalogObject> objects;
  TARN_RETURN_IF_ERROR(catalog.deps().database.Read([&](metastore::SqlTransaction& sql) -> Status {
    objects.clear();
    TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, table.object.rid));
    TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> folder,
                          tree::FindChild(sql, located.project, schema->second));
    if (folder) {
      TARN_ASSIGN_OR_RETURN(const catalog::ObjectPage page,
                            catalog::ListObjects(sql, folder->rid, catalog::ObjectKind::kTable, "",
                                                 kTablesOfFolderMax));
      objects = page.objects;
    }
    return Status::Ok();
  }));
  for (const catalog::CatalogObject& object : objects) {
    if (object.writers == catalog::Writers::kProduct && object.rid != table.object.rid) {
      TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable published, catalog.LoadTable(object.rid));
      TARN_RETURN_IF_ERROR(AddReferenced(catalog, published, keys));
    }
  }
  return Status::Ok();
}

Result<std::vector<storage::ObjectMeta>> ListBelow(storage::ObjectStore& store,
                                                   const std::string& prefix) {
  std::vector<storage::ObjectMeta> objects;
  storage::ListRequest request{.prefix = prefix, .start_after = {}};
  while (true) {
    TARN_ASSIGN_OR_RETURN(const storage::ListPage page, store.List(request));
    objects.insert(objects.end(), page.objects.begin(), page.objects.end());
    if (!page.truncated || page.objects.empty()) {
      return objects;
    }
    request.start_after = page.objects.back().key;
  }
}

// The file that stays or goes with `key`: Hadoop keeps the checksum of a local file X in .X.crc.
std::string OwnerOf(const std::string& key) {
  constexpr std::string_view kEnd = ".crc";
  const size_t name = key.rfind('/') + 1;  // 0 without a folder.
  if (key.size() <= name + 1 + kEnd.size() || key[name] != '.' || !key.ends_with(kEnd)) {
    return key;
  }
  return key.substr(0, name) + key.substr(name + 1, key.size() - name - 1 - kEnd.size());
}

}  // namespace

Result<OrphansReport> FindOrphans(catalog::Catalog& catalog, const Rid& table,
                                  const OrphansRequest& request) {
  if (!request.dry_run && request.older_than < kOrphanAgeMin) {
    return Status::InvalidArgument(
        fmt::format("orphans are deleted from an age of {} hours on: a younger file may belong to "
                    "a commit under way",
                    kOrphanAgeMin.count()));
  }
  storage::ObjectStore& store = catalog.deps().warehouse;
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable first, catalog.LoadTable(table));
  TARN_ASSIGN_OR_RETURN(const std::string folder, storage::KeyOf(store, first.metadata->location));
  TARN_ASSIGN_OR_RETURN(const std::vector<storage::ObjectMeta> objects,
                        ListBelow(store, folder + "/"));
  // Read after the listing: what was committed meanwhile is referred to.
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable newest, catalog.LoadTable(table));
  if (!request.dry_run && !newest.metadata->BoolProperty("gc.enabled", true)) {
    return Status::FailedPrecondition(fmt::format(
        "table {}: gc.enabled is false: nothing below it is deleted", newest.object.name));
  }
  Keys referenced;
  TARN_RETURN_IF_ERROR(AddReferenced(catalog, newest, referenced));
  TARN_RETURN_IF_ERROR(AddPublished(catalog, newest, referenced));
  const Timestamp cut = catalog.deps().clock.Now() - request.older_than;
  OrphansReport report;
  for (const storage::ObjectMeta& object : objects) {
    ++report.seen;
    // The hint of tables without a catalog belongs to every version.
    if (referenced.contains(OwnerOf(object.key)) || object.key.ends_with("/") ||
        object.key.ends_with("/version-hint.text")) {
      continue;
    }
    if (object.modified > cut) {
      ++report.too_young;
      continue;
    }
    ++report.found;
    report.found_bytes += static_cast<int64_t>(object.size_bytes);
    if (report.files.size() < request.listed_max) {
      report.files.push_back({.uri = storage::UriOf(store, object.key),
                              .size_bytes = static_cast<int64_t>(object.size_bytes),
                              .modified = object.modified});
    }
    if (!request.dry_run) {
      const bool removed = store.Delete(object.key).ok();
      ++(removed ? report.removed : report.left_behind);
    }
  }
  return report;
}

}  // namespace tarn::maintenance
