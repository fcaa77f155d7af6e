#include "tarn/query/object_statement.h"

#include <filesystem>

#include "tarn/access/grant.h"
#include "tarn/query/query_fixture.h"
#include "tarn/query/run_change.h"

namespace tarn::query {

namespace {

class ObjectStatementTest : public QueryFixture {
 protected:
  Status Run(const std::string& sql) { return Run(sql, admin_); }
  Status Run(const std::string& sql, const access::Principal& who) {
    return StatusOf(RunChange({.sql = sql}, who, deps()));
  }

  size_t FileCount() {
    size_t count = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(warehouse_->root_path())) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }

  void Grant(const access::Principal& who, const Rid& where, access::Role role) {
    ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) {
      return access::AddGrant(sql, {.resource = where, .principal_id = who.user_id, .role = role},
                              "me", clock_.Now());
    }));
  }
};

TEST_F(ObjectStatementTest, ATableLivesAndGoesWithItsSchema) {
  ASSERT_OK(Run("CREATE SCHEMA s"));
  ASSERT_OK(Run("CREATE SCHEMA s.inner"));
  ASSERT_OK(Run("CREATE SCHEMA default.other"));
  ASSERT_OK(Run("CREATE SCHEMA \"/Default/default/third\""));
  EXPECT_THAT(Run("CREATE SCHEMA s"), FailsWith(ErrorCode::kAlreadyExists, "s"));
  EXPECT_OK(Run("CREATE SCHEMA IF NOT EXISTS s"));
  EXPECT_THAT(Run("CREATE SCHEMA none.x"), FailsWith(ErrorCode::kNotFound, "none"));
  ASSERT_OK(Run("CREATE TABLE s.inner.t AS SELECT 1 AS id"));
  ASSERT_OK(Run("CREATE TABLE other.u AS SELECT 2 AS id"));
  ASSERT_OK(Run("CREATE TABLE third.u3 AS SELECT 2 AS id"));
  EXPECT_THAT(Run("DROP SCHEMA s"), FailsWith(ErrorCode::kConflict, "inner"));
  EXPECT_THAT(Run("DROP SCHEMA s.inner"), FailsWith(ErrorCode::kConflict, "t"));
  EXPECT_THAT(Run("DROP VIEW s.inner.t"), FailsWith(ErrorCode::kInvalidArgument, "DROP TABLE"));
  EXPECT_THAT(Run("DROP SCHEMA s.inner.t"), FailsWith(ErrorCode::kInvalidArgument, "not a folder"));
  ASSERT_OK(Run("DROP TABLE s.inner.t"));
  EXPECT_THAT(Run("DROP TABLE s.inner.t"), FailsWith(ErrorCode::kNotFound, "s.inner.t"));
  EXPECT_OK(Run("DROP TABLE IF EXISTS s.inner.t"));
  EXPECT_THAT(StatusOf(Rows("SELECT * FROM s.inner.t")), Fails(ErrorCode::kNotFound));
  ASSERT_OK(Run("DROP SCHEMA s.inner"));
  ASSERT_OK(Run("DROP SCHEMA s"));
  EXPECT_THAT(Run("DROP SCHEMA s"), FailsWith(ErrorCode::kNotFound, "no schema s"));
  EXPECT_OK(Run("DROP SCHEMA IF EXISTS s"));
  EXPECT_OK(Run("DROP SCHEMA IF EXISTS none.x"));
  // The name is free again.
  ASSERT_OK(Run("DROP TABLE u"));
  ASSERT_OK(Run("CREATE TABLE other.u AS SELECT 3 AS id"));
  ASSERT_OK_AND_ASSIGN(const auto rows, Rows("SELECT id FROM other.u"));
  EXPECT_EQ(rows.size(), 1U);
}

TEST_F(ObjectStatementTest, FilesGoOnlyWithPurge) {
  ASSERT_OK(Run("CREATE SCHEMA s"));
  ASSERT_OK(Run("CREATE TABLE s.kept AS SELECT 1 AS id"));
  const size_t before = FileCount();
  ASSERT_OK(Run("DROP TABLE s.kept"));
  EXPECT_EQ(FileCount(), before);
  ASSERT_OK(Run("CREATE TABLE s.gone AS SELECT 1 AS id"));
  ASSERT_GT(FileCount(), before);
  ASSERT_OK(Run("DROP TABLE s.gone PURGE"));
  EXPECT_EQ(FileCount(), before);
}

TEST_F(ObjectStatementTest, WhatAPipelineMadeStays) {
  lakehouse::TableSpec spec = MakeSpec("orders");
  spec.owner = "p.orders";
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTarget(spec));
  for (const char* sql : {"DROP TABLE shop_internal.orders_internal", "DROP VIEW shop.orders",
                          "DROP TABLE IF EXISTS shop.orders__applied",
                          "DROP TABLE shop_internal.orders_internal PURGE"}) {
    EXPECT_THAT(Run(sql), FailsWith(ErrorCode::kPermissionDenied, "task p.orders of pipeline p"))
        << sql;
  }
  EXPECT_THAT(Run("DROP SCHEMA shop"), Fails(ErrorCode::kConflict));
  ASSERT_OK(MakeDataset("shop", "files"));
  EXPECT_THAT(Run("DROP TABLE shop.files"), FailsWith(ErrorCode::kInvalidArgument, "is a dataset"));
}

TEST_F(ObjectStatementTest, RolesAreThoseOfTheTree) {
  ASSERT_OK(Run("CREATE SCHEMA s"));
  ASSERT_OK(Run("CREATE TABLE s.t AS SELECT 1 AS id"));
  const access::Principal viewer = MakeUser("viewer");
  // Nobody without a grant learns what there is.
  EXPECT_THAT(Run("DROP TABLE s.t", viewer), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(Run("DROP SCHEMA s", viewer), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(Run("CREATE SCHEMA mine", viewer), Fails(ErrorCode::kNotFound));
  Grant(viewer, project_, access::Role::kViewer);
  EXPECT_THAT(Run("DROP TABLE s.t", viewer), Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(Run("DROP SCHEMA s", viewer), Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(Run("CREATE SCHEMA mine", viewer), Fails(ErrorCode::kPermissionDenied));
  const access::Principal editor = MakeUser("editor");
  Grant(editor, project_, access::Role::kEditor);
  EXPECT_THAT(Run("DROP TABLE s.t PURGE", editor), Fails(ErrorCode::kPermissionDenied));
  EXPECT_OK(Run("DROP TABLE s.t", editor));
  EXPECT_OK(Run("DROP SCHEMA s", editor));
  EXPECT_OK(Run("CREATE SCHEMA mine", editor));
}

}  // namespace

}  // namespace tarn::query
