#include "tarn/iceberg/schema_update.h"

#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

Schema Base() {
  Schema schema;
  schema.fields = {
      {.id = 1, .name = "id", .required = true, .type = Type::Int()},
      {.id = 2,
       .name = "items",
       .type =
           Type::List(3, Type::Struct({{.id = 4, .name = "sku", .type = Type::String()}}), false)}};
  schema.identifier_field_ids = {1};
  return schema;
}

TEST(SchemaUpdateTest, AddedColumnsGetIdsThatWereNeverUsed) {
  SchemaUpdate update(Base(), 9, 2);
  ASSERT_OK(update.AddColumn({.name = "x", .type = Type::Long()}));
  ASSERT_OK(update.AddColumn({.parent = "items", .name = "price", .type = Type::Decimal(9, 2)}));
  EXPECT_EQ(update.schema().FindField("x")->id, 10);
  EXPECT_EQ(update.schema().FindField("items.element.price")->id, 11);
  ASSERT_OK(update.DropColumn("x"));
  ASSERT_OK(update.AddColumn({.name = "x", .type = Type::Long()}));
  EXPECT_EQ(update.schema().FindField("x")->id, 12);
  EXPECT_EQ(update.last_column_id(), 12);
}

TEST(SchemaUpdateTest, PositionsAreKept) {
  SchemaUpdate update(Base(), 4, 2);
  ASSERT_OK(update.AddColumn(
      {.name = "first", .type = Type::Long(), .position = {.kind = ColumnPosition::Kind::kFirst}}));
  ASSERT_OK(update.AddColumn({.name = "after",
                              .type = Type::Long(),
                              .position = {.kind = ColumnPosition::Kind::kAfter, .after = "id"}}));
  ASSERT_OK(update.MoveColumn("first", {.kind = ColumnPosition::Kind::kLast}));
  std::vector<std::string> names;
  for (const SchemaField& field : update.schema().fields) {
    names.push_back(field.name);
  }
  EXPECT_THAT(names, ::testing::ElementsAre("id", "after", "items", "first"));
}

TEST(SchemaUpdateTest, RenameWidenAndOptionalKeepTheId) {
  SchemaUpdate update(Base(), 4, 2);
  ASSERT_OK(update.RenameColumn("items.element.sku", "article"));
  EXPECT_EQ(update.schema().FindField("items.element.article")->id, 4);
  ASSERT_OK(update.WidenColumn("id", Type::Long()));
  EXPECT_EQ(update.schema().FindField(1)->type, Type::Long());
  EXPECT_THAT(update.WidenColumn("id", Type::Int()),
              FailsWith(ErrorCode::kInvalidArgument, "from long to int"));
  EXPECT_THAT(update.MakeOptional("id"), FailsWith(ErrorCode::kInvalidArgument, "identifier"));
}

TEST(SchemaUpdateTest, WrongChangesAreRefusedAndChangeNothing) {
  SchemaUpdate update(Base(), 4, 2, CaseRule::kInsensitive);
  EXPECT_THAT(update.AddColumn({.name = "ID", .type = Type::Int()}),
              Fails(ErrorCode::kAlreadyExists));
  EXPECT_THAT(update.RenameColumn("nothing", "x"), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(update.RenameColumn("items", "Id"), Fails(ErrorCode::kAlreadyExists));
  EXPECT_THAT(update.DropColumn("id"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(update.DropColumn("items.element"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(update.DropColumn("items.element.sku"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(update.AddColumn({.parent = "id", .name = "x", .type = Type::Int()}),
              Fails(ErrorCode::kInvalidArgument));
  Type nanos = Type::Timestamp();
  nanos.id = TypeId::kTimestampNs;
  EXPECT_THAT(update.AddColumn({.name = "x", .type = nanos}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_EQ(update.schema(), Base());
}

}  // namespace
}  // namespace tarn::iceberg
