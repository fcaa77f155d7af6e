#include "tarn/iceberg/update/table_replacement.h"

#include "tarn/iceberg/metadata_builder.h"
#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

using ::testing::ElementsAre;

SchemaField Field(int32_t id, std::string name, Type type) {
  SchemaField field;
  field.id = id;
  field.name = std::move(name);
  field.type = std::move(type);
  return field;
}

TableDefinition Definition(std::vector<SchemaField> fields) {
  TableDefinition definition;
  definition.table_uuid = "0190a1b2-0000-7000-8000-000000000001";
  definition.location = "file:///w/t";
  definition.schema.fields = std::move(fields);
  return definition;
}

class TableReplacementTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TableDefinition first = Definition(
        {Field(1, "id", Type::Long()), Field(2, "s", Type::Struct({Field(3, "x", Type::String())})),
         Field(4, "at", Type::Timestamp())});
    first.spec.fields = {{.source_id = 1,
                          .field_id = 1000,
                          .name = "id",
                          .transform = ParseTransform("identity").value()}};
    first.properties = {{"owner", "me"}};
    ASSERT_OK_AND_ASSIGN(base_, MakeTableMetadata(first, 1));
    Snapshot snapshot;
    snapshot.snapshot_id = 7;
    snapshot.sequence_number = 1;
    snapshot.timestamp_ms = 2;
    snapshot.manifest_list = "file:///w/t/metadata/snap-7.avro";
    snapshot.operation = SnapshotOperation::kAppend;
    snapshot.schema_id = 0;
    SnapshotRef ref;
    ref.snapshot_id = 7;
    SnapshotRef tag = ref;
    tag.type = SnapshotRefType::kTag;
    ASSERT_OK_AND_ASSIGN(const UpdateResult result,
                         ApplyUpdates(&base_,
                                      {table_update::AddSnapshot{snapshot},
                                       table_update::SetSnapshotRef{"main", ref},
                                       table_update::SetSnapshotRef{"kept", tag}},
                                      2));
    base_ = result.metadata;
  }

  Result<TableMetadata> Replace(TableDefinition definition) {
    definition.location.clear();
    TARN_ASSIGN_OR_RETURN(const std::vector<TableUpdate> updates,
                          PlanReplacement(base_, definition));
    TARN_ASSIGN_OR_RETURN(UpdateResult result, ApplyUpdates(&base_, updates, 3));
    return std::move(result.metadata);
  }
  static std::vector<int32_t> Ids(const TableMetadata& metadata) {
    std::vector<int32_t> ids;
    for (const SchemaField* field : AllFields(metadata.CurrentSchema())) {
      ids.push_back(field->id);
    }
    return ids;
  }

  TableMetadata base_;
};

TEST_F(TableReplacementTest, HistoryStaysAndMainGoes) {
  ASSERT_OK_AND_ASSIGN(const TableMetadata next,
                       Replace(Definition({Field(1, "only", Type::String())})));
  EXPECT_EQ(next.table_uuid, base_.table_uuid);
  EXPECT_EQ(next.location, "file:///w/t");
  EXPECT_EQ(next.CurrentSnapshot(), nullptr);
  EXPECT_EQ(next.snapshots.size(), 1u);
  EXPECT_EQ(next.refs.size(), 1u);
  EXPECT_EQ(next.refs.count("kept"), 1u);
  EXPECT_EQ(next.schemas.size(), 2u);
  EXPECT_EQ(next.partition_specs.size(), 2u);
  EXPECT_TRUE(next.FindSpec(next.default_spec_id)->fields.empty());
  EXPECT_EQ(next.properties.at("owner"), "me");
  EXPECT_EQ(next.properties.count("format-version"), 0u);
}

TEST_F(TableReplacementTest, ColumnsThatStayKeepTheirIdsAndNoOthersDo) {
  // "id" is as it was, "at" has another type, "s" another member, "new" is new.
  ASSERT_OK_AND_ASSIGN(
      const TableMetadata next,
      Replace(Definition({Field(1, "new", Type::Long()), Field(2, "at", Type::Date()),
                          Field(3, "id", Type::Long()),
                          Field(4, "s", Type::Struct({Field(5, "y", Type::String())}))})));
  EXPECT_THAT(Ids(next), ElementsAre(5, 6, 1, 7, 8));
  EXPECT_EQ(next.last_column_id, 8);
  // Once more is the same: schemas do not pile up.
  base_ = next;
  ASSERT_OK_AND_ASSIGN(
      const TableMetadata again,
      Replace(Definition({Field(1, "new", Type::Long()), Field(2, "at", Type::Date()),
                          Field(3, "id", Type::Long()),
                          Field(4, "s", Type::Struct({Field(5, "y", Type::String())}))})));
  EXPECT_EQ(again.schemas.size(), next.schemas.size());
  EXPECT_EQ(again.partition_specs.size(), next.partition_specs.size());
  EXPECT_EQ(again.current_schema_id, next.current_schema_id);
}

TEST_F(TableReplacementTest, PartitioningAndOrderFollowTheirColumns) {
  TableDefinition definition =
      Definition({Field(1, "at", Type::Date()), Field(2, "id", Type::Long())});
  definition.spec.fields = {
      {.source_id = 1, .field_id = 1000, .name = "m", .transform = ParseTransform("month").value()},
      {.source_id = 2,
       .field_id = 1001,
       .name = "id",
       .transform = ParseTransform("identity").value()}};
  definition.sort_order.fields = {
      {.source_id = 2, .transform = ParseTransform("identity").value()}};
  ASSERT_OK_AND_ASSIGN(const TableMetadata next, Replace(definition));
  const PartitionSpec& spec = *next.FindSpec(next.default_spec_id);
  ASSERT_EQ(spec.fields.size(), 2u);
  EXPECT_EQ(spec.fields[0].source_id, 5);
  EXPECT_EQ(spec.fields[0].field_id, 1001);
  EXPECT_EQ(spec.fields[1].source_id, 1);
  EXPECT_EQ(spec.fields[1].field_id, 1000);  // As in the spec of before.
  EXPECT_EQ(next.FindSortOrder(next.default_sort_order_id)->fields[0].source_id, 1);
}

TEST_F(TableReplacementTest, WhatMakesNoTableReplacesNone) {
  EXPECT_THAT(Replace(Definition({Field(1, "a", Type::Long()), Field(2, "a", Type::Long())})),
              Fails(ErrorCode::kInvalidArgument));
  TableDefinition lower = Definition({Field(1, "a", Type::Long())});
  lower.properties = {{"format-version", "1"}};
  EXPECT_THAT(Replace(lower), FailsWith(ErrorCode::kInvalidArgument, "downgrade"));
  TableDefinition strange = Definition({Field(1, "a", Type::Long())});
  strange.spec.fields = {{.source_id = 9,
                          .field_id = 1000,
                          .name = "b",
                          .transform = ParseTransform("identity").value()}};
  EXPECT_THAT(Replace(strange), Fails(ErrorCode::kInvalidArgument));
}

}  // namespace
}  // namespace tarn::iceberg
