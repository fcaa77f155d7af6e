#include "tarn/catalog/catalog.h"

#include "tarn/iceberg/metadata_builder.h"
#include "tarn/metastore/faulty_database.h"
#include "tarn/storage/memory_store.h"
#include "test/support/metastore_fixture.h"

namespace tarn::catalog {
namespace {

class CatalogTest : public MetastoreFixture {
 protected:
  void SetUp() override {
    OpenWith({tree::Migrations(), Migrations()});
    ASSERT_OK(Do([&](metastore::SqlTransaction& sql) -> Status {
      Result<Rid> project = tree_.Bootstrap(sql, "test");
      TARN_RETURN_IF_ERROR(project);
      TARN_ASSIGN_OR_RETURN(const tree::Node folder,
                            tree_.EnsureFolder(sql, *project, "shop", "test"));
      folder_rid_ = folder.rid;
      return Status::Ok();
    }));
    faulty_ = std::make_unique<metastore::FaultyDatabase>(*database_);
    catalog_ = std::make_unique<Catalog>(CatalogOptions{},
                                         CatalogDeps{*faulty_, store_, tree_, ids_, clock_});
  }

  CatalogObject MakeTable(const std::string& name) {
    iceberg::TableDefinition definition;
    definition.table_uuid = ids_.NextV7().ToString();
    definition.location = "memory://store/tables/" + name;
    iceberg::SchemaField field;
    field.id = 1;
    field.name = "id";
    field.type = iceberg::Type::Long();
    definition.schema.fields = {field};
    const iceberg::TableMetadata metadata = iceberg::MakeTableMetadata(definition, 1000).value();
    const std::string location = catalog_->WriteFirst(metadata).value();
    return In<CatalogObject>([&](metastore::SqlTransaction& sql) {
             return CreateObject(sql, tree_,
                                 {.kind = ObjectKind::kTable,
                                  .folder = folder_rid_,
                                  .name = name,
                                  .uuid = definition.table_uuid,
                                  .metadata_location = location,
                                  .by = "test"});
           })
        .value();
  }

  static TableChange SetProperty(const CatalogObject& table, const std::string& value) {
    return {.table = table,
            .requirements = {},
            .updates = {iceberg::table_update::SetProperties{.updates = {{"p", value}}}}};
  }

  std::string PropertyOf(const CatalogObject& table) {
    const LoadedTable loaded = catalog_->LoadTable(table.rid).value();
    const auto found = loaded.metadata->properties.find("p");
    return found == loaded.metadata->properties.end() ? "" : found->second;
  }

  storage::MemoryStore store_{clock_};
  tree::Tree tree_{ids_, clock_};
  Rid folder_rid_;
  std::unique_ptr<metastore::FaultyDatabase> faulty_;
  std::unique_ptr<Catalog> catalog_;
};

TEST_F(CatalogTest, CommitMovesThePointerAndTheNewMetadataIsRead) {
  const CatalogObject table = MakeTable("a");
  ASSERT_OK(catalog_->CommitTables({SetProperty(table, "1")}));
  EXPECT_EQ(PropertyOf(table), "1");
  const LoadedTable loaded = catalog_->LoadTable(table.rid).value();
  EXPECT_NE(loaded.object.metadata_location, table.metadata_location);
  ASSERT_EQ(loaded.metadata->metadata_log.size(), 1U);
  EXPECT_EQ(loaded.metadata->metadata_log[0].metadata_file, table.metadata_location);
}

TEST_F(CatalogTest, SeveralTablesCommitTogetherOrNotAtAll) {
  const CatalogObject a = MakeTable("a");
  const CatalogObject b = MakeTable("b");
  const size_t objects = store_.object_count();
  EXPECT_THAT(catalog_->CommitTables({SetProperty(a, "1"), SetProperty(b, "1")},
                                     [](metastore::SqlTransaction&) {
                                       return Status::Conflict("the caller's rows moved");
                                     }),
              Fails(ErrorCode::kConflict));
  EXPECT_EQ(PropertyOf(a), "");
  EXPECT_EQ(PropertyOf(b), "");
  EXPECT_EQ(store_.object_count(), objects) << "files of a failed commit were left";
  ASSERT_OK(catalog_->CommitTables({SetProperty(a, "2"), SetProperty(b, "3")}));
  EXPECT_EQ(PropertyOf(a), "2");
  EXPECT_EQ(PropertyOf(b), "3");
}

TEST_F(CatalogTest, WhicheverOperationFailsTheTableIsAsBeforeOrAsAsked) {
  const CatalogObject table = MakeTable("a");
  int number = 0;
  for (const metastore::Fault fault : {metastore::Fault::kBefore, metastore::Fault::kAfter}) {
    bool fired = true;
    for (int64_t n = 1; fired; ++n) {
      SCOPED_TRACE("operation " + std::to_string(n));
      const std::string before = PropertyOf(table);
      const std::string asked = std::to_string(++number);
      faulty_->FailAt(n, fault);
      const auto committed = catalog_->CommitTables({SetProperty(table, asked)});
      fired = faulty_->fired();
      faulty_->FailAt(0, fault);
      const std::string after = PropertyOf(table);
      if (committed.ok()) {
        EXPECT_EQ(after, asked);
      } else if (committed.status().code() != ErrorCode::kCommitStateUnknown) {
        EXPECT_EQ(after, before) << committed.status().ToString();
      }
    }
  }
}

TEST_F(CatalogTest, AFailedRequirementIsAConflict) {
  const CatalogObject table = MakeTable("a");
  TableChange change = SetProperty(table, "1");
  change.requirements = {iceberg::table_requirement::AssertCurrentSchemaId{.current_schema_id = 9}};
  EXPECT_THAT(catalog_->CommitTables({change}), Fails(ErrorCode::kConflict));
}

TEST_F(CatalogTest, AMovedPointerIsAConflictThatNamesBoth) {
  const CatalogObject table = MakeTable("a");
  const Status moved = Do([&](metastore::SqlTransaction& sql) {
    return MovePointer(
        sql, {.rid = table.rid, .expected_location = "elsewhere", .next_location = "new"});
  });
  EXPECT_THAT(moved, FailsWith(ErrorCode::kConflict, table.metadata_location));
}

TEST_F(CatalogTest, NamesAreTakenOnce) {
  MakeTable("a");
  const auto again = In<CatalogObject>([&](metastore::SqlTransaction& sql) {
    return CreateObject(sql, tree_, {.folder = folder_rid_, .name = "a", .by = "test"});
  });
  EXPECT_THAT(again, Fails(ErrorCode::kAlreadyExists));
}

TEST_F(CatalogTest, ListingsArePagedByName) {
  for (const char* name : {"c", "a", "b"}) {
    MakeTable(name);
  }
  const auto page = In<ObjectPage>([&](metastore::SqlTransaction& sql) {
    return ListObjects(sql, folder_rid_, ObjectKind::kTable, "", 2);
  });
  ASSERT_OK(page);
  ASSERT_EQ(page->objects.size(), 2U);
  EXPECT_EQ(page->objects[0].name, "a");
  EXPECT_TRUE(page->truncated);
}

TEST_F(CatalogTest, ADroppedTableIsNotFound) {
  const CatalogObject table = MakeTable("a");
  ASSERT_OK(Do([&](metastore::SqlTransaction& sql) { return DropObject(sql, table.rid); }));
  EXPECT_THAT(catalog_->LoadTable(table.rid), Fails(ErrorCode::kNotFound));
}

}  // namespace
}  // namespace tarn::catalog
