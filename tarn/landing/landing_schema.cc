#include "tarn/landing/landing_schema.h"

#include <nlohmann/json.hpp>

namespace tarn::landing {

namespace {

using format::Field;
using format::FieldKind;
using nlohmann::json;

Field Header(const char* name, FieldKind kind) {
  return {.name = name, .type = {.kind = kind}, .nullable = true};
}

json ToJson(const Field& field, bool named) {
  json node{{"type", format::FieldKindName(field.type.kind)}, {"nullable", field.nullable}};
  if (named) {
    node["name"] = field.name;
  }
  const std::vector<Field>& children = field.type.children;
  switch (field.type.kind) {
    case FieldKind::kDecimal:
      node["precision"] = field.type.precision;
      node["scale"] = field.type.scale;
      break;
    case FieldKind::kArray:
      node["arraySubtype"] = ToJson(children.front(), false);
      break;
    case FieldKind::kMap:
      node["mapKeyType"] = ToJson(children.front(), false);
      node["mapValueType"] = ToJson(children.back(), false);
      break;
    case FieldKind::kStruct: {
      node["subSchemas"] = json::array();
      for (const Field& child : children) {
        node["subSchemas"].push_back(ToJson(child, true));
      }
      break;
    }
    default:
      break;
  }
  return node;
}

}  // namespace

std::vector<Field> LandingFields(const LandingSpec& spec, const format::ColumnSet& columns) {
  std::vector<Field> fields =
      spec.kafka ? std::vector<Field>{Header("hdr__kafka_partition", FieldKind::kLong),
                                      Header("hdr__kafka_topic", FieldKind::kString),
                                      Header("hdr__kafka_offset", FieldKind::kLong),
                                      Header("hdr__kafka_key", FieldKind::kString),
                                      Header("hdr__kafka_headers", FieldKind::kString),
                                      Header("hdr__kafka_tombstone", FieldKind::kBoolean)}
                 : std::vector<Field>{Header("hdr__file_name", FieldKind::kString),
                                      Header("hdr__file_size", FieldKind::kLong),
                                      Header("hdr__file_row", FieldKind::kLong)};
  fields.push_back(Header("hdr__landed_timestamp", FieldKind::kTimestamp));
  fields.push_back(Header("hdr__event_timestamp", FieldKind::kTimestamp));
  if (spec.envelope == Envelope::kDebezium) {
    fields.push_back(Header("hdr__cdc_table", FieldKind::kString));
    fields.push_back(Header("hdr__cdc_operation", FieldKind::kString));
    fields.push_back(Header("hdr__cdc_position", FieldKind::kString));
    fields.push_back(Header("hdr__cdc_timestamp", FieldKind::kTimestamp));
    fields.push_back(Header("hdr__cdc_transaction", FieldKind::kString));
    fields.push_back(Header("hdr__cdc_before", FieldKind::kString));
  }
  fields.push_back(Header("hdr__absent", FieldKind::kString));
  const std::vector<Field> users = format::FieldsOf(columns);
  fields.insert(fields.end(), users.begin(), users.end());
  return fields;
}

std::string MakeLandingSchema(const LandingSpec& spec, const format::ColumnSet& columns) {
  json fields = json::array();
  for (const Field& field : LandingFields(spec, columns)) {
    fields.push_back(ToJson(field, true));
  }
  return json{{"fieldSchemaList", std::move(fields)},
              {"dataFrameReaderClass", "com.palantir.foundry.spark.input.ParquetDataFrameReader"}}
      .dump();
}

}  // namespace tarn::landing
