#include "tarn/iceberg/sort_order.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tarn::iceberg {

Status ValidateSortOrder(const SortOrder& order, const Schema& schema) {
  if (order.order_id == 0 && !order.fields.empty()) {
    return Status::InvalidArgument("Sort order ID 0 is reserved for unsorted order");
  }
  for (const SortField& field : order.fields) {
    const SchemaField* source = schema.FindField(field.source_id);
    if (source == nullptr) {
      return Status::InvalidArgument(
          fmt::format("Cannot find source column for sort field: {}", field.source_id));
    }
    const Result<Type> type = TransformResultType(field.transform, source->type);
    if (!type.ok()) {
      return type.status().WithContext(fmt::format("sort by column '{}'", source->name));
    }
  }
  return Status::Ok();
}

Json SortOrderToJson(const SortOrder& order) {
  Json fields = Json::array();
  for (const SortField& field : order.fields) {
    fields.push_back(
        {{"transform", FormatTransform(field.transform)},
         {"source-id", field.source_id},
         {"direction", field.direction == SortDirection::kAscending ? "asc" : "desc"},
         {"null-order", field.null_order == NullOrder::kFirst ? "nulls-first" : "nulls-last"}});
  }
  return {{"order-id", order.order_id}, {"fields", std::move(fields)}};
}

namespace {

Result<SortField> SortFieldFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "sort field"));
  SortField field;
  TARN_ASSIGN_OR_RETURN(const std::string transform, object.GetString("transform"));
  TARN_ASSIGN_OR_RETURN(field.transform, ParseTransform(transform));
  TARN_ASSIGN_OR_RETURN(const std::vector<int32_t> sources, object.FindInts("source-ids"));
  if (sources.empty()) {
    TARN_ASSIGN_OR_RETURN(field.source_id, object.GetInt("source-id"));
  } else {
    field.source_id = sources[0];
  }
  TARN_ASSIGN_OR_RETURN(const std::string direction, object.GetString("direction"));
  if (direction != "asc" && direction != "desc") {
    return object.Error("direction", "asc or desc", Json(direction));
  }
  field.direction = direction == "asc" ? SortDirection::kAscending : SortDirection::kDescending;
  TARN_ASSIGN_OR_RETURN(const std::string nulls, object.GetString("null-order"));
  if (nulls != "nulls-first" && nulls != "nulls-last") {
    return object.Error("null-order", "nulls-first or nulls-last", Json(nulls));
  }
  field.null_order = nulls == "nulls-first" ? NullOrder::kFirst : NullOrder::kLast;
  return field;
}

}  // namespace

Result<SortOrder> SortOrderFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "sort order"));
  SortOrder order;
  TARN_ASSIGN_OR_RETURN(order.order_id, object.GetInt("order-id"));
  TARN_RETURN_IF_ERROR(object.Get("fields"));
  TARN_ASSIGN_OR_RETURN(const auto fields, object.FindArray("fields"));
  for (const Json* element : fields) {
    TARN_ASSIGN_OR_RETURN(SortField field, SortFieldFromJson(*element));
    order.fields.push_back(std::move(field));
  }
  return order;
}

}  // namespace tarn::iceberg
