#include "tarn/query/dataset_relation.h"

#include "tarn/dataset/branching/tag.h"
#include "tarn/query/query_fixture.h"

namespace tarn::query {

namespace {

using nlohmann::json;

class DatasetRelationTest : public QueryFixture {
 protected:
  void SetUp() override {
    QueryFixture::SetUp();
    ASSERT_OK_AND_ASSIGN(dataset_, MakeDataset("landing", "orders"));
  }

  template <typename Builder, typename Value>
  static std::shared_ptr<arrow::RecordBatch> Batch(const std::string& column,
                                                   std::shared_ptr<arrow::DataType> type,
                                                   const std::vector<Value>& values) {
    Builder builder(type, arrow::default_memory_pool());
    for (const Value& value : values) {
      EXPECT_TRUE(builder.Append(value).ok());
    }
    std::shared_ptr<arrow::Array> array = builder.Finish().ValueOrDie();
    return arrow::RecordBatch::Make(arrow::schema({arrow::field(column, type)}), array->length(),
                                    {array});
  }
  static std::shared_ptr<arrow::RecordBatch> Longs(const std::string& column,
                                                   const std::vector<int64_t>& values) {
    return Batch<arrow::Int64Builder>(column, arrow::int64(), values);
  }
  static std::shared_ptr<arrow::RecordBatch> Texts(const std::string& column,
                                                   const std::vector<std::string>& values) {
    return Batch<arrow::StringBuilder>(column, arrow::utf8(), values);
  }

  Result<dataset::TransactionRid> Land(const std::string& path,
                                       const std::shared_ptr<arrow::RecordBatch>& rows,
                                       const std::string& branch = "master") {
    TARN_ASSIGN_OR_RETURN(const dataset::StoredFile file, WriteParquet(path, rows));
    return CommitFiles(dataset_, {file}, branch);
  }

  dataset::DatasetRid dataset_;
};

TEST_F(DatasetRelationTest, FilesOfOneTypeAreRead) {
  ASSERT_OK(Land("a.parquet", Longs("id", {1, 2})));
  ASSERT_OK(Land("b.parquet", Longs("id", {3})));
  const std::vector<json> rows = {{{"id", 1}}, {{"id", 2}}, {{"id", 3}}};
  EXPECT_THAT(Rows("SELECT * FROM landing.orders"), IsOkAndHolds(rows));
  EXPECT_THAT(Rows("SELECT * FROM \"" + dataset_.ToString() + "\""), IsOkAndHolds(rows));
}

TEST_F(DatasetRelationTest, FilesThatDifferAreCastToTheWidestType) {
  ASSERT_OK(Land("a.parquet", Longs("ID", {1})));
  ASSERT_OK(Land("b.parquet", Texts("id", {"x"})));
  ASSERT_OK(Land("c.parquet", Texts("note", {"n"})));
  const std::vector<json> rows = {{{"ID", "1"}, {"note", nullptr}},
                                  {{"ID", "x"}, {"note", nullptr}},
                                  {{"ID", nullptr}, {"note", "n"}}};
  EXPECT_THAT(Rows("SELECT * FROM landing.orders"), IsOkAndHolds(rows));
}

TEST_F(DatasetRelationTest, StoredSchemaGivesTheColumns) {
  ASSERT_OK(Land("a.parquet", Longs("id", {1})));
  ASSERT_OK(datasets_->PutSchema(dataset_,
                                 R"({"fieldSchemaList": [{"type": "STRING", "name": "id"},
                                     {"type": "DECIMAL", "name": "price", "precision": 10,
                                      "scale": 2},
                                     {"type": "ARRAY", "name": "tags",
                                      "arraySubtype": {"type": "STRING"}}]})",
                                 {.by = "me"}));
  const std::vector<json> rows = {{{"id", "1"}, {"price", nullptr}, {"tags", nullptr}}};
  EXPECT_THAT(Rows("SELECT * FROM landing.orders"), IsOkAndHolds(rows));
}

TEST_F(DatasetRelationTest, BranchTransactionAndTimePickTheView) {
  ASSERT_OK_AND_ASSIGN(const dataset::TransactionRid first, Land("a.parquet", Longs("id", {1})));
  const std::string then = FormatTimestamp(clock_.Now());
  ASSERT_OK(datasets_->CreateBranch(dataset_, "try", {.from_branch = "master", .by = "me"}));
  ASSERT_OK(Land("b.parquet", Longs("id", {2}), "try"));
  ASSERT_OK(Land("c.parquet", Longs("id", {3})));
  const std::string sql = "SELECT id FROM landing.orders";
  const auto ids = [](const std::vector<int64_t>& values) {
    std::vector<json> rows;
    for (const int64_t value : values) {
      rows.push_back({{"id", value}});
    }
    return rows;
  };
  EXPECT_THAT(Rows(sql), IsOkAndHolds(ids({1, 3})));
  EXPECT_THAT(Rows({.sql = sql, .branch = "try"}, admin_), IsOkAndHolds(ids({1, 2})));
  EXPECT_THAT(Rows(sql, first.ToString()), IsOkAndHolds(ids({1})));
  EXPECT_THAT(Rows(sql, then), IsOkAndHolds(ids({1})));
  EXPECT_THAT(Rows(sql, "42"), FailsWith(ErrorCode::kInvalidArgument, "snapshot 42"));
  EXPECT_THAT(Rows({.sql = sql, .branch = "none"}, admin_),
              FailsWith(ErrorCode::kNotFound, "landing.orders"));
}

