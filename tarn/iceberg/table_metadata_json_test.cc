#include "tarn/iceberg/table_metadata_json.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

// The compiler may have been given a relative path of this file, so folders above the current one
// and above the program are searched as well.
std::string GoldenPath(const std::string& name) {
  const std::string here = __FILE__;
  const std::filesystem::path beside = here.substr(0, here.rfind("tarn/iceberg/"));
  for (const std::filesystem::path& start :
       {beside, std::filesystem::current_path(), std::filesystem::read_symlink("/proc/self/exe")}) {
    for (std::filesystem::path folder = std::filesystem::absolute(start);
         folder != folder.parent_path(); folder = folder.parent_path()) {
      if (std::filesystem::exists(folder / "test/data/iceberg" / name)) {
        return folder / "test/data/iceberg" / name;
      }
    }
  }
  return name;
}

std::string ReadGolden(const std::string& name) {
  std::ifstream file(GoldenPath(name));
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << GoldenPath(name);
  return text.str();
}

std::string Pretty(const TableMetadata& metadata) {
  return TableMetadataToJson(metadata).dump(2) + "\n";
}

// Reading and writing gives the file back, byte by byte.
class GoldenMetadataTest : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenMetadataTest, ReadsAndWritesTheSame) {
  const std::string text = ReadGolden(GetParam());
  ASSERT_OK_AND_ASSIGN(const TableMetadata metadata, ParseTableMetadata(text));
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(GoldenPath(GetParam())) << Pretty(metadata);
  }
  EXPECT_EQ(Pretty(metadata), text);
  EXPECT_THAT(ParseTableMetadata(FormatTableMetadata(metadata)), IsOkAndHolds(metadata));
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenMetadataTest,
                         ::testing::Values("v1.metadata.json", "v2.metadata.json",
                                           "v3.metadata.json"));

TEST(TableMetadataJsonTest, OldVersionOneFilesAreUnderstood) {
  ASSERT_OK_AND_ASSIGN(const TableMetadata metadata, ParseTableMetadata(R"({
    "format-version":1,"location":"s3://b/t/","last-updated-ms":1,"last-column-id":1,
    "schema":{"type":"struct","fields":[{"id":1,"name":"x","required":true,"type":"long"}]},
    "partition-spec":[{"name":"x","transform":"identity","source-id":1}],
    "properties":{},"current-snapshot-id":-1,"snapshots":[]})"));
  EXPECT_EQ(metadata.location, "s3://b/t");
  EXPECT_EQ(metadata.DefaultSpec().fields[0].field_id, 1000);
  EXPECT_EQ(metadata.last_partition_id, 1000);
  EXPECT_EQ(metadata.current_snapshot_id, std::nullopt);
  EXPECT_EQ(metadata.sort_orders.size(), 1U);
}

// Takes a member away or spoils it: the error must name it.
TEST(TableMetadataJsonTest, EveryMissingOrWrongMemberIsNamed) {
  const Json good = ParseJson(ReadGolden("v2.metadata.json"), "golden").value();
  for (const char* member :
       {"format-version", "location", "last-sequence-number", "last-updated-ms", "last-column-id",
        "schemas", "current-schema-id", "partition-specs", "default-spec-id", "last-partition-id",
        "sort-orders", "default-sort-order-id"}) {
    Json bad = good;
    bad.erase(member);
    EXPECT_THAT(TableMetadataFromJson(bad), FailsWith(ErrorCode::kInvalidArgument, member))
        << member;
    bad = good;
    bad[member] = Json::object({{"x", 1}});
    EXPECT_THAT(TableMetadataFromJson(bad), FailsWith(ErrorCode::kInvalidArgument, member))
        << member;
  }
  for (const char* member :
       {"properties", "refs", "snapshots", "snapshot-log", "metadata-log", "statistics",
        "partition-statistics", "current-snapshot-id", "table-uuid"}) {
    Json bad = good;
    bad[member] = 1.5;
    EXPECT_THAT(TableMetadataFromJson(bad), FailsWith(ErrorCode::kInvalidArgument, member))
        << member;
  }
}

TEST(TableMetadataJsonTest, ContradictionsAreRefused) {
  const Json good = ParseJson(ReadGolden("v2.metadata.json"), "golden").value();
  Json bad = good;
  bad["current-schema-id"] = 99;
  EXPECT_THAT(TableMetadataFromJson(bad), FailsWith(ErrorCode::kInvalidArgument, "99"));
  bad = good;
  bad["current-snapshot-id"] = 12;
  EXPECT_THAT(TableMetadataFromJson(bad), Fails(ErrorCode::kInvalidArgument));
  bad = good;
  bad["refs"]["main"]["type"] = "tag";
  EXPECT_THAT(TableMetadataFromJson(bad), Fails(ErrorCode::kInvalidArgument));
  bad = good;
  bad["last-sequence-number"] = 0;
  EXPECT_THAT(TableMetadataFromJson(bad), FailsWith(ErrorCode::kInvalidArgument, "sequence"));
  bad = good;
  bad["format-version"] = 4;
  EXPECT_THAT(TableMetadataFromJson(bad), Fails(ErrorCode::kUnimplemented));
  bad = good;
  bad["table-uuid"] = Json();
  EXPECT_THAT(TableMetadataFromJson(bad), FailsWith(ErrorCode::kInvalidArgument, "UUID"));
  EXPECT_THAT(ParseTableMetadata(std::string(300, '[')), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(ParseTableMetadata("\x1f\x8b broken"), Fails(ErrorCode::kInvalidArgument));
}

TEST(TableMetadataJsonTest, RefsOnlyKeepsTheHeads) {
  ASSERT_OK_AND_ASSIGN(const TableMetadata metadata,
                       ParseTableMetadata(ReadGolden("v2.metadata.json")));
  ASSERT_OK_AND_ASSIGN(const Json refs, ParseJson(FormatTableMetadataRefsOnly(metadata), "refs"));
  EXPECT_EQ(metadata.snapshots.size(), 2U);
  EXPECT_EQ(refs["snapshots"].size(), 1U);
  EXPECT_EQ(refs["snapshot-log"].size(), 2U);
}

}  // namespace
}  // namespace tarn::iceberg
