#include "tarn/query/metadata_relation.h"

#include "tarn/iceberg/deletes/row_deletes.h"
#include "tarn/iceberg/update/table_operation.h"
#include "tarn/lakehouse/scan/plain_table_fixture.h"
#include "tarn/query/query_fixture.h"
#include "tarn/query/run_change.h"

namespace tarn::query {

namespace {

using nlohmann::json;
using ::testing::ElementsAre;

class MetadataRelationTest : public QueryFixture {
 protected:
  void SetUp() override {
    QueryFixture::SetUp();
    iceberg::TableDefinition definition = lakehouse::PlainDefinition(3, true);
    definition.table_uuid = uuids_.NextV7().ToString();
    definition.location = storage::UriOf(*warehouse_, "tables/plain");
    ASSERT_OK_AND_ASSIGN(const iceberg::TableMetadata metadata,
                         iceberg::MakeTableMetadata(definition, ToMillis(clock_.Now())));
    Rid folder;
    ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const tree::Node node,
                            tree_.EnsureFolder(sql, project_, "shop", admin_.user_id));
      folder = node.rid;
      return Status::Ok();
    }));
    ASSERT_OK_AND_ASSIGN(
        const catalog::LoadedTable table,
        catalog_->CreateTable({.folder = folder, .name = "plain", .by = admin_.user_id}, metadata));
    rid_ = table.object.rid;
    for (const char* select : {"SELECT range AS id, 'a' AS p FROM range(3)",
                               "SELECT range AS id, 'b' AS p FROM range(2)"}) {
      clock_.Advance(std::chrono::seconds(1));
      ASSERT_OK_AND_ASSIGN(const int64_t id,
                           lakehouse::AppendSelect(*catalog_, *engine_, rid_, select));
      snapshots_.push_back(id);
    }
  }

  void DeleteFirstRow() {
    ASSERT_OK_AND_ASSIGN(const catalog::LoadedTable table, catalog_->LoadTable(rid_));
    const iceberg::OperationContext context{
        .store = *warehouse_, .cache = catalog_->manifest_cache(), .metadata = *table.metadata};
    ASSERT_OK_AND_ASSIGN(const auto files,
                         iceberg::SplitByFilter(context, iceberg::Expression::Equal(
                                                             "p", iceberg::Literal::String("a"))));
    ASSERT_EQ(files.whole.size(), 1U);
    ASSERT_OK_AND_ASSIGN(iceberg::WrittenRowDeletes written,
                         iceberg::WriteRowDeletes(*warehouse_, *table.metadata, uuids_,
                                                  {{.task = files.whole[0], .positions = {0}}}));
    ASSERT_OK_AND_ASSIGN(const auto update,
                         iceberg::DeltaUpdate(context, {.deletes = std::move(written)}));
    clock_.Advance(std::chrono::seconds(1));
    ASSERT_OK(lakehouse::CommitSnapshot(*catalog_, rid_, update));
  }

  // Values of the column x, in the order of the statement.
  std::vector<json> Column(const std::string& sql, const std::string& at = "") {
    const auto rows = Rows(sql, at);
    EXPECT_OK(rows);
    std::vector<json> values;
    for (const json& row : rows.ok() ? *rows : std::vector<json>()) {
      values.push_back(row.at("x"));
    }
    return values;
  }

  Rid rid_;
  std::vector<int64_t> snapshots_;
};

TEST_F(MetadataRelationTest, NamesEndInAKnownWord) {
  EXPECT_EQ(SplitMetadataName("orders$files")->table, "orders");
  EXPECT_EQ(SplitMetadataName("a$b$refs")->table, "a$b");
  EXPECT_FALSE(SplitMetadataName("orders$nothing"));
  EXPECT_FALSE(SplitMetadataName("orders"));
  EXPECT_FALSE(SplitMetadataName("$files"));
}

TEST_F(MetadataRelationTest, SnapshotsHistoryAndRefs) {
  EXPECT_THAT(Column("SELECT snapshot_id AS x FROM shop.plain$snapshots WHERE parent_id IS NULL"),
              ElementsAre(snapshots_[0]));
  EXPECT_THAT(Column("SELECT count(*) AS x FROM plain$history WHERE is_current_ancestor"),
              ElementsAre(2));
  EXPECT_THAT(Column("SELECT name || ' ' || type AS x FROM plain$refs"),
              ElementsAre("main BRANCH"));
  EXPECT_THAT(Column("SELECT json_extract_string(summary, '$.total-records') AS x FROM "
                     "plain$snapshots ORDER BY committed_at"),
              ElementsAre("3", "5"));
  EXPECT_THAT(Column("SELECT count(*) AS x FROM plain$metadata_log_entries"), ElementsAre(2));
}

TEST_F(MetadataRelationTest, FilesOfASnapshot) {
  DeleteFirstRow();
  EXPECT_THAT(Column("SELECT partition || ' ' || record_count AS x FROM plain$data_files"),
              ElementsAre("p=a 3", "p=b 2"));
  EXPECT_THAT(Column("SELECT concat_ws(' ', file_format, record_count, content) AS x FROM "
                     "plain$delete_files"),
              ElementsAre("PUFFIN 1 1"));
  EXPECT_THAT(Column("SELECT count(*) AS x FROM plain$files"), ElementsAre(3));
  EXPECT_THAT(Column("SELECT count(*) AS x FROM plain$files", std::to_string(snapshots_[0])),
              ElementsAre(1));
  EXPECT_THAT(Column("SELECT json_extract_string(upper_bounds, '$.id') AS x FROM "
                     "plain$data_files WHERE partition = 'p=b'"),
              ElementsAre("1"));
  EXPECT_THAT(Column("SELECT concat_ws(' ', partition, record_count, file_count, "
                     "position_delete_record_count) AS x FROM plain$partitions"),
              ElementsAre("p=a 3 1 1", "p=b 2 1 0"));
  EXPECT_THAT(Column("SELECT count(*) AS x FROM plain$manifests WHERE content = 1"),
              ElementsAre(1));
  EXPECT_THAT(Column("SELECT max(sequence_number) AS x FROM plain$entries"), ElementsAre(3));
}

