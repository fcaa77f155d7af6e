#include "tarn/catalog/namespace.h"

#include "tarn/catalog/catalog_fixture.h"

namespace tarn::catalog {
namespace {

using ::testing::ElementsAre;

class NamespaceTest : public CatalogFixture {
 protected:
  Result<Rid> Create(const std::string& name, NamespaceProperties properties = {}) {
    return In<Rid>([&](metastore::SqlTransaction& sql) {
      return CreateNamespace(
          sql, tree_,
          {.parent = folder_rid_, .name = name, .properties = std::move(properties), .by = "test"});
    });
  }
  Status Drop(const Rid& folder) {
    return Do(
        [&](metastore::SqlTransaction& sql) { return DropNamespace(sql, tree_, folder, "test"); });
  }
};

TEST_F(NamespaceTest, PropertiesAreSetRemovedAndReported) {
  ASSERT_OK_AND_ASSIGN(const Rid folder, Create("a", {{"owner", "me"}, {"x", "1"}}));
  const auto change = [&](const PropertyChange& asked) {
    return In<PropertyReport>(
        [&](metastore::SqlTransaction& sql) { return ChangeProperties(sql, folder, asked); });
  };
  ASSERT_OK_AND_ASSIGN(
      const PropertyReport report,
      change({.removals = {"x", "none"}, .updates = {{"owner", "you"}, {"new \"key\"", "\n"}}}));
  EXPECT_THAT(report.updated, ElementsAre("new \"key\"", "owner"));
  EXPECT_THAT(report.removed, ElementsAre("x"));
  EXPECT_THAT(report.missing, ElementsAre("none"));
  ASSERT_OK_AND_ASSIGN(const NamespaceProperties now,
                       In<NamespaceProperties>([&](metastore::SqlTransaction& sql) {
                         return ReadProperties(sql, folder);
                       }));
  EXPECT_EQ(now, (NamespaceProperties{{"owner", "you"}, {"new \"key\"", "\n"}}));
  EXPECT_THAT(change({.removals = {"owner"}, .updates = {{"owner", "x"}}}),
              Fails(ErrorCode::kInvalidArgument));
}

TEST_F(NamespaceTest, NamesClashWithoutRegardToCase) {
  ASSERT_OK(Create("Sales"));
  EXPECT_THAT(Create("sales"), FailsWith(ErrorCode::kAlreadyExists, "Sales"));
}

TEST_F(NamespaceTest, OnlyEmptyOnesAreDroppedAndTheirPropertiesWithThem) {
  MakeTable("t");
  EXPECT_THAT(Drop(folder_rid_), FailsWith(ErrorCode::kFailedPrecondition, "table t"));
  ASSERT_OK_AND_ASSIGN(const Rid folder, Create("a", {{"k", "v"}}));
  ASSERT_OK(Drop(folder));
  ASSERT_OK_AND_ASSIGN(const Rid again, Create("a"));
  EXPECT_NE(again, folder);
  ASSERT_OK_AND_ASSIGN(const NamespaceProperties now,
                       In<NamespaceProperties>([&](metastore::SqlTransaction& sql) {
                         return ReadProperties(sql, again);
                       }));
  EXPECT_TRUE(now.empty());
}

TEST_F(NamespaceTest, WhatIsInTheTrashKeepsItsFolder) {
  const CatalogObject table = MakeTable("t");
  ASSERT_OK(Do([&](metastore::SqlTransaction& sql) { return tree_.Trash(sql, table.rid, "me"); }));
  ASSERT_OK(Drop(folder_rid_));
  ASSERT_OK(
      Do([&](metastore::SqlTransaction& sql) { return tree_.Restore(sql, table.rid, "me"); }));
  ASSERT_OK(catalog_->LoadTable(table.rid));
}

}  // namespace
}  // namespace tarn::catalog
