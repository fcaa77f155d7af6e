#include "tarn/iceberg/metadata_builder.h"

#include <nlohmann/json.hpp>

#include "tarn/iceberg/table_requirement.h"
#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

using namespace table_update;  // NOLINT(google-build-using-namespace)

constexpr int64_t kNow = 1'700'000'000'000;

Schema OneColumn() {
  Schema schema;
  schema.fields = {{.id = 1, .name = "a", .required = true, .type = Type::Long()}};
  return schema;
}

TableMetadata Base(const std::string& version = "2") {
  return MakeTableMetadata({.table_uuid = "9c12d441-03fe-4693-9a96-a0705ddf69c1",
                            .location = "file:///w/t",
                            .schema = OneColumn(),
                            .properties = {{"format-version", version}, {"k", "v"}}},
                           kNow)
      .value();
}

Snapshot MakeSnapshot(int64_t id, int64_t sequence, std::optional<int64_t> parent = {}) {
  return {.snapshot_id = id,
          .parent_snapshot_id = parent,
          .sequence_number = sequence,
          .timestamp_ms = kNow + sequence * 1000,
          .manifest_list = "file:///w/t/metadata/snap-" + std::to_string(id) + ".avro",
          .operation = SnapshotOperation::kAppend};
}

std::vector<TableUpdate> Append(int64_t id, int64_t sequence, std::optional<int64_t> parent = {}) {
  return {AddSnapshot{MakeSnapshot(id, sequence, parent)},
          SetSnapshotRef{"main", {.snapshot_id = id}}};
}

TableMetadata Apply(const TableMetadata& base, const std::vector<TableUpdate>& updates) {
  Result<UpdateResult> result = ApplyUpdates(&base, updates, kNow + 50);
  EXPECT_OK(result);
  return result.ok() ? std::move(result).value().metadata : base;
}

TEST(MetadataBuilderTest, StagedCreateBuildsATableFromNothing) {
  PartitionSpec spec{
      .fields = {{.source_id = 1, .name = "a_bucket", .transform = Transform::Bucket(4)}}};
  SortOrder order{.order_id = 7, .fields = {{.source_id = 1}}};
  ASSERT_OK_AND_ASSIGN(
      const UpdateResult result,
      ApplyUpdates(nullptr,
                   {AssignUuid{"9C12D441-03FE-4693-9A96-A0705DDF69C1"}, UpgradeFormatVersion{2},
                    AddSchema{OneColumn(), std::nullopt}, SetCurrentSchema{}, AddSpec{spec},
                    SetDefaultSpec{}, AddSortOrder{order}, SetDefaultSortOrder{},
                    SetLocation{"file:///w/t/"}, SetProperties{{{"p", "1"}}}},
                   kNow));
  EXPECT_EQ(result.metadata.table_uuid, "9c12d441-03fe-4693-9a96-a0705ddf69c1");
  EXPECT_EQ(result.metadata.location, "file:///w/t");
  EXPECT_EQ(result.metadata.DefaultSpec().fields[0].field_id, 1000);
  EXPECT_EQ(result.metadata.last_partition_id, 1000);
  EXPECT_EQ(result.metadata.DefaultSortOrder().order_id, 1);
  EXPECT_EQ(result.metadata.last_column_id, 1);
  EXPECT_THAT(ApplyUpdates(nullptr, {AssignUuid{"x"}}, kNow), Fails(ErrorCode::kInvalidArgument));
}

TEST(MetadataBuilderTest, EqualSchemasSpecsAndOrdersAreReused) {
  const TableMetadata base = Base();
  ASSERT_OK_AND_ASSIGN(const UpdateResult same,
                       ApplyUpdates(&base,
                                    {AddSchema{OneColumn(), 1}, SetCurrentSchema{}, AddSpec{},
                                     SetDefaultSpec{}, AddSortOrder{}, SetDefaultSortOrder{},
                                     AssignUuid{base.table_uuid}, UpgradeFormatVersion{2},
                                     SetProperties{{{"k", "v"}}}, RemoveProperties{{"absent"}},
                                     RemoveSnapshotRef{"absent"}, RemoveSnapshots{{42}}},
                                    kNow + 9));
  EXPECT_FALSE(same.changed);
  EXPECT_EQ(same.metadata, base);
}

