// Purging of dropped tables: the files that their metadata names, as far as they are their own.
#include <algorithm>

#include "tarn/base/log.h"
#include "tarn/catalog/catalog.h"
#include "tarn/catalog/catalog_state.h"
#include "tarn/catalog/location.h"
#include "tarn/iceberg/snapshot_expiry.h"
#include "tarn/iceberg/table_metadata.h"

namespace tarn::catalog {

namespace {

constexpr int64_t kBatch = 100;  // Objects read from the metastore at once.

bool IsMetadataFile(std::string_view uri) {
  return uri.ends_with(".avro") || uri.ends_with(".metadata.json") || uri.ends_with(".gz");
}

// Deletes files, the current metadata file last: until then a purge that was cut off can be taken
// up again. Files outside of the table's own location may be somebody else's and stay.
Status DeleteFiles(storage::ObjectStore& store, const CatalogObject& object,
                   const std::vector<std::string>& files, bool metadata_only) {
  const std::string below = object.location + "/";
  const auto remove = [&](const std::string& uri) -> Status {
    const Result<std::string> canonical = CanonicalLocation(store, uri);
    if (!canonical.ok() || !canonical->starts_with(below) ||
        (metadata_only && !IsMetadataFile(uri))) {
      return Status::Ok();
    }
    TARN_ASSIGN_OR_RETURN(const std::string key, storage::KeyOf(store, *canonical));
    return store.Delete(key);
  };
  for (const std::string& uri : files) {
    if (uri != object.metadata_location) {
      TARN_RETURN_IF_ERROR(remove(uri));
    }
  }
  return remove(object.metadata_location);
}

}  // namespace

Result<int64_t> Catalog::FinishPurges() {
  int64_t done = 0;
  Status first_failure;
  std::vector<DroppedObject> purges;
  TARN_RETURN_IF_ERROR(deps_.database.Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(purges, ListPurges(sql, kBatch));
    return Status::Ok();
  }));
  for (const DroppedObject& dropped : purges) {
    const CatalogObject& object = dropped.object;
    const auto purge = [&]() -> Status {
      std::vector<std::string> files = {object.metadata_location};
      bool metadata_only = false;
      if (object.kind == ObjectKind::kTable) {
        const Result<TableMetadataPtr> metadata = ReadTable(object.metadata_location);
        if (metadata.ok()) {
          metadata_only = !(*metadata)->BoolProperty("gc.enabled", true);
          Result<std::vector<std::string>> listed = iceberg::ListReferencedFiles(
              deps_.warehouse, caches_->manifests, **metadata, object.metadata_location);
          if (listed.ok()) {
            files = *std::move(listed);
          } else if (listed.status().code() != ErrorCode::kNotFound) {
            return listed.status();
          } else {
            Log(LogLevel::kWarning, "catalog",
                "files of the purged " + object.name + " stay: " + listed.status().ToString());
          }
        } else if (metadata.status().code() != ErrorCode::kNotFound) {
          return metadata.status();
        }
      }
      TARN_RETURN_IF_ERROR(DeleteFiles(deps_.warehouse, object, files, metadata_only));
      return deps_.database.Write(
          [&](metastore::SqlTransaction& sql) { return ForgetDropped(sql, object.rid); });
    };
    const Status purged = purge();
    if (purged.ok()) {
      ++done;
    } else {
      Log(LogLevel::kWarning, "catalog",
          "the files of the dropped " + object.name + " stay for now: " + purged.ToString());
      first_failure = first_failure.ok() ? purged : first_failure;
    }
  }
  TARN_RETURN_IF_ERROR(first_failure);
  return done;
}

}  // namespace tarn::catalog
