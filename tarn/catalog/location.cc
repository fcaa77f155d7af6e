#include "tarn/catalog/location.h"

#include <array>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "tarn/base/uuid.h"
#include "tarn/storage/object_key.h"

namespace tarn::catalog {

namespace {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

constexpr std::array<std::string_view, 4> kPathProperties = {
    "write.data.path", "write.metadata.path", "write.object-storage.path",
    "write.folder-storage.path"};

std::string WithoutSlashes(std::string_view location) {
  while (location.size() > 1 && location.ends_with('/')) {
    location.remove_suffix(1);
  }
  return std::string(location);
}

// Physical names of datasets begin with the dataset's UUID.
bool IsOfDataset(std::string_view key) { return Uuid::Parse(key.substr(0, key.find('/'))).ok(); }

// "a/b/c" -> the locations of "a", "a/b", "a/b/c".
std::vector<std::string> SelfAndAbove(const storage::ObjectStore& store, std::string_view key) {
  std::vector<std::string> all;
  for (size_t at = key.find('/'); at != std::string_view::npos; at = key.find('/', at + 1)) {
    all.push_back(storage::UriOf(store, key.substr(0, at)));
  }
  all.push_back(storage::UriOf(store, key));
  return all;
}

Status Taken(std::string_view location) {
  return Status::PermissionDenied(
      fmt::format("location {} overlaps with that of another table, view or dataset", location));
}

// Fails where a row of the query is neither of the owner nor, for dropped ones, of its folder.
Status RequireNoOther(SqlTransaction& sql, std::string_view where,
                      const metastore::SqlArguments& arguments, const LocationClaim& claim,
                      std::string_view named) {
  bool taken = false;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT rid FROM catalog_pointer WHERE " + std::string(where) + " LIMIT 2",
                arguments, [&](const SqlRow& row) -> Result<RowAction> {
                  taken = taken || claim.owner.empty() || row.Text(0) != claim.owner.ToString();
                  return RowAction::kContinue;
                }));
  if (taken) {
    return Taken(named);
  }
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT rid, folder, purge FROM catalog_dropped WHERE " + std::string(where) + " LIMIT 100",
      arguments, [&](const SqlRow& row) -> Result<RowAction> {
        taken = taken || row.Int(2) != 0 || row.Text(1) != claim.folder.ToString();
        return RowAction::kContinue;
      }));
  return taken ? Taken(named) : Status::Ok();
}

}  // namespace

Result<std::string> CanonicalLocation(const storage::ObjectStore& store,
                                      std::string_view location) {
  const Result<std::string> key = storage::KeyOf(store, WithoutSlashes(location));
  if (!key.ok()) {
    return Status::InvalidArgument(fmt::format("location {} is not in the warehouse {}: {}",
                                               storage::QuoteKey(location), store.base_uri(),
                                               key.status().message()));
  }
  return storage::UriOf(store, *key);
}

Status RequireFreeLocation(SqlTransaction& sql, const storage::ObjectStore& store,
                           const LocationClaim& claim) {
  TARN_ASSIGN_OR_RETURN(const std::string key, storage::KeyOf(store, claim.location));
  TARN_RETURN_IF_ERROR(RequireOwnFile(sql, store, claim, claim.location));
  // What lies below: names that go on with a slash ('0' is the character after it).
  return RequireNoOther(sql, "location >= ?1 AND location < ?2",
                        {claim.location + "/", claim.location + "0"}, claim, claim.location);
}

Status RequireOwnFile(SqlTransaction& sql, const storage::ObjectStore& store,
                      const LocationClaim& claim, std::string_view file) {
  TARN_ASSIGN_OR_RETURN(const std::string canonical, CanonicalLocation(store, file));
  TARN_ASSIGN_OR_RETURN(const std::string key, storage::KeyOf(store, canonical));
  if (IsOfDataset(key)) {
    return Taken(file);
  }
  for (const std::string& folder : SelfAndAbove(store, key)) {
    TARN_RETURN_IF_ERROR(RequireNoOther(sql, "location = ?1", {folder}, claim, file));
  }
  return Status::Ok();
}

std::vector<std::string> NewWritePaths(const iceberg::TableMetadata* base,
                                       const iceberg::TableMetadata& next) {
  std::vector<std::string> paths;
  for (const std::string_view name : kPathProperties) {
    const auto found = next.properties.find(std::string(name));
    if (found == next.properties.end()) {
      continue;
    }
    if (base != nullptr) {
      const auto before = base->properties.find(found->first);
      if (before != base->properties.end() && before->second == found->second) {
        continue;
      }
    }
    paths.push_back(found->second);
  }
  return paths;
}

Status MakeWriteFolders(const storage::ObjectStore& store, const std::string& location) {
  if (!store.base_uri().starts_with("file:")) {
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(const std::string path, storage::PathOfFileUri(location));
  for (const char* folder : {"/data", "/metadata"}) {
    std::error_code error;
    std::filesystem::create_directories(path + folder, error);
    if (error) {
      return Status::Unavailable(
          fmt::format("cannot make the folder {}{}: {}", path, folder, error.message()));
    }
  }
  return Status::Ok();
}

}  // namespace tarn::catalog