TEST(MetadataBuilderTest, SchemaIdsGrowAndColumnIdsNeverFall) {
  Schema wider = OneColumn();
  wider.fields.push_back({.id = 5, .name = "b", .type = Type::Int()});
  const TableMetadata next = Apply(Base(), {AddSchema{wider, std::nullopt}, SetCurrentSchema{}});
  EXPECT_EQ(next.current_schema_id, 1);
  EXPECT_EQ(next.last_column_id, 5);
  const TableMetadata back = Apply(next, {SetCurrentSchema{0}});
  EXPECT_EQ(back.current_schema_id, 0);
  EXPECT_EQ(back.last_column_id, 5);
  EXPECT_THAT(ApplyUpdates(&next, {SetCurrentSchema{9}}, kNow), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(ApplyUpdates(&next, {SetCurrentSchema{}}, kNow),
              FailsWith(ErrorCode::kInvalidArgument, "no schema has been added"));
  EXPECT_THAT(ApplyUpdates(&next, {RemoveSchemas{{1}}}, kNow), Fails(ErrorCode::kInvalidArgument));
  EXPECT_EQ(Apply(next, {RemoveSchemas{{0}}}).schemas.size(), 1U);
}

TEST(MetadataBuilderTest, PartitionFieldIdsFollowTheirSourceAndTransform) {
  PartitionSpec first{.fields = {{.source_id = 1, .name = "a"}}};
  PartitionSpec second{.fields = {{.source_id = 1, .name = "a8", .transform = Transform::Bucket(8)},
                                  {.source_id = 1, .name = "a"}}};
  const TableMetadata next =
      Apply(Base(), {AddSpec{first}, SetDefaultSpec{}, AddSpec{second}, SetDefaultSpec{}});
  EXPECT_EQ(next.DefaultSpec().spec_id, 2);
  EXPECT_EQ(next.DefaultSpec().fields[0].field_id, 1001);
  EXPECT_EQ(next.DefaultSpec().fields[1].field_id, 1000);
  EXPECT_EQ(next.last_partition_id, 1001);
  PartitionSpec unknown{.fields = {{.source_id = 9, .name = "x"}}};
  EXPECT_THAT(ApplyUpdates(&next, {AddSpec{unknown}}, kNow),
              FailsWith(ErrorCode::kInvalidArgument, "Cannot find source column"));
}

TEST(MetadataBuilderTest, SnapshotsMoveMainAndTheLog) {
  const TableMetadata base = Base();
  const TableMetadata one = Apply(base, Append(11, 1));
  EXPECT_EQ(one.current_snapshot_id, 11);
  EXPECT_EQ(one.last_sequence_number, 1);
  EXPECT_EQ(one.last_updated_ms, kNow + 1000);
  EXPECT_EQ(one.snapshot_log.size(), 1U);
  EXPECT_THAT(ApplyUpdates(&one, Append(11, 2, 11), kNow), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(ApplyUpdates(&one, Append(12, 1, 11), kNow), Fails(ErrorCode::kConflict));
  // Two snapshots in one list: only the last one was ever visible.
  std::vector<TableUpdate> two = Append(12, 2, 11);
  for (TableUpdate& update : Append(13, 3, 12)) {
    two.push_back(std::move(update));
  }
  const TableMetadata three = Apply(one, two);
  ASSERT_EQ(three.snapshot_log.size(), 2U);
  EXPECT_EQ(three.snapshot_log[1].snapshot_id, 13);
  EXPECT_THAT(AncestorsOf(three, 13), ::testing::ElementsAre(13, 12, 11));
  EXPECT_THAT(SnapshotIdAsOf(three, kNow + 2500), IsOkAndHolds(11));
  EXPECT_THAT(SnapshotIdAsOf(three, kNow), Fails(ErrorCode::kNotFound));
  // Rolling back logs the time of the change, not of the snapshot.
  const TableMetadata back = Apply(three, {SetSnapshotRef{"main", {.snapshot_id = 12}}});
  EXPECT_EQ(back.snapshot_log.back().snapshot_id, 12);
  EXPECT_EQ(back.snapshot_log.back().timestamp_ms, three.last_updated_ms);
}

TEST(MetadataBuilderTest, RemovingSnapshotsTakesRefsStatisticsAndLogAlong) {
  TableMetadata table = Apply(Base(), Append(11, 1));
  table = Apply(table, Append(12, 2, 11));
  table = Apply(table, {SetSnapshotRef{"old", {.snapshot_id = 11, .type = SnapshotRefType::kTag}},
                        SetStatistics{{.snapshot_id = 11, .statistics_path = "s"}},
                        SetPartitionStatistics{{.snapshot_id = 11, .statistics_path = "p"}}});
  const TableMetadata next = Apply(table, {RemoveSnapshots{{11}}});
  EXPECT_EQ(next.snapshots.size(), 1U);
  EXPECT_EQ(next.refs.size(), 1U);
  EXPECT_TRUE(next.statistics.empty());
  EXPECT_TRUE(next.partition_statistics.empty());
  ASSERT_EQ(next.snapshot_log.size(), 1U);
  EXPECT_EQ(next.snapshot_log[0].snapshot_id, 12);
  const TableMetadata headless = Apply(table, {RemoveSnapshotRef{"main"}});
  EXPECT_EQ(headless.current_snapshot_id, std::nullopt);
}

TEST(MetadataBuilderTest, AReplacedTableMayLoseItsPartitionColumnAndKeepsItsLog) {
  PartitionSpec spec{
      .fields = {{.source_id = 1, .name = "a_bucket", .transform = Transform::Bucket(4)}}};
  TableMetadata table = Apply(Base(), {AddSpec{spec}, SetDefaultSpec{}});
  table = Apply(table, Append(11, 1));
  Schema other;
  other.fields = {{.id = 2, .name = "b", .type = Type::String()}};
  std::vector<TableUpdate> replace = {RemoveSnapshotRef{"main"}, AddSchema{other, std::nullopt},
                                      SetCurrentSchema{}};
  EXPECT_THAT(ApplyUpdates(&table, replace, kNow), Fails(ErrorCode::kInvalidArgument))
      << "the default spec needs the column";
  replace.insert(replace.end(), {AddSpec{}, SetDefaultSpec{}});
  for (const TableUpdate& update : Append(12, 2)) {
    replace.push_back(update);
  }
  const TableMetadata replaced = Apply(table, replace);
  EXPECT_EQ(replaced.current_snapshot_id, 12);
  ASSERT_EQ(replaced.snapshot_log.size(), 2U);
  EXPECT_EQ(replaced.snapshot_log[0].snapshot_id, 11);
}

TEST(MetadataBuilderTest, ReservedPropertiesAreNotStored) {
  const TableMetadata table =
      Apply(Base(), {SetProperties{{{"format-version", "3"}, {"uuid", "x"}, {"mine", "1"}}}});
  EXPECT_EQ(table.format_version, 3);
  EXPECT_EQ(table.properties, (std::map<std::string, std::string>{{"k", "v"}, {"mine", "1"}}));
  const TableMetadata base = Base();
  EXPECT_THAT(ApplyUpdates(&base, {SetProperties{{{"format-version", "two"}}}}, kNow),
              Fails(ErrorCode::kInvalidArgument));
}

TEST(MetadataBuilderTest, RefsMustPointToSnapshots) {
  const TableMetadata table = Apply(Base(), Append(11, 1));
  EXPECT_THAT(ApplyUpdates(&table, {SetSnapshotRef{"b", {.snapshot_id = 99}}}, kNow),
              Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(
      ApplyUpdates(&table,
                   {SetSnapshotRef{"main", {.snapshot_id = 11, .type = SnapshotRefType::kTag}}},
                   kNow),
      FailsWith(ErrorCode::kInvalidArgument, "branch"));
  EXPECT_THAT(ApplyUpdates(&table, {AssignUuid{"00000000-0000-0000-0000-000000000000"}}, kNow),
              FailsWith(ErrorCode::kInvalidArgument, "uuid"));
  EXPECT_THAT(ApplyUpdates(&table, {UpgradeFormatVersion{1}}, kNow),
              FailsWith(ErrorCode::kInvalidArgument, "downgrade"));
  EXPECT_THAT(ApplyUpdates(&table, {UpgradeFormatVersion{4}}, kNow),
              Fails(ErrorCode::kInvalidArgument));
  EXPECT_EQ(Apply(table, {UpgradeFormatVersion{3}}).format_version, 3);
}

TEST(MetadataBuilderTest, RowIdsOfVersionThreeNeverOverlap) {
  const TableMetadata base = Base("3");
  Snapshot first = MakeSnapshot(11, 1);
  EXPECT_THAT(ApplyUpdates(&base, {AddSnapshot{first}}, kNow), Fails(ErrorCode::kInvalidArgument));
  first.first_row_id = 0;
  first.added_rows = 11;
  const TableMetadata one = Apply(base, {AddSnapshot{first}});
  EXPECT_EQ(one.next_row_id, 11);
  Snapshot behind = MakeSnapshot(12, 2, 11);
  behind.first_row_id = 5;
  EXPECT_THAT(ApplyUpdates(&one, {AddSnapshot{behind}}, kNow), Fails(ErrorCode::kConflict));
  behind.first_row_id = 12;  // A gap is accepted: some writers leave one.
  behind.added_rows = 17;
  EXPECT_EQ(Apply(one, {AddSnapshot{behind}}).next_row_id, 29);
}

TEST(MetadataBuilderTest, MetadataLogIsCut) {
  TableMetadata base = Base();
  base.properties["write.metadata.previous-versions-max"] = "2";
  base.metadata_log = {{"m0", 1}, {"m1", 2}};
  TableMetadata next = base;
  EXPECT_THAT(LogPreviousMetadata(base, "m2", next), ::testing::ElementsAre("m0"));
  ASSERT_EQ(next.metadata_log.size(), 2U);
  EXPECT_EQ(next.metadata_log[1], (MetadataLogEntry{"m2", kNow}));
}

TEST(TableRequirementTest, FailuresSayWhatWasExpected) {
  using namespace table_requirement;  // NOLINT(google-build-using-namespace)
  const TableMetadata table = Apply(Base(), Append(11, 1));
  EXPECT_OK(CheckRequirements(&table, RequirementsFor(&table, Append(12, 2, 11))));
  EXPECT_OK(CheckRequirements(nullptr, {AssertCreate{}}));
  const std::vector<std::pair<TableRequirement, std::string>> cases{
      {AssertCreate{}, "Requirement failed: table already exists"},
      {AssertTableUuid{"x"}, "Requirement failed: UUID does not match: expected 9c12d441"},
      {AssertRefSnapshotId{"main", std::nullopt},
       "Requirement failed: branch main was created concurrently"},
      {AssertRefSnapshotId{"main", 5},
       "Requirement failed: branch main has changed: expected id 5 != 11"},
      {AssertRefSnapshotId{"dev", 5},
       "Requirement failed: branch or tag dev is missing, expected 5"},
      {AssertLastAssignedFieldId{7},
       "Requirement failed: last assigned field id changed: expected id 7 != 1"},
      {AssertCurrentSchemaId{3}, "Requirement failed: current schema changed: expected id 3 != 0"},
      {AssertLastAssignedPartitionId{3},
       "Requirement failed: last assigned partition id changed: expected id 3 != 999"},
      {AssertDefaultSpecId{3},
       "Requirement failed: default partition spec changed: expected id 3 != 0"},
      {AssertDefaultSortOrderId{3},
       "Requirement failed: default sort order changed: expected id 3 != 0"}};
  for (const auto& [requirement, text] : cases) {
    const Status status = CheckRequirements(&table, {requirement});
    EXPECT_EQ(status.code(), ErrorCode::kConflict);
    EXPECT_TRUE(status.message().starts_with(text)) << status.message();
    EXPECT_THAT(TableRequirementFromJson(TableRequirementToJson(requirement)),
                IsOkAndHolds(requirement));
  }
  EXPECT_OK(CheckRequirements(&table, {AssertTableUuid{"9C12D441-03FE-4693-9A96-A0705DDF69C1"},
                                       AssertRefSnapshotId{"dev", std::nullopt}}));
  EXPECT_THAT(CheckRequirements(nullptr, {AssertTableUuid{"x"}}), Fails(ErrorCode::kConflict));
  ASSERT_OK_AND_ASSIGN(const Json unknown, ParseJson(R"({"type":"assert-x"})", "test"));
  EXPECT_THAT(TableRequirementFromJson(unknown), Fails(ErrorCode::kInvalidArgument));
}

TEST(TableUpdateTest, EveryUpdateRoundTripsAsJson) {
  SnapshotRef ref{
      .snapshot_id = 5, .min_snapshots_to_keep = 2, .max_snapshot_age_ms = 3, .max_ref_age_ms = 4};
  const std::vector<TableUpdate> updates{
      AssignUuid{"u"},
      UpgradeFormatVersion{3},
      AddSchema{OneColumn(), 4},
      SetCurrentSchema{-1},
      AddSpec{{.spec_id = 1, .fields = {{.source_id = 1, .field_id = 1000, .name = "a"}}}},
      SetDefaultSpec{1},
      AddSortOrder{{.order_id = 1, .fields = {{.source_id = 1}}}},
      SetDefaultSortOrder{1},
      AddSnapshot{MakeSnapshot(3055729675574597004, 2, 1)},
      SetSnapshotRef{"b", ref},
      RemoveSnapshots{{1, 2}},
      RemoveSnapshotRef{"b"},
      SetLocation{"l"},
      SetProperties{{{"a", "b"}}},
      RemoveProperties{{"a"}},
      SetStatistics{{.snapshot_id = 1, .statistics_path = "s", .blob_metadata = {{.type = "t"}}}},
      RemoveStatistics{1},
      SetPartitionStatistics{{.snapshot_id = 1, .statistics_path = "s"}},
      RemovePartitionStatistics{1},
      RemovePartitionSpecs{{1}},
      RemoveSchemas{{1}},
      AddEncryptionKey{"k", R"({"key-id":"k","encrypted-key-metadata":"AA"})"},
      RemoveEncryptionKey{"k"}};
  EXPECT_EQ(updates.size(), std::variant_size_v<TableUpdate>);
  for (const TableUpdate& update : updates) {
    const std::string text = DumpJson(TableUpdateToJson(update));
    ASSERT_OK_AND_ASSIGN(const Json json, ParseJson(text, "test"));
    EXPECT_THAT(TableUpdateFromJson(json), IsOkAndHolds(update)) << text;
  }
}

TEST(TableUpdateTest, OldNamesAreAcceptedAndUnknownOnesRefused) {
  const auto parse = [](const char* text) {
    return TableUpdateFromJson(ParseJson(text, "test").value());
  };
  EXPECT_THAT(parse(R"({"action":"set-properties","updated":{}})"),
              IsOkAndHolds(TableUpdate(SetProperties{})));
  EXPECT_THAT(parse(R"({"action":"remove-properties","removed":["x"]})"),
              IsOkAndHolds(TableUpdate(RemoveProperties{{"x"}})));
  EXPECT_THAT(parse(R"({"action":"set-properties"})"),
              FailsWith(ErrorCode::kInvalidArgument, "updates"));
  EXPECT_THAT(parse(R"({"action":"drop-everything"})"),
              FailsWith(ErrorCode::kInvalidArgument, "drop-everything"));
  EXPECT_THAT(parse(R"({"action":"add-snapshot"})"),
              FailsWith(ErrorCode::kInvalidArgument, "snapshot"));
  EXPECT_THAT(parse(R"([1])"), Fails(ErrorCode::kInvalidArgument));
}

}  // namespace
}  // namespace tarn::iceberg
