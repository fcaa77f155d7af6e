#include "tarn/query/snapshot_relation.h"

#include "tarn/query/query_fixture.h"

namespace tarn::query {

namespace {

iceberg::SchemaField Column(int32_t id, const std::string& name, iceberg::Type type) {
  iceberg::SchemaField field;
  field.id = id;
  field.name = name;
  field.type = std::move(type);
  return field;
}

class SnapshotRelationTest : public QueryFixture {};

// Every type that tables can have must be one that the engine knows.
TEST_F(SnapshotRelationTest, TypesAreTheEnginesOwn) {
  using iceberg::Type;
  const std::vector<std::pair<Type, std::string>> types = {
      {Type::Boolean(), "BOOLEAN"},
      {Type::Int(), "INTEGER"},
      {Type::Long(), "BIGINT"},
      {Type::Float(), "FLOAT"},
      {Type::Double(), "DOUBLE"},
      {Type::Decimal(38, 4), "DECIMAL(38,4)"},
      {Type::Date(), "DATE"},
      {Type::Time(), "TIME"},
      {Type::Timestamp(), "TIMESTAMP"},
      {Type::TimestampTz(), "TIMESTAMP WITH TIME ZONE"},
      {Type::String(), "VARCHAR"},
      {Type::Uuid(), "UUID"},
      {Type::Fixed(20), "BLOB"},
      {Type::Binary(), "BLOB"},
      {Type::List(3, Type::Long(), false), "BIGINT[]"},
      {Type::Map(3, Type::String(), 4, Type::Date(), false), "MAP(VARCHAR, DATE)"},
      {Type::Struct({Column(3, "a \"b\"", Type::List(4, Type::Int(), false))}),
       "STRUCT(\"a \"\"b\"\"\" INTEGER[])"},
  };
  ASSERT_OK_AND_ASSIGN(const auto session, engine_->OpenSession());
  std::vector<iceberg::SchemaField> columns;
  for (const auto& [type, text] : types) {
    EXPECT_THAT(SqlTypeOf(type), IsOkAndHolds(text));
    const auto id = static_cast<int32_t>(columns.size());
    columns.push_back(Column(id + 100, "c" + std::to_string(id), type));
  }
  ASSERT_OK(MakeSnapshotRelation(*session, *warehouse_,
                                 {.name = "none", .columns = columns, .files = {}}));
  ASSERT_OK_AND_ASSIGN(const auto schema, session->Describe("SELECT * FROM none"));
  EXPECT_EQ(schema->num_fields(), static_cast<int>(types.size()));
}

TEST_F(SnapshotRelationTest, OtherTypesAndFormatsAreRefused) {
  ASSERT_OK_AND_ASSIGN(const auto session, engine_->OpenSession());
  iceberg::Type variant;
  variant.id = iceberg::TypeId::kVariant;
  EXPECT_THAT(
      MakeSnapshotRelation(*session, *warehouse_,
                           {.name = "v", .columns = {Column(1, "shape", variant)}, .files = {}}),
      FailsWith(ErrorCode::kUnimplemented, "shape"));
  std::vector<iceberg::FileScanTask> tasks(1);
  tasks[0].file.file_path = "file:///x.orc";
  tasks[0].file.file_format = "ORC";
  EXPECT_THAT(
      MakeSnapshotRelation(
          *session, *warehouse_,
          {.name = "v", .columns = {Column(1, "id", iceberg::Type::Long())}, .files = tasks}),
      FailsWith(ErrorCode::kUnimplemented, "file:///x.orc"));
}

}  // namespace

}  // namespace tarn::query
