// Making tables: from a schema, staged for a commit that follows, or from a metadata file.
#include <fmt/format.h>

#include "tarn/base/log.h"
#include "tarn/catalog/location.h"
#include "tarn/catalog/pointer_store.h"
#include "tarn/iceberg/table_metadata_json.h"
#include "tarn/server/iceberg_rest/iceberg_api.h"

namespace tarn::server::iceberg_rest {

using access::Role;
using catalog::ObjectKind;
using metastore::SqlTransaction;

Result<std::string> IcebergApi::LocationFor(const std::optional<std::string>& requested,
                                            std::string_view folder,
                                            const std::string& uuid) const {
  const storage::ObjectStore& store = deps_.catalog.deps().warehouse;
  if (requested && !requested->empty()) {
    Result<std::string> canonical = catalog::CanonicalLocation(store, *requested);
    if (canonical.ok() || options_.foreign_locations == ForeignLocations::kRefuse) {
      return canonical;
    }
  }
  return storage::UriOf(store, fmt::format("{}/{}", folder, uuid));
}

namespace {

// A table that is being made, as its maker may use it.
Target NewTarget(const Place& place, std::string name, const iceberg::TableMetadata& metadata) {
  Target target{.path = place.path, .object = {}, .role = place.role};
  target.path.name = std::move(name);
  target.object.folder = place.folder;
  target.object.name = target.path.name;
  target.object.uuid = metadata.table_uuid;
  target.object.location = metadata.location;
  return target;
}

}  // namespace

Result<http::Response> IcebergApi::StageTable(RequestContext& context, const Target& target,
                                              const iceberg::TableMetadata& metadata) {
  const catalog::CatalogDeps& deps = deps_.catalog.deps();
  TARN_RETURN_IF_ERROR(database().Read([&](SqlTransaction& sql) {
    return catalog::RequireFreeLocation(
        sql, deps.warehouse,
        {.location = metadata.location, .owner = {}, .folder = target.object.folder});
  }));
  TARN_ASSIGN_OR_RETURN(const std::optional<GrantedKeys> keys, KeysFor(context, target, metadata));
  TARN_RETURN_IF_ERROR(catalog::MakeWriteFolders(deps.warehouse, metadata.location));
  return WithConfig(R"({"metadata":)" + iceberg::FormatTableMetadata(metadata), target.path, keys);
}

Result<http::Response> IcebergApi::CreateTable(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  TARN_ASSIGN_OR_RETURN(const CreateTableRequest request, ReadCreateTable(context));
  const std::string name = catalog::Identifier{path.levels, request.name}.ToString();
  Place place;
  const auto check = [&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(place, FindPlace(sql, context, path, Role::kEditor));
    return RequireFreeName(sql, place, ObjectKind::kTable, request.name);
  };
  TARN_RETURN_IF_ERROR(AuditDenial(context, "table.create", name, database().Read(check)));
  const catalog::CatalogDeps& deps = deps_.catalog.deps();
  iceberg::TableDefinition definition;
  definition.table_uuid = deps.uuids.NextV7().ToString();
  TARN_ASSIGN_OR_RETURN(definition.location,
                        LocationFor(request.location, "tables", definition.table_uuid));
  definition.schema = request.schema;
  definition.spec = request.spec;
  definition.sort_order = request.sort_order;
  definition.properties = request.properties;
  TARN_ASSIGN_OR_RETURN(const iceberg::TableMetadata metadata,
                        iceberg::MakeTableMetadata(definition, ToMillis(deps.clock.Now())));
  for (const std::string& write_path : catalog::NewWritePaths(nullptr, metadata)) {
    TARN_RETURN_IF_ERROR(database().Read([&](SqlTransaction& sql) {
      return catalog::RequireOwnFile(
          sql, deps.warehouse, {.location = metadata.location, .owner = {}, .folder = place.folder},
          write_path);
    }));
  }
  const Target target = NewTarget(place, request.name, metadata);
  if (request.stage) {
    return StageTable(context, target, metadata);
  }
  // First: without them the caller could not use what it made.
  TARN_ASSIGN_OR_RETURN(const std::optional<GrantedKeys> keys, KeysFor(context, target, metadata));
  const Result<catalog::LoadedTable> made = deps_.catalog.CreateTable(
      {.folder = place.folder, .name = request.name, .by = context.principal.user_id}, metadata,
      [&](SqlTransaction& sql) -> Status {
        TARN_RETURN_IF_ERROR(check(sql));
        return AuditChange(sql, context, "table.create", name);
      });
  TARN_RETURN_IF_ERROR(AuditDenial(context, "table.create", name, made.status()));
  TARN_RETURN_IF_ERROR(catalog::MakeWriteFolders(deps.warehouse, metadata.location));
  return CreatedResponse(*made, target.path, keys);
}

Result<http::Response> IcebergApi::RegisterTable(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  TARN_ASSIGN_OR_RETURN(const RegisterRequest request, ReadRegister(context));
  const catalog::Identifier identifier{path.levels, request.name};
  const std::string name = identifier.ToString();
  Place place;
  std::optional<catalog::CatalogObject> existing;
  const auto check = [&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(place, FindPlace(sql, context, path, Role::kEditor));
    existing.reset();
    if (request.overwrite) {
      TARN_ASSIGN_OR_RETURN(existing, catalog::FindObject(sql, place.folder, request.name));
      if (existing && existing->kind == ObjectKind::kTable) {
        const CatalogPath target_path{path.prefix, path.levels, request.name};
        TARN_ASSIGN_OR_RETURN(const Target target, FindTarget(sql, context, target_path,
                                                              ObjectKind::kTable, Role::kEditor));
        return RequireChangeable(sql, context, target);
      }
    }
    return RequireFreeName(sql, place, ObjectKind::kTable, request.name);
  };
  TARN_RETURN_IF_ERROR(AuditDenial(context, "table.register", name, database().Read(check)));
  const auto check_and_audit = [&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(check(sql));
    return AuditChange(sql, context, "table.register", name);
  };
  const Result<catalog::LoadedTable> made =
      existing
          ? deps_.catalog.ReplaceTable(*existing, request.metadata_location, check_and_audit)
          : deps_.catalog.RegisterTable(
                {.folder = place.folder, .name = request.name, .by = context.principal.user_id},
                request.metadata_location, check_and_audit);
  if (made.status().code() == ErrorCode::kNotFound && made.status().reason().empty()) {
    return made.status().WithReason("NotFoundException");
  }
  TARN_RETURN_IF_ERROR(AuditDenial(context, "table.register", name, made.status()));
  const Target target{
      .path = {path.prefix, path.levels, request.name}, .object = made->object, .role = place.role};
  Result<std::optional<GrantedKeys>> keys = KeysFor(context, target, *made->metadata);
  if (!keys.ok()) {
    // The table is there; its keys can still be asked for.
    Log(LogLevel::kWarning, "server", "register " + name + ": " + keys.status().ToString());
    keys = std::optional<GrantedKeys>();
  }
  return CreatedResponse(*made, target.path, *keys);
}

}  // namespace tarn::server::iceberg_rest