TEST_F(DatasetRelationTest, FilesThatAreNotParquetAreNamed) {
  ASSERT_OK(
      storage::WriteObject(*warehouse_, "datasets/x", "id\n1\n", storage::WriteMode::kOverwrite));
  dataset::StoredFile csv;
  csv.path = "part.csv";
  csv.location = "datasets/x";
  dataset::StoredFile marker = csv;
  marker.path = "out/_SUCCESS";
  ASSERT_OK_AND_ASSIGN(const dataset::StoredFile good, WriteParquet("a.parquet", Longs("id", {1})));
  ASSERT_OK(CommitFiles(dataset_, {good, marker}));
  const std::vector<json> rows = {{{"id", 1}}};
  EXPECT_THAT(Rows("SELECT * FROM landing.orders"), IsOkAndHolds(rows));
  ASSERT_OK(CommitFiles(dataset_, {csv}));
  EXPECT_THAT(Rows("SELECT * FROM landing.orders"),
              FailsWith(ErrorCode::kInvalidArgument, "part.csv is not Parquet"));
}

TEST_F(DatasetRelationTest, BrokenAndForeignFilesAreNamed) {
  ASSERT_OK(storage::WriteObject(*warehouse_, "datasets/x", "PAR1 and nothing of it PAR1",
                                 storage::WriteMode::kOverwrite));
  dataset::StoredFile broken;
  broken.path = "broken.parquet";
  broken.location = "datasets/x";
  ASSERT_OK(CommitFiles(dataset_, {broken}));
  EXPECT_THAT(Rows("SELECT * FROM landing.orders"), Fails(ErrorCode::kCorruption));
  ASSERT_OK_AND_ASSIGN(dataset_, MakeDataset("landing", "imported"));
  dataset::StoredFile foreign;
  foreign.path = "foreign.parquet";
  foreign.location = "file:///etc/passwd";
  foreign.managed = false;
  ASSERT_OK(CommitFiles(dataset_, {foreign}));
  EXPECT_THAT(Rows("SELECT * FROM landing.imported"),
              FailsWith(ErrorCode::kUnimplemented, "foreign.parquet"));
}

TEST_F(DatasetRelationTest, ATagIsReadAsABranchOrAPoint) {
  ASSERT_OK_AND_ASSIGN(const dataset::StoredFile one, WriteParquet("a.parquet", Longs("id", {1})));
  ASSERT_OK(CommitFiles(dataset_, {one}));
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const dataset::Branch master,
                          datasets_->GetBranch(sql, dataset_, dataset::kDefaultBranch));
    return StatusOf(dataset::branching::CreateTag(sql, {.dataset = dataset_,
                                                        .name = "v1",
                                                        .transaction = *master.head,
                                                        .now = clock_.Now(),
                                                        .by = "me"}));
  }));
  ASSERT_OK_AND_ASSIGN(const dataset::StoredFile two, WriteParquet("b.parquet", Longs("id", {2})));
  ASSERT_OK(CommitFiles(dataset_, {two}));
  const std::vector<json> tagged = {{{"id", 1}}};
  const std::string sql = "SELECT * FROM landing.orders";
  EXPECT_THAT(Rows({.sql = sql, .branch = "v1"}, admin_), IsOkAndHolds(tagged));
  EXPECT_THAT(Rows(sql, "v1"), IsOkAndHolds(tagged));
  EXPECT_THAT(Rows(sql + " AT (VERSION => 'v1')"), IsOkAndHolds(tagged));
  ASSERT_OK_AND_ASSIGN(const auto both, Rows(sql));
  EXPECT_EQ(both.size(), 2U);
  EXPECT_THAT(Rows(sql, "v2"), FailsWith(ErrorCode::kInvalidArgument, "no branch or tag"));
  EXPECT_THAT(Rows({.sql = sql, .branch = "v2"}, admin_), FailsWith(ErrorCode::kNotFound, "v2"));
  EXPECT_THAT(Rows({.sql = sql, .branch = "v1", .at = "2030-01-01T00:00:00Z"}, admin_),
              FailsWith(ErrorCode::kInvalidArgument, "tag v1"));
}

TEST_F(DatasetRelationTest, NothingToReadIsSaid) {
  EXPECT_THAT(Rows("SELECT * FROM landing.orders"),
              FailsWith(ErrorCode::kFailedPrecondition, "neither a schema nor files"));
}

}  // namespace

}  // namespace tarn::query