TEST_F(MetadataRelationTest, RowsSayWhereTheyAre) {
  DeleteFirstRow();
  EXPECT_THAT(Column("SELECT concat_ws(' ', p, id, _pos, _row_id, "
                     "_last_updated_sequence_number) AS x FROM plain$rows"),
              ElementsAre("a 1 1 1 1", "a 2 2 2 1", "b 0 0 3 2", "b 1 1 4 2"));
  EXPECT_THAT(Column("SELECT count(DISTINCT r._file) AS x FROM plain$rows r JOIN "
                     "plain$data_files f ON r._file = f.file_path"),
              ElementsAre(2));
  // What the deletion left alone is of the snapshots that wrote it.
  EXPECT_THAT(Column("SELECT DISTINCT _snapshot_id AS x FROM plain$rows ORDER BY 1"),
              ::testing::UnorderedElementsAre(snapshots_[0], snapshots_[1]));
  EXPECT_THAT(Column("SELECT count(*) AS x FROM plain"), ElementsAre(4));
}

TEST_F(MetadataRelationTest, EachRowOfManyFilesHasItsOwn) {
  constexpr int64_t kFiles = 37;
  for (int64_t i = 100; i < 100 + kFiles; ++i) {
    clock_.Advance(std::chrono::seconds(1));
    ASSERT_OK(lakehouse::AppendSelect(*catalog_, *engine_, rid_,
                                      "SELECT " + std::to_string(i) + " AS id, 'c' AS p"));
  }
  EXPECT_THAT(Column("SELECT count(*) AS x FROM plain$rows r JOIN plain$entries e ON r._file = "
                     "e.file_path AND r._snapshot_id = e.snapshot_id AND r.id = "
                     "json_extract_string(e.lower_bounds, '$.id')::BIGINT WHERE r.id >= 100"),
              ElementsAre(kFiles));
  EXPECT_THAT(Column("SELECT count(DISTINCT _file) AS x FROM plain$rows"), ElementsAre(kFiles + 2));
}

// Statements that change many rows need no memory of the engine for their places.
TEST_F(MetadataRelationTest, PlacesOfManyRowsTakeNoMemory) {
  ASSERT_OK(StatusOf(
      RunChange({.sql = "CREATE TABLE shop.many AS SELECT range AS id FROM range(3000000)"}, admin_,
                deps())));
  ASSERT_OK_AND_ASSIGN(engine_,
                       engine::Engine::Open({.memory_limit_bytes = 48ULL << 20,
                                             .allowed_directories = {warehouse_->root_path()}}));
  EXPECT_THAT(Column("SELECT count(_file) + 0 * sum(_pos) AS x FROM many$rows WHERE id % 2 = 0"),
              ElementsAre(1'500'000));
}

// The file of partition b is gone: only a query that may need it fails.
TEST_F(MetadataRelationTest, FilesThatCannotMatchAreNotOpened) {
  ASSERT_OK_AND_ASSIGN(const auto files,
                       Rows("SELECT file_path AS x FROM plain$files WHERE partition = 'p=b'"));
  ASSERT_OK_AND_ASSIGN(const std::string key,
                       storage::KeyOf(*warehouse_, files.front().at("x").get<std::string>()));
  ASSERT_OK(warehouse_->Delete(key));
  EXPECT_THAT(Column("SELECT id AS x FROM plain WHERE p = 'a' AND id < 2"), ElementsAre(0, 1));
  EXPECT_THAT(Column("SELECT id AS x FROM plain AS t WHERE t.id >= 2"), ElementsAre(2));
  EXPECT_THAT(Column("SELECT _pos AS x FROM plain$rows WHERE p IN ('a', 'c') AND id = 2"),
              ElementsAre(2));
  EXPECT_THAT(Column("SELECT id AS x FROM plain WHERE id = 99"), ElementsAre());
  EXPECT_THAT(Rows("SELECT id AS x FROM plain WHERE id = 1"), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(Rows("SELECT * FROM plain"), Fails(ErrorCode::kNotFound));
}

TEST_F(MetadataRelationTest, OnlyTablesThatOneMaySeeHaveThem) {
  const access::Principal user = MakeUser("eve");
  EXPECT_THAT(Rows({.sql = "SELECT * FROM shop.plain$files"}, user),
              FailsWith(ErrorCode::kNotFound, "does not exist"));
  ASSERT_OK_AND_ASSIGN(const auto target, OpenTarget(MakeSpec("orders")));
  EXPECT_THAT(Rows("SELECT * FROM shop.orders$files"),
              FailsWith(ErrorCode::kInvalidArgument, "only tables"));
  EXPECT_OK(Rows("SELECT * FROM shop_internal.orders_internal$files"));
  EXPECT_THAT(Rows("SELECT * FROM shop.plain$nothing"), Fails(ErrorCode::kNotFound));
}

}  // namespace

}  // namespace tarn::query
