// Any bytes as a filter of a scan: no crash, and a filter that is read can be bound to the schema
// that it was read for, or is refused.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tarn/base/check.h"
#include "tarn/iceberg/wire/filter_json.h"

namespace {

tarn::iceberg::Schema MakeSchema() {
  using tarn::iceberg::SchemaField;
  using tarn::iceberg::Type;
  tarn::iceberg::Schema schema;
  const auto add = [&](int32_t id, const char* name, Type type) {
    SchemaField field;
    field.id = id;
    field.name = name;
    field.type = std::move(type);
    schema.fields.push_back(std::move(field));
  };
  add(1, "a", Type::Long());
  add(2, "b", Type::String());
  add(3, "c", Type::Date());
  add(4, "d", Type::Decimal(9, 2));
  add(5, "e", Type::Double());
  add(6, "f", Type::TimestampTz());
  add(7, "g", Type::Uuid());
  add(8, "h", Type::Binary());
  add(9, "i", Type::Boolean());
  SchemaField inner;
  inner.id = 11;
  inner.name = "x";
  inner.type = Type::Int();
  add(10, "s", Type::Struct({inner}));
  return schema;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tarn::iceberg::Schema schema = MakeSchema();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = tarn::iceberg::ParseJson(text, "filter");
  if (!json.ok()) {
    return 0;
  }
  const auto filter = tarn::iceberg::FilterFromJson(
      *json, {.named = schema, .planned = schema, .rule = tarn::iceberg::CaseRule::kInsensitive});
  if (!filter.ok()) {
    TARN_CHECK(filter.status().code() == tarn::ErrorCode::kInvalidArgument);
    return 0;
  }
  const auto bound = tarn::iceberg::Bind(*filter, schema);
  TARN_CHECK(bound.ok() || bound.status().code() == tarn::ErrorCode::kInvalidArgument);
  return 0;
}
