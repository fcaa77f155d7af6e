// Keys for the files of a table, for clients that have none of their own.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/url.h"
#include "tarn/catalog/location.h"
#include "tarn/catalog/pointer_store.h"
#include "tarn/server/iceberg_rest/iceberg_api.h"

namespace tarn::server::iceberg_rest {

using access::Role;
using catalog::CatalogObject;
using catalog::ObjectKind;
using metastore::SqlTransaction;
using nlohmann::json;

namespace {

constexpr size_t kFoldersMax = 8;  // Of one table; a policy has room for about as many.
constexpr std::string_view kPublishedSuffix = "__applied";
constexpr std::string_view kInternalSchema = "tarn.internal-schema";
constexpr std::string_view kInternalTable = "tarn.internal-table";

bool IsBelowAny(const std::vector<std::string>& folders, std::string_view uri) {
  return std::ranges::any_of(folders, [&](const std::string& folder) {
    return uri == folder || (uri.starts_with(folder) && uri[folder.size()] == '/');
  });
}

// Folders beside the table's own that its metadata names: where writers are told to write, and
// where the table was before it moved. Anyone can write these names.
std::vector<std::string> NamedFolders(const storage::ObjectStore& store, const std::string& own,
                                      const iceberg::TableMetadata& metadata) {
  std::vector<std::string> folders = {own};
  const auto add = [&](std::string_view uri) {
    if (folders.size() < kFoldersMax && !IsBelowAny(folders, uri)) {
      const Result<std::string> canonical = catalog::CanonicalLocation(store, uri);
      if (canonical.ok() && !IsBelowAny(folders, *canonical)) {
        folders.push_back(*canonical);
      }
    }
  };
  for (const std::string& path : catalog::NewWritePaths(nullptr, metadata)) {
    add(path);
  }
  constexpr std::string_view kMetadata = "/metadata/";
  for (const iceberg::SnapshotPtr& snapshot : metadata.snapshots) {
    const std::string_view list = snapshot->manifest_list;
    const size_t at = list.rfind(kMetadata);
    if (at != std::string_view::npos && !IsBelowAny(folders, list)) {
      add(list.substr(0, at));
    }
  }
  folders.erase(folders.begin());
  return folders;
}

std::string PathOfCredentials(const CatalogPath& path) {
  std::string levels;
  for (const std::string& level : path.levels) {
    levels += (levels.empty() ? "" : "\x1f") + level;
  }
  return fmt::format("v1/{}namespaces/{}/tables/{}/credentials",
                     path.prefix.empty() ? "" : EncodeUrl(path.prefix) + "/", EncodeUrl(levels),
                     EncodeUrl(path.name));
}

json ConfigOf(const storage::aws::Credentials& keys, const storage::s3::S3Options& bucket) {
  json config = {{"s3.access-key-id", keys.access_key_id},
                 {"s3.secret-access-key", keys.secret_access_key},
                 {"s3.region", bucket.region},
                 {"client.region", bucket.region}};
  if (!keys.session_token.empty()) {
    config["s3.session-token"] = keys.session_token;
  }
  if (keys.expires) {
    config["s3.session-token-expires-at-ms"] = std::to_string(ToMillis(*keys.expires));
  }
  if (!bucket.endpoint.empty()) {
    config["s3.endpoint"] = bucket.endpoint;
  }
  if (storage::s3::IsPathStyle(bucket)) {
    config["s3.path-style-access"] = "true";
  }
  return config;
}

json CredentialsOf(const GrantedKeys& keys, const storage::s3::S3Options& bucket) {
  json list = json::array();
  for (const std::string& prefix : keys.prefixes) {
    list.push_back({{"prefix", prefix}, {"config", ConfigOf(keys.credentials, bucket)}});
  }
  return list;
}

}  // namespace

bool IcebergApi::WantsKeys(const RequestContext& context) const {
  return deps_.vendor != nullptr &&
         context.http.headers.HasToken("X-Iceberg-Access-Delegation", "vended-credentials");
}

// Where the files of a published table lie: in the internal table's folder, which its reader may
// see or not. Empty when `target` is none or the caller may not.
Result<std::string> IcebergApi::InternalLocation(SqlTransaction& sql, const RequestContext& context,
                                                 const Target& target) const {
  const std::string& name = target.object.name;
  if (target.object.writers != catalog::Writers::kProduct || !name.ends_with(kPublishedSuffix)) {
    return std::string();
  }
  TARN_ASSIGN_OR_RETURN(const std::optional<CatalogObject> view,
                        catalog::FindObject(sql, target.object.folder,
                                            name.substr(0, name.size() - kPublishedSuffix.size())));
  if (!view || view->kind != ObjectKind::kView || view->writers != catalog::Writers::kProduct) {
    return std::string();
  }
  TARN_ASSIGN_OR_RETURN(const catalog::ViewMetadataPtr metadata,
                        deps_.catalog.ReadView(view->metadata_location));
  const auto schema = metadata->properties.find(std::string(kInternalSchema));
  const auto table = metadata->properties.find(std::string(kInternalTable));
  if (schema == metadata->properties.end() || table == metadata->properties.end()) {
    return std::string();
  }
  TARN_ASSIGN_OR_RETURN(const Rid project, ProjectOf(sql, target.path.prefix));
  TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> folder,
                        tree::FindChild(sql, project, schema->second));
  if (!folder) {
    return std::string();
  }
  TARN_ASSIGN_OR_RETURN(const std::optional<CatalogObject> internal,
                        catalog::FindObject(sql, folder->rid, table->second));
  if (!internal || internal->writers != catalog::Writers::kProduct) {
    return std::string();
  }
  TARN_ASSIGN_OR_RETURN(const Role role, RoleOn(sql, context, internal->rid));
  return role >= Role::kViewer ? internal->location : std::string();
}

