// Views: stored queries in the words of several engines.
#include <fmt/format.h>

#include "tarn/base/json_text.h"
#include "tarn/catalog/location.h"
#include "tarn/catalog/pointer_store.h"
#include "tarn/server/iceberg_rest/iceberg_api.h"

namespace tarn::server::iceberg_rest {

using access::Role;
using catalog::ObjectKind;
using metastore::SqlTransaction;

http::Response IcebergApi::ViewResponse(const catalog::LoadedView& view) const {
  catalog::ViewMetadataPtr metadata = view.metadata;
  if (!options_.catalog_name.empty()) {
    iceberg::ViewMetadata named = *metadata;
    for (iceberg::ViewVersion& version : named.versions) {
      version.default_catalog = version.default_catalog.value_or(options_.catalog_name);
    }
    metadata = std::make_shared<const iceberg::ViewMetadata>(std::move(named));
  }
  http::Response response;
  response.headers.Set("Content-Type", "application/json");
  response.body = fmt::format(R"({{"metadata-location":{},"metadata":{},"config":{{}}}})",
                              JsonString(view.object.metadata_location),
                              iceberg::FormatViewMetadata(*metadata));
  return response;
}

Result<http::Response> IcebergApi::ListViews(RequestContext& context) {
  return ListObjects(context, ObjectKind::kView);
}

Result<http::Response> IcebergApi::LoadView(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(Target target, ReadTarget(context, ObjectKind::kView, Role::kViewer));
  Result<catalog::ViewMetadataPtr> metadata =
      deps_.catalog.ReadView(target.object.metadata_location);
  if (metadata.status().code() == ErrorCode::kNotFound) {
    return metadata.status().WithReason("NotFoundException");
  }
  TARN_RETURN_IF_ERROR(metadata);
  return ViewResponse({.object = std::move(target.object), .metadata = *std::move(metadata)});
}

Result<http::Response> IcebergApi::HeadView(RequestContext& context) {
  TARN_RETURN_IF_ERROR(ReadTarget(context, ObjectKind::kView, Role::kViewer));
  return NoContent();
}

Result<http::Response> IcebergApi::CreateView(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  TARN_ASSIGN_OR_RETURN(CreateViewRequest request, ReadCreateView(context));
  const std::string name = catalog::Identifier{path.levels, request.name}.ToString();
  Place place;
  const auto check = [&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(place, FindPlace(sql, context, path, Role::kEditor));
    return RequireFreeName(sql, place, ObjectKind::kView, request.name);
  };
  TARN_RETURN_IF_ERROR(AuditDenial(context, "view.create", name, database().Read(check)));
  const catalog::CatalogDeps& deps = deps_.catalog.deps();
  const std::string uuid = deps.uuids.NextV7().ToString();
  TARN_ASSIGN_OR_RETURN(std::string location, LocationFor(request.location, "views", uuid));
  request.version.schema_id = iceberg::kLastAdded;
  const Result<iceberg::ViewUpdateResult> result =
      iceberg::ApplyViewUpdates(nullptr,
                                {iceberg::table_update::AssignUuid{uuid},
                                 iceberg::table_update::SetLocation{std::move(location)},
                                 iceberg::table_update::SetProperties{request.properties},
                                 iceberg::table_update::AddSchema{request.schema, std::nullopt},
                                 iceberg::view_update::AddViewVersion{std::move(request.version)},
                                 iceberg::view_update::SetCurrentViewVersion{}},
                                ToMillis(deps.clock.Now()));
  if (result.status().code() == ErrorCode::kInvalidArgument) {
    // The name by which Java clients know a view that makes no sense.
    return result.status().WithReason("IllegalArgumentException");
  }
  TARN_RETURN_IF_ERROR(result);
  const Result<catalog::LoadedView> made = deps_.catalog.CreateView(
      {.folder = place.folder, .name = request.name, .by = context.principal.user_id},
      result->metadata, [&](SqlTransaction& sql) -> Status {
        TARN_RETURN_IF_ERROR(check(sql));
        return AuditChange(sql, context, "view.create", name);
      });
  TARN_RETURN_IF_ERROR(AuditDenial(context, "view.create", name, made.status()));
  return ViewResponse(*made);
}

Result<http::Response> IcebergApi::CommitView(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  TARN_ASSIGN_OR_RETURN(ViewCommitRequest request, ReadViewCommit(context));
  const std::string name = path.identifier().ToString();
  catalog::ViewChange change{.view = {}, .requirements = std::move(request.requirements)};
  for (iceberg::ViewUpdate& update : request.updates) {
    if (const auto* location = std::get_if<iceberg::table_update::SetLocation>(&update)) {
      Result<std::string> canonical = catalog::CanonicalLocation(warehouse(), location->location);
      if (!canonical.ok()) {
        if (options_.foreign_locations == ForeignLocations::kRefuse) {
          return canonical.status();
        }
        continue;
      }
      update = iceberg::table_update::SetLocation{*std::move(canonical)};
    }
    change.updates.push_back(std::move(update));
  }
  const Status planned = database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const Target target,
                          FindTarget(sql, context, path, ObjectKind::kView, Role::kEditor));
    TARN_RETURN_IF_ERROR(RequireChangeable(sql, context, target));
    change.view = target.object;
    return Status::Ok();
  });
  TARN_RETURN_IF_ERROR(AuditDenial(context, "view.commit", name, planned));
  const Result<catalog::LoadedView> committed = deps_.catalog.CommitView(
      change, [&](SqlTransaction& sql) { return AuditChange(sql, context, "view.commit", name); });
  const Status& status = committed.status();
  if (status.code() == ErrorCode::kNotFound && status.message().starts_with("View does not")) {
    return NoObject(ObjectKind::kView, path.identifier());
  }
  if (status.code() == ErrorCode::kConflict) {
    return status.WithContext("Cannot commit");
  }
  TARN_RETURN_IF_ERROR(AuditDenial(context, "view.commit", name, status));
  return ViewResponse(*committed);
}

Result<http::Response> IcebergApi::DropView(RequestContext& context) {
  TARN_RETURN_IF_ERROR(Drop(context, ObjectKind::kView, "view.drop"));
  return NoContent();
}

Result<http::Response> IcebergApi::RenameView(RequestContext& context) {
  return Rename(context, ObjectKind::kView);
}

Result<http::Response> IcebergApi::RegisterView(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  TARN_ASSIGN_OR_RETURN(const RegisterRequest request, ReadRegister(context));
  const std::string name = catalog::Identifier{path.levels, request.name}.ToString();
  Place place;
  const auto check = [&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(place, FindPlace(sql, context, path, Role::kEditor));
    return RequireFreeName(sql, place, ObjectKind::kView, request.name);
  };
  TARN_RETURN_IF_ERROR(AuditDenial(context, "view.register", name, database().Read(check)));
  const Result<catalog::LoadedView> made = deps_.catalog.RegisterView(
      {.folder = place.folder, .name = request.name, .by = context.principal.user_id},
      request.metadata_location, [&](SqlTransaction& sql) -> Status {
        TARN_RETURN_IF_ERROR(check(sql));
        return AuditChange(sql, context, "view.register", name);
      });
  if (made.status().code() == ErrorCode::kNotFound && made.status().reason().empty()) {
    return made.status().WithReason("NotFoundException");
  }
  TARN_RETURN_IF_ERROR(AuditDenial(context, "view.register", name, made.status()));
  return ViewResponse(*made);
}

}  // namespace tarn::server::iceberg_rest
