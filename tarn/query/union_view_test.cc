#include "tarn/query/union_view.h"

#include "tarn/access/grant.h"
#include "tarn/query/query_fixture.h"

namespace tarn::query {
namespace {

using dataset::DatasetRid;
using metastore::SqlTransaction;
using nlohmann::json;

class UnionViewTest : public QueryFixture {
 protected:
  void SetUp() override {
    QueryFixture::SetUp();
    ASSERT_OK_AND_ASSIGN(first_, MakeDataset("f", "first"));
    ASSERT_OK_AND_ASSIGN(second_, MakeDataset("f", "second"));
    ASSERT_OK_AND_ASSIGN(view_, MakeDataset("f", "both"));
  }

  /// Rows {id, text, version, gone} into a dataset.
  Status Write(const DatasetRid& rid, const std::string& path, const std::vector<int64_t>& ids,
               const std::string& text, int64_t version, bool gone = false) {
    arrow::Int64Builder id;
    arrow::StringBuilder name;
    arrow::Int64Builder order;
    arrow::BooleanBuilder removed;
    for (const int64_t value : ids) {
      TARN_RETURN_IF_ERROR(id.Append(value));
      TARN_RETURN_IF_ERROR(name.Append(text));
      TARN_RETURN_IF_ERROR(order.Append(version));
      TARN_RETURN_IF_ERROR(removed.Append(gone));
    }
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> a, id.Finish());
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> b, name.Finish());
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> c, order.Finish());
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> d, removed.Finish());
    TARN_ASSIGN_OR_RETURN(
        const dataset::StoredFile file,
        WriteParquet(
            path, arrow::RecordBatch::Make(arrow::schema({arrow::field("id", arrow::int64()),
                                                          arrow::field("text", arrow::utf8()),
                                                          arrow::field("version", arrow::int64()),
                                                          arrow::field("gone", arrow::boolean())}),
                                           static_cast<int64_t>(ids.size()), {a, b, c, d})));
    return database_->Write([&](SqlTransaction& sql) -> Status {
      return StatusOf(datasets_->CommitFiles(sql, {.dataset = rid, .files = {file}, .commit = {}}));
    });
  }
  Status Put(const UnionView& view, const std::string& branch = "master") {
    return database_->Write(
        [&](SqlTransaction& sql) { return PutUnionView(sql, view_, branch, view); });
  }
  UnionView Both(std::optional<UnionKey> key = std::nullopt) {
    return {.backing = {{.dataset = first_, .branch = {}, .stopped_markings = {}},
                        {.dataset = second_, .branch = {}, .stopped_markings = {"m"}}},
            .key = std::move(key)};
  }

  DatasetRid first_;
  DatasetRid second_;
  DatasetRid view_;
};

TEST_F(UnionViewTest, DefinitionsAreKeptPerBranch) {
  const UnionView view = Both(UnionKey{
      .columns = {"id"}, .unique = false, .order_columns = {"version"}, .deletion_column = "gone"});
  ASSERT_OK(Put(view, "b"));
  ASSERT_OK(database_->Write([&](SqlTransaction& sql) -> Status {
    EXPECT_THAT(FindUnionView(sql, view_, "b"), IsOkAndHolds(std::optional<UnionView>(view)));
    EXPECT_THAT(FindUnionView(sql, view_, "master"), IsOkAndHolds(std::optional<UnionView>()));
    EXPECT_THAT(IsUnionView(sql, view_), IsOkAndHolds(true));
    EXPECT_THAT(IsUnionView(sql, first_), IsOkAndHolds(false));
    TARN_RETURN_IF_ERROR(RemoveUnionView(sql, view_));
    EXPECT_THAT(IsUnionView(sql, view_), IsOkAndHolds(false));
    return Status::Ok();
  }));
}

TEST_F(UnionViewTest, RowsOfAllDatasetsAreThere) {
  ASSERT_OK(Put(Both()));
  ASSERT_OK(Write(first_, "a", {1, 2}, "x", 1));
  ASSERT_OK_AND_ASSIGN(const auto some, Rows("SELECT id FROM f.both ORDER BY id"));
  EXPECT_EQ(some.size(), 2U) << "a dataset without files adds nothing";
  ASSERT_OK(Write(second_, "a", {2, 3}, "y", 2));
  ASSERT_OK_AND_ASSIGN(const auto rows, Rows("SELECT id, text FROM f.both"));
  EXPECT_EQ(json(rows), json::parse(R"([{"id":1,"text":"x"},{"id":2,"text":"x"},
                                        {"id":2,"text":"y"},{"id":3,"text":"y"}])"));
}

TEST_F(UnionViewTest, TheNewestRowOfAKeyStays) {
  ASSERT_OK(Write(first_, "a", {1, 2, 3}, "old", 1));
  ASSERT_OK(Write(second_, "a", {2}, "new", 2));
  ASSERT_OK(Write(second_, "b", {3}, "gone", 3, true));
  ASSERT_OK(Put(Both(UnionKey{
      .columns = {"id"}, .unique = false, .order_columns = {"version"}, .deletion_column = {}})));
  ASSERT_OK_AND_ASSIGN(const auto newest, Rows("SELECT id, text FROM f.both"));
  EXPECT_EQ(json(newest), json::parse(R"([{"id":1,"text":"old"},{"id":2,"text":"new"},
                                          {"id":3,"text":"gone"}])"));
  ASSERT_OK(Put(Both(UnionKey{.columns = {"id"},
                              .unique = false,
                              .order_columns = {"version"},
                              .deletion_column = "gone"})));
  ASSERT_OK_AND_ASSIGN(const auto rows, Rows("SELECT id, text FROM f.both"));
  EXPECT_EQ(json(rows), json::parse(R"([{"id":1,"text":"old"},{"id":2,"text":"new"}])"));
}

TEST_F(UnionViewTest, ReadersNeedTheDatasetsToo) {
  ASSERT_OK(Put(Both()));
  ASSERT_OK(Write(first_, "a", {1}, "x", 1));
  const access::Principal eve = MakeUser("eve");
  ASSERT_OK(database_->Write([&](SqlTransaction& sql) {
    return access::AddGrant(
        sql,
        {.resource = view_.ToRid(), .principal_id = eve.user_id, .role = access::Role::kViewer},
        "me", clock_.Now());
  }));
  EXPECT_THAT(Rows({.sql = "SELECT * FROM \"" + view_.ToString() + "\""}, eve),
              Fails(ErrorCode::kPermissionDenied));
}

TEST_F(UnionViewTest, NothingToReadIsSaid) {
  ASSERT_OK(Put(Both()));
  EXPECT_THAT(Rows("SELECT * FROM f.both"), Fails(ErrorCode::kInvalidArgument));
  ASSERT_OK(Put({}));
  EXPECT_THAT(Rows("SELECT * FROM f.both"), Fails(ErrorCode::kInvalidArgument));
}

}  // namespace
}  // namespace tarn::query