Result<storage::s3::VendingRequest> IcebergApi::PlanKeys(
    SqlTransaction& sql, const RequestContext& context, const Target& target,
    const iceberg::TableMetadata& metadata) const {
  const storage::ObjectStore& store = deps_.catalog.deps().warehouse;
  bool writes = target.role >= Role::kEditor &&
                context.principal.scopes.Contains(access::Scope::kIcebergWrite);
  if (writes) {
    const Status changeable = RequireChangeable(sql, context, target);
    writes = changeable.ok();
    if (!writes && changeable.code() != ErrorCode::kPermissionDenied) {
      return changeable;
    }
  }
  std::vector<std::string> own = {target.object.location};
  for (const std::string& folder : NamedFolders(store, target.object.location, metadata)) {
    // As long as nobody else has anything there.
    const Status free = catalog::RequireFreeLocation(
        sql, store,
        {.location = folder, .owner = target.object.rid, .folder = target.object.folder});
    if (free.ok()) {
      own.push_back(folder);
    } else if (free.code() != ErrorCode::kPermissionDenied) {
      return free;
    }
  }
  TARN_ASSIGN_OR_RETURN(const std::string internal, InternalLocation(sql, context, target));
  const std::string& prefix = deps_.vendor->bucket().prefix;
  storage::s3::VendingRequest request{.session = "tarn-" + target.object.uuid, .folders = {}};
  const auto add = [&](const std::string& uri, std::vector<std::string>& folders) -> Status {
    TARN_ASSIGN_OR_RETURN(const std::string key, storage::KeyOf(store, uri));
    folders.push_back(prefix.empty() ? key : prefix + "/" + key);
    return Status::Ok();
  };
  for (const std::string& uri : own) {
    TARN_RETURN_IF_ERROR(add(uri, writes ? request.folders.write : request.folders.read));
  }
  if (!internal.empty()) {
    TARN_RETURN_IF_ERROR(add(internal, request.folders.read));
  }
  return request;
}

Result<std::optional<GrantedKeys>> IcebergApi::KeysFor(const RequestContext& context,
                                                       const Target& target,
                                                       const iceberg::TableMetadata& metadata) {
  std::optional<GrantedKeys> keys;
  if (!WantsKeys(context)) {
    return keys;
  }
  storage::s3::VendingRequest request;
  TARN_RETURN_IF_ERROR(database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(request, PlanKeys(sql, context, target, metadata));
    return Status::Ok();
  }));
  Result<std::optional<storage::s3::VendedKeys>> given = deps_.vendor->Get(request);
  if (!given.ok()) {
    return given.status().WithContext("credentials for the files of " +
                                      target.path.identifier().ToString());
  }
  if (*given) {
    keys = GrantedKeys{.credentials = (*given)->credentials, .prefixes = {}};
    const storage::s3::S3Options& bucket = deps_.vendor->bucket();
    for (const auto* folders : {&(*given)->folders.write, &(*given)->folders.read}) {
      for (const std::string& folder : *folders) {
        keys->prefixes.push_back(fmt::format("{}://{}/{}/", bucket.scheme, bucket.bucket, folder));
      }
    }
  }
  return keys;
}

std::string IcebergApi::CredentialsText(const GrantedKeys& keys) const {
  return CredentialsOf(keys, deps_.vendor->bucket()).dump();
}

http::Response IcebergApi::WithConfig(std::string text, const CatalogPath& path,
                                      const std::optional<GrantedKeys>& keys) const {
  constexpr std::string_view kNoConfig = R"(,"config":{}})";
  http::Response response;
  response.headers.Set("Content-Type", "application/json");
  response.body = std::move(text);
  if (!keys) {
    response.body += kNoConfig;
    return response;
  }
  const storage::s3::S3Options& bucket = deps_.vendor->bucket();
  response.kept_body = response.body + std::string(kNoConfig);
  response.headers.Set("Cache-Control", "no-store");
  json config = ConfigOf(keys->credentials, bucket);
  // Java's client renews by this route only where it finds a single entry there.
  if (keys->credentials.expires && keys->prefixes.size() == 1) {
    config["client.refresh-credentials-endpoint"] = PathOfCredentials(path);
  }
  response.body += fmt::format(R"(,"config":{},"storage-credentials":{}}})", config.dump(),
                               CredentialsOf(*keys, bucket).dump());
  return response;
}

Result<http::Response> IcebergApi::GetCredentials(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const Target target,
                        ReadTarget(context, ObjectKind::kTable, Role::kViewer));
  json list = json::array();
  if (deps_.vendor != nullptr) {
    TARN_ASSIGN_OR_RETURN(const catalog::TableMetadataPtr metadata,
                          deps_.catalog.ReadTable(target.object.metadata_location));
    context.http.headers.Set("X-Iceberg-Access-Delegation", "vended-credentials");
    TARN_ASSIGN_OR_RETURN(const std::optional<GrantedKeys> keys,
                          KeysFor(context, target, *metadata));
    if (keys) {
      list = CredentialsOf(*keys, deps_.vendor->bucket());
    }
  }
  http::Response response = JsonResponse({{"storage-credentials", std::move(list)}});
  response.headers.Set("Cache-Control", "no-store");
  return response;
}

}  // namespace tarn::server::iceberg_rest
