#include "tarn/maintenance/trace.h"

#include "tarn/lakehouse/internal_schema.h"
#include "test/support/matchers.h"

namespace tarn::maintenance {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

iceberg::TableMetadata Merged(const std::string& key) {
  iceberg::Schema users;
  for (const auto& [name, type] :
       {std::pair("id", iceberg::Type::Long()), std::pair("Region", iceberg::Type::String())}) {
    iceberg::SchemaField field;
    field.id = static_cast<int32_t>(users.fields.size()) + 1;
    field.name = name;
    field.type = type;
    users.fields.push_back(std::move(field));
  }
  iceberg::TableMetadata metadata;
  int32_t last = 0;
  metadata.schemas.push_back(std::make_shared<const iceberg::Schema>(
      iceberg::AssignFreshIds(lakehouse::InternalSchema(users), last)));
  metadata.properties["tarn.key"] = key;
  return metadata;
}

catalog::CatalogObject Internal() {
  return {.name = "orders_internal", .writers = catalog::Writers::kProduct};
}

TEST(TraceSqlTest, TheKeyIsAValueOrAnArrayOfValues) {
  const Result<std::string> one = TraceSql(Internal(), Merged("id"), "7' OR 1=1");
  ASSERT_OK(one);
  EXPECT_THAT(*one, AllOf(HasSubstr(R"("id" = CAST('7'' OR 1=1' AS BIGINT))"),
                          HasSubstr(R"({'id': "id", 'Region': "Region"} AS "row")")));
  const Result<std::string> two = TraceSql(Internal(), Merged("id\x1fregion"), R"([7, "e\"u"])");
  ASSERT_OK(two);
  EXPECT_THAT(*two, HasSubstr(R"(CAST('7' AS BIGINT) AND "Region" = CAST('e"u' AS VARCHAR))"));
  const Result<std::string> with_null = TraceSql(Internal(), Merged("id\x1fregion"), "[null, 7]");
  ASSERT_OK(with_null);
  EXPECT_THAT(*with_null, HasSubstr(R"("id" IS NULL AND "Region" = CAST('7' AS VARCHAR))"));
}

TEST(TraceSqlTest, WhatHasNoSuchKeyIsRefused) {
  EXPECT_THAT(TraceSql(Internal(), Merged("id\x1fregion"), "7"),
              FailsWith(ErrorCode::kInvalidArgument, "2 columns"));
  EXPECT_THAT(TraceSql(Internal(), Merged("gone"), "7"), FailsWith(ErrorCode::kCorruption, "gone"));
  EXPECT_THAT(TraceSql(Internal(), Merged(""), "7"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(TraceSql({.name = "t"}, Merged("id"), "7"),
              FailsWith(ErrorCode::kInvalidArgument, "t keeps no changes"));
}

}  // namespace

}  // namespace tarn::maintenance
