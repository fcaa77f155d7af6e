#include "tarn/iceberg/wire/content_file_json.h"

#include <nlohmann/json.hpp>

#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

class ContentFileJsonTest : public ::testing::Test {
 protected:
  ContentFileJsonTest() {
    SchemaField day;
    day.id = 1;
    day.name = "day";
    day.type = Type::Date();
    schema_.fields = {day};
    spec_.spec_id = 3;
    spec_.fields = {{.source_id = 1,
                     .field_id = 1000,
                     .name = "day",
                     .transform = ParseTransform("identity").value()},
                    {.source_id = 1,
                     .field_id = 1001,
                     .name = "bucket",
                     .transform = ParseTransform("bucket[4]").value()}};
    file_.file_path = "s3://b/f";
    file_.spec_id = 3;
    file_.partition = {Literal::Long(2), Literal::Null()};
    file_.record_count = 5;
    file_.file_size_bytes = 70;
  }

  Json Write(const std::set<int32_t>& counted = {}) {
    return ContentFileToJson(file_, {.spec = spec_, .schema = schema_, .counted = counted}).value();
  }

  Schema schema_;
  PartitionSpec spec_;
  DataFile file_;
};

TEST_F(ContentFileJsonTest, DataFilesHaveTheirPartitionAndTheCountsAskedFor) {
  file_.split_offsets = {4, 40};
  file_.sort_order_id = 2;
  file_.first_row_id = 1000;
  file_.value_counts = {{1, 5}, {2, 5}};
  file_.null_value_counts = {{1, 0}};
  file_.lower_bounds = {{1, "xxxx"}};
  const Json expected = Json::parse(R"({
    "spec-id": 3, "content": "data", "file-path": "s3://b/f", "file-format": "parquet",
    "partition": ["1970-01-03", null], "file-size-in-bytes": 70, "record-count": 5,
    "split-offsets": [4, 40], "sort-order-id": 2, "first-row-id": 1000})");
  EXPECT_EQ(Write(), expected);
  const Json counted = Write({1});
  EXPECT_EQ(counted["value-counts"], Json::parse(R"({"keys":[1],"values":[5]})"));
  EXPECT_EQ(counted["null-value-counts"], Json::parse(R"({"keys":[1],"values":[0]})"));
  EXPECT_FALSE(counted.contains("column-sizes"));
  EXPECT_FALSE(counted.contains("lower-bounds"));
}

TEST_F(ContentFileJsonTest, DeletesSayWhatTheyAreAbout) {
  file_.content = DataFileContent::kPositionDeletes;
  file_.file_format = "PUFFIN";
  file_.referenced_data_file = "s3://b/d";
  file_.content_offset = 4;
  file_.content_size_bytes = 40;
  const Json vector = Write({1});
  EXPECT_EQ(vector["content"], "position-deletes");
  EXPECT_EQ(vector["file-format"], "puffin");
  EXPECT_EQ(vector["referenced-data-file"], "s3://b/d");
  EXPECT_EQ(vector["content-offset"], 4);
  EXPECT_EQ(vector["content-size-in-bytes"], 40);
  file_ = {.content = DataFileContent::kEqualityDeletes, .spec_id = 3, .equality_ids = {1}};
  file_.partition = {Literal::Null(), Literal::Null()};
  const Json equality = Write();
  EXPECT_EQ(equality["content"], "equality-deletes");
  EXPECT_EQ(equality["equality-ids"], Json({1}));
}

}  // namespace
}  // namespace tarn::iceberg
