// Making tables: from a schema, staged for a commit that follows, or from a metadata file.
#include <fmt/format.h>

#include "tarn/base/json_text.h"
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

Result<http::Response> IcebergApi::StageTable(const Place& place,
                                              const iceberg::TableMetadata& metadata) {
  const catalog::CatalogDeps& deps = deps_.catalog.deps();
  TARN_RETURN_IF_ERROR(database().Read([&](SqlTransaction& sql) {
    return catalog::RequireFreeLocation(
        sql, deps.warehouse, {.location = metadata.location, .owner = {}, .folder = place.folder});
  }));
  TARN_RETURN_IF_ERROR(catalog::MakeWriteFolders(deps.warehouse, metadata.location));
  http::Response response;
  response.headers.Set("Content-Type", "application/json");
  response.body =
      fmt::format(R"({{"metadata":{},"config":{{}}}})", iceberg::FormatTableMetadata(metadata));
  return response;
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
  if (request.stage) {
    return StageTable(place, metadata);
  }
  const Result<catalog::LoadedTable> made = deps_.catalog.CreateTable(
      {.folder = place.folder, .name = request.name, .by = context.principal.user_id}, metadata,
      [&](SqlTransaction& sql) -> Status {
        TARN_RETURN_IF_ERROR(check(sql));
        return AuditChange(sql, context, "table.create", name);
      });
  TARN_RETURN_IF_ERROR(AuditDenial(context, "table.create", name, made.status()));
  TARN_RETURN_IF_ERROR(catalog::MakeWriteFolders(deps.warehouse, metadata.location));
  return TableResponse(*made, true);
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
  return TableResponse(*made, true);
}

}  // namespace tarn::server::iceberg_rest
