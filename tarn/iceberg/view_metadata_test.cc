#include "tarn/iceberg/view_metadata.h"

#include <nlohmann/json.hpp>

#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

using view_update::AddViewVersion;
using view_update::SetCurrentViewVersion;

Schema OneColumn() {
  Schema schema;
  schema.fields = {{.id = 0, .name = "a", .type = Type::Long()}};
  return schema;
}

ViewVersion Version(const std::string& sql, std::vector<std::string> dialects) {
  ViewVersion version{.schema_id = kLastAdded, .timestamp_ms = 5, .summary = {{"engine", "tarn"}}};
  for (std::string& dialect : dialects) {
    version.representations.push_back({.sql = sql, .dialect = std::move(dialect)});
  }
  version.default_namespace = {"orders"};
  return version;
}

std::vector<ViewUpdate> Replace(const ViewVersion& version) {
  return {table_update::AddSchema{OneColumn(), std::nullopt}, AddViewVersion{version},
          SetCurrentViewVersion{}};
}

ViewMetadata Created() {
  std::vector<ViewUpdate> updates{table_update::AssignUuid{"FA6506C3-7681-40C8-86DC-E36561F83385"},
                                  table_update::SetLocation{"file:///w/v"},
                                  table_update::SetProperties{{{"comment", "c"}}}};
  for (ViewUpdate& update : Replace(Version("select 1", {"spark", "trino", "duckdb"}))) {
    updates.push_back(std::move(update));
  }
  Result<ViewUpdateResult> result = ApplyViewUpdates(nullptr, updates, 10);
  EXPECT_OK(result);
  return std::move(result).value().metadata;
}

TEST(ViewMetadataTest, CreateAndJsonRoundTrip) {
  const ViewMetadata view = Created();
  EXPECT_EQ(view.view_uuid, "fa6506c3-7681-40c8-86dc-e36561f83385");
  EXPECT_EQ(view.CurrentVersion().version_id, 1);
  EXPECT_EQ(view.CurrentVersion().FindDialect("TRINO")->sql, "select 1");
  EXPECT_EQ(view.version_log, (std::vector<ViewLogEntry>{{5, 1}}));
  EXPECT_THAT(ParseViewMetadata(FormatViewMetadata(view)), IsOkAndHolds(view));
  ASSERT_OK_AND_ASSIGN(const Json good, ParseJson(FormatViewMetadata(view), "view"));
  for (const char* member : {"view-uuid", "format-version", "location", "current-version-id"}) {
    Json bad = good;
    bad.erase(member);
    EXPECT_THAT(ViewMetadataFromJson(bad), FailsWith(ErrorCode::kInvalidArgument, member));
  }
  Json bad = good;
  bad["current-version-id"] = 9;
  EXPECT_THAT(ViewMetadataFromJson(bad), Fails(ErrorCode::kInvalidArgument));
}

TEST(ViewMetadataTest, EqualVersionsAreReusedAndIdsGrow) {
  const ViewMetadata view = Created();
  ASSERT_OK_AND_ASSIGN(
      const ViewUpdateResult same,
      ApplyViewUpdates(&view, Replace(Version("select 1", {"spark", "trino", "duckdb"})), 20));
  EXPECT_FALSE(same.changed);
  ASSERT_OK_AND_ASSIGN(
      const ViewUpdateResult next,
      ApplyViewUpdates(&view, Replace(Version("select 2", {"spark", "trino", "duckdb"})), 20));
  EXPECT_EQ(next.metadata.current_version_id, 2);
  EXPECT_EQ(next.metadata.versions.size(), 2U);
  ASSERT_OK_AND_ASSIGN(const ViewUpdateResult back,
                       ApplyViewUpdates(&next.metadata, {SetCurrentViewVersion{1}}, 30));
  EXPECT_EQ(back.metadata.version_log.back(), (ViewLogEntry{30, 1}));
}

TEST(ViewMetadataTest, DialectsAreNotLostByAccident) {
  const ViewMetadata view = Created();
  EXPECT_THAT(ApplyViewUpdates(&view, Replace(Version("select 2", {"spark"})), 20),
              FailsWith(ErrorCode::kInvalidArgument, "dialect"));
  std::vector<ViewUpdate> updates = Replace(Version("select 2", {"spark"}));
  updates.insert(updates.begin(),
                 table_update::SetProperties{{{"replace.drop-dialect.allowed", "true"}}});
  EXPECT_OK(ApplyViewUpdates(&view, updates, 20));
  EXPECT_THAT(ApplyViewUpdates(&view, Replace(Version("select 2", {"trino", "Trino"})), 20),
              FailsWith(ErrorCode::kInvalidArgument,
                        "Invalid view version: Cannot add multiple queries for dialect trino"));
}

TEST(ViewMetadataTest, HistoryIsCut) {
  ViewMetadata view = Created();
  view.properties["version.history.num-entries"] = "3";
  for (int i = 2; i < 8; ++i) {
    ASSERT_OK_AND_ASSIGN(
        ViewUpdateResult next,
        ApplyViewUpdates(
            &view, Replace(Version("select " + std::to_string(i), {"spark", "trino", "duckdb"})),
            20));
    view = std::move(next.metadata);
  }
  EXPECT_EQ(view.versions.size(), 3U);
  EXPECT_EQ(view.current_version_id, 7);
  EXPECT_EQ(view.version_log.size(), 3U);
}

TEST(ViewMetadataTest, UpdatesAndRequirementsAsJson) {
  const ViewMetadata view = Created();
  for (const ViewUpdate& update :
       {ViewUpdate(AddViewVersion{view.versions[0]}), ViewUpdate(SetCurrentViewVersion{-1}),
        ViewUpdate(table_update::SetLocation{"l"})}) {
    EXPECT_THAT(ViewUpdateFromJson(ViewUpdateToJson(update)), IsOkAndHolds(update));
  }
  const auto parse = [](const char* text) { return ParseJson(text, "test").value(); };
  EXPECT_THAT(ViewUpdateFromJson(parse(R"({"action":"remove-snapshots","snapshot-ids":[1]})")),
              FailsWith(ErrorCode::kInvalidArgument, "does not apply to views"));
  ASSERT_OK_AND_ASSIGN(const AssertViewUuid requirement,
                       ViewRequirementFromJson(parse(R"({"type":"assert-view-uuid","uuid":"x"})")));
  EXPECT_THAT(CheckViewRequirements(view, {requirement}),
              FailsWith(ErrorCode::kConflict, "Requirement failed: view UUID does not match"));
  EXPECT_OK(CheckViewRequirements(view, {{"FA6506C3-7681-40C8-86DC-E36561F83385"}}));
}

}  // namespace
}  // namespace tarn::iceberg
