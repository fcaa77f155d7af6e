#include "tarn/catalog/catalog.h"

#include <atomic>
#include <thread>

#include "tarn/catalog/catalog_fixture.h"
#include "tarn/catalog/location.h"

namespace tarn::catalog {
namespace {

using namespace iceberg::table_update;       // NOLINT(google-build-using-namespace)
using namespace iceberg::table_requirement;  // NOLINT(google-build-using-namespace)

class CatalogTest : public CatalogFixture {};

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

iceberg::Snapshot MakeSnapshot(int64_t id, int64_t sequence, std::optional<int64_t> parent) {
  return {.snapshot_id = id,
          .parent_snapshot_id = parent,
          .sequence_number = sequence,
          .timestamp_ms = 1'000'000 + sequence,
          .manifest_list = "memory://store/tables/a/metadata/snap-" + std::to_string(id) + ".avro",
          .operation = iceberg::SnapshotOperation::kAppend};
}

TableChange AppendTo(const CatalogObject& table, int64_t id, int64_t sequence,
                     std::optional<int64_t> parent) {
  return {.table = table,
          .requirements = {AssertRefSnapshotId{.ref = "main", .snapshot_id = parent}},
          .updates = {AddSnapshot{MakeSnapshot(id, sequence, parent)},
                      SetSnapshotRef{.name = "main", .ref = {.snapshot_id = id}}}};
}

TEST_F(CatalogTest, ACommitThatIsSentAgainSucceedsWithoutASecondEffect) {
  const CatalogObject table = MakeTable("a");
  const TableChange first = AppendTo(table, 11, 1, {});
  ASSERT_OK(catalog_->CommitTables({first}));
  ASSERT_OK(catalog_->CommitTables({AppendTo(table, 12, 2, 11)}));
  const std::string location = catalog_->LoadTable(table.rid)->object.metadata_location;
  ASSERT_OK_AND_ASSIGN(const auto again, catalog_->CommitTables({first}));
  EXPECT_EQ(again[0].object.metadata_location, location);
  EXPECT_EQ(again[0].metadata->snapshots.size(), 2U);
  // Another snapshot from the same base is a lost race, not a replay.
  EXPECT_THAT(catalog_->CommitTables({AppendTo(table, 13, 1, {})}), Fails(ErrorCode::kConflict));
}

TEST_F(CatalogTest, WritersOfOneTableLoseNothing) {
  const CatalogObject table = MakeTable("a");
  std::atomic<int> failures = 0;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 10; ++i) {
        const std::string key = std::to_string(writer) + "-" + std::to_string(i);
        const auto committed = catalog_->CommitTables(
            {{.table = table, .requirements = {}, .updates = {SetProperties{{{key, "1"}}}}}});
        failures += committed.ok() ? 0 : 1;
      }
    });
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(catalog_->LoadTable(table.rid)->metadata->properties.size(), 40U);
}

TEST_F(CatalogTest, CommitsThatWaitTogetherKeepTheirOwnOutcomes) {
  const CatalogObject table = MakeTable("a");
  // Of four appends to the same base one wins; properties go through beside them.
  std::atomic<int> won = 0;
  std::atomic<int> set = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 12; ++writer) {
    writers.emplace_back([&, writer] {
      if (writer % 3 == 0) {
        const auto committed = catalog_->CommitTables({AppendTo(table, 100 + writer, 1, {})});
        won += committed.ok() ? 1 : 0;
        EXPECT_TRUE(committed.ok() || committed.status().code() == ErrorCode::kConflict);
      } else if (writer % 3 == 1) {
        const std::string key = std::to_string(writer);
        const auto committed = catalog_->CommitTables(
            {{.table = table, .requirements = {}, .updates = {SetProperties{{{key, "1"}}}}}});
        set += committed.ok() && committed->front().metadata->properties.contains(key) ? 1 : 0;
      } else {
        const auto committed = catalog_->CommitTables(
            {SetProperty(table, "x" + std::to_string(writer))},
            [](metastore::SqlTransaction&) { return Status::PermissionDenied("no"); });
        refused += committed.status().code() == ErrorCode::kPermissionDenied ? 1 : 0;
      }
    });
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
  EXPECT_EQ(won, 1);
  EXPECT_EQ(set, 4);
  EXPECT_EQ(refused, 4);
  const LoadedTable now = catalog_->LoadTable(table.rid).value();
  EXPECT_EQ(now.metadata->snapshots.size(), 1U);
  EXPECT_EQ(now.metadata->properties.size(), 4U);
  EXPECT_EQ(PropertyOf(table), "");
}

TEST_F(CatalogTest, APointerThatAnotherServerMovedIsTakenIntoAccount) {
  const CatalogObject table = MakeTable("a");
  Catalog other({}, CatalogDeps{*database_, store_, tree_, ids_, clock_});
  int interruptions = 0;
  // The other server commits between the preparation and the move of the first attempt.
  ASSERT_OK(catalog_->CommitTables(
      {{.table = table, .requirements = {}, .updates = {SetProperties{{{"mine", "1"}}}}}},
      [&](metastore::SqlTransaction&) -> Status {
        return ++interruptions == 1
                   ? Status::Conflict("moved").WithReason(std::string(kPointerMoved))
                   : Status::Ok();
      }));
  EXPECT_EQ(interruptions, 2);
  ASSERT_OK(other.CommitTables(
      {{.table = table, .requirements = {}, .updates = {SetProperties{{{"theirs", "1"}}}}}}));
  ASSERT_OK(catalog_->CommitTables({SetProperty(table, "x")}));
  EXPECT_EQ(catalog_->LoadTable(table.rid)->metadata->properties.size(), 3U);
}

std::vector<iceberg::TableUpdate> UpdatesOfNew(const iceberg::TableMetadata& metadata) {
  return {AssignUuid{metadata.table_uuid},
          UpgradeFormatVersion{2},
          AddSchema{metadata.CurrentSchema(), {}},
          SetCurrentSchema{},
          AddSpec{},
          SetDefaultSpec{},
          AddSortOrder{},
          SetDefaultSortOrder{},
          SetLocation{metadata.location}};
}

TEST_F(CatalogTest, ACommitMakesTablesBesideChangingOthersOrNeither) {
  const CatalogObject old = MakeTable("old");
  const iceberg::TableMetadata made = MakeMetadata("memory://store/tables/made");
  const std::vector<TableChange> changes = {SetProperty(old, "1"),
                                            {.table = {},
                                             .requirements = {AssertCreate{}},
                                             .updates = UpdatesOfNew(made),
                                             .create = At("made")}};
  const size_t objects = store_.object_count();
  EXPECT_THAT(catalog_->CommitTables(
                  changes, [](metastore::SqlTransaction&) { return Status::Conflict("no"); }),
              Fails(ErrorCode::kConflict));
  EXPECT_EQ(store_.object_count(), objects);
  EXPECT_EQ(PropertyOf(old), "");
  ASSERT_OK_AND_ASSIGN(const auto tables, catalog_->CommitTables(changes));
  EXPECT_EQ(PropertyOf(old), "1");
  EXPECT_EQ(tables[1].object.name, "made");
  EXPECT_EQ(tables[1].object.location, "memory://store/tables/made");
  ASSERT_OK(catalog_->LoadTable(tables[1].object.rid));
  EXPECT_THAT(catalog_->CommitTables({changes[1]}), Fails(ErrorCode::kPermissionDenied))
      << "the location is taken";
}

TEST_F(CatalogTest, WhicheverOperationFailsATableIsMadeOrNot) {
  int number = 0;
  for (const metastore::Fault fault : {metastore::Fault::kBefore, metastore::Fault::kAfter}) {
    bool fired = true;
    for (int64_t n = 1; fired; ++n) {
      SCOPED_TRACE("operation " + std::to_string(n));
      const std::string name = "t" + std::to_string(++number);
      const iceberg::TableMetadata metadata = MakeMetadata("memory://store/tables/" + name);
      const size_t objects = store_.object_count();
      faulty_->FailAt(n, fault);
      const auto made = catalog_->CreateTable(At(name), metadata);
      fired = faulty_->fired();
      faulty_->FailAt(0, fault);
      const auto found = In<std::optional<CatalogObject>>(
          [&](metastore::SqlTransaction& sql) { return FindObject(sql, folder_rid_, name); });
      ASSERT_OK(found);
      if (made.ok()) {
        EXPECT_TRUE(found->has_value());
        EXPECT_OK(catalog_->LoadTable((*found)->rid));
      } else if (made.status().code() != ErrorCode::kCommitStateUnknown) {
        EXPECT_FALSE(found->has_value()) << made.status().ToString();
        EXPECT_EQ(store_.object_count(), objects);
      }
    }
  }
}

TEST_F(CatalogTest, NamesClashWithoutRegardToCase) {
  MakeTable("Orders");
  EXPECT_THAT(catalog_->CreateTable(At("ORDERS"), MakeMetadata("memory://store/tables/x")),
              FailsWith(ErrorCode::kAlreadyExists, "Orders"));
  ASSERT_OK(catalog_->CreateTable(At("orders2"), MakeMetadata("memory://store/tables/y")));
}

TEST_F(CatalogTest, TablesFollowTheTree) {
  const CatalogObject table = MakeTable("a");
  ASSERT_OK(Do([&](metastore::SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(tree_.Rename(sql, table.rid, "b", "test"));
    TARN_ASSIGN_OR_RETURN(const auto found, FindObject(sql, folder_rid_, "b"));
    EXPECT_TRUE(found && found->rid == table.rid && found->name == "b");
    TARN_ASSIGN_OR_RETURN(const auto gone, FindObject(sql, folder_rid_, "a"));
    EXPECT_FALSE(gone);
    return tree_.Trash(sql, table.rid, "test");
  }));
  EXPECT_THAT(catalog_->LoadTable(table.rid), Fails(ErrorCode::kNotFound));
  MakeTable("b");
  EXPECT_THAT(
      Do([&](metastore::SqlTransaction& sql) { return tree_.Restore(sql, table.rid, "test"); }),
      Fails(ErrorCode::kAlreadyExists));
}

TEST_F(CatalogTest, LocationsDoNotOverlap) {
  ASSERT_OK(catalog_->CreateTable(At("a"), MakeMetadata("memory://store/x/a")));
  for (const char* taken : {"memory://store/x/a", "memory://store/x/a/b", "memory://store/x",
                            "memory://store/01900000-0000-7000-8000-000000000000/2026/t"}) {
    EXPECT_THAT(catalog_->CreateTable(At("other"), MakeMetadata(taken)),
                Fails(ErrorCode::kPermissionDenied))
        << taken;
  }
  for (const char* wrong : {"memory://other/x", "memory://store", "s3://bucket/x"}) {
    EXPECT_THAT(catalog_->CreateTable(At("other"), MakeMetadata(wrong)),
                Fails(ErrorCode::kInvalidArgument))
        << wrong;
  }
  ASSERT_OK(catalog_->CreateTable(At("ab"), MakeMetadata("memory://store/x/ab")));
}

TEST_F(CatalogTest, ATableCannotMoveOrWriteIntoAnother) {
  const CatalogObject a = MakeTable("a");
  const CatalogObject b = MakeTable("b");
  const auto commit = [&](iceberg::TableUpdate update) {
    return catalog_->CommitTables(
        {{.table = a, .requirements = {}, .updates = {std::move(update)}}});
  };
  EXPECT_THAT(commit(SetLocation{b.location}), Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(commit(SetLocation{"file:///etc"}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(commit(SetProperties{{{"write.data.path", b.location + "/data"}}}),
              Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(commit(SetProperties{{{"write.metadata.path", "file:///etc"}}}),
              Fails(ErrorCode::kInvalidArgument));
  ASSERT_OK(commit(SetProperties{{{"write.data.path", a.location + "/rows"}}}));
  ASSERT_OK(commit(SetLocation{"memory://store/moved"}));
  EXPECT_EQ(catalog_->LoadTable(a.rid)->object.location, "memory://store/moved");
}

TEST_F(CatalogTest, DroppedFilesCanBeRegisteredWhereTheyWere) {
  const CatalogObject table = MakeTable("a");
  Rid elsewhere;
  ASSERT_OK(Do([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const tree::Node node, tree::GetNode(sql, folder_rid_));
    TARN_ASSIGN_OR_RETURN(const tree::Node folder,
                          tree_.EnsureFolder(sql, node.parent, "elsewhere", "test"));
    elsewhere = folder.rid;
    return DropObject(sql, tree_, {.object = table, .by = "test", .at = clock_.Now()});
  }));
  EXPECT_THAT(catalog_->RegisterTable({.folder = elsewhere, .name = "stolen", .by = "eve"},
                                      table.metadata_location),
              Fails(ErrorCode::kPermissionDenied));
  ASSERT_OK_AND_ASSIGN(const LoadedTable again,
                       catalog_->RegisterTable(At("again"), table.metadata_location));
  EXPECT_EQ(again.object.uuid, table.uuid);
  EXPECT_THAT(catalog_->RegisterTable(At("twice"), table.metadata_location),
              Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(catalog_->RegisterTable(At("none"), "memory://store/tables/none/metadata/v.json"),
              Fails(ErrorCode::kNotFound));
}

TEST_F(CatalogTest, APurgeDeletesTheFilesOnceAndCanBeTakenUpAgain) {
  const CatalogObject table = MakeTable("a");
  ASSERT_OK(catalog_->CommitTables({SetProperty(table, "1")}));
  const CatalogObject other = MakeTable("ab");
  const CatalogObject now = catalog_->LoadTable(table.rid)->object;
  const size_t kept = store_.object_count() - 2;
  ASSERT_OK(Do([&](metastore::SqlTransaction& sql) {
    return DropObject(sql, tree_, {.object = now, .by = "test", .at = clock_.Now(), .purge = true});
  }));
  // The process dies here; another one finds what is due.
  Catalog next({}, CatalogDeps{*database_, store_, tree_, ids_, clock_});
  ASSERT_OK_AND_ASSIGN(const int64_t purged, next.FinishPurges());
  EXPECT_EQ(purged, 1);
  EXPECT_EQ(store_.object_count(), kept);
  ASSERT_OK(next.LoadTable(other.rid));
  ASSERT_OK_AND_ASSIGN(const int64_t again, next.FinishPurges());
  EXPECT_EQ(again, 0);
}

TEST_F(CatalogTest, OldHomesKeepTheirTables) {
  const TemporaryDirectory home;
  std::unique_ptr<metastore::SqliteDatabase> old =
      metastore::SqliteDatabase::Open({.path = home.path() / "metastore.db"}).value();
  ASSERT_OK(old->Migrate(tree::Migrations()));
  ASSERT_OK(old->Migrate({Migrations()[0]}));
  Rid rid;
  ASSERT_OK(old->Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const Rid project, tree_.Bootstrap(sql, "test"));
    TARN_ASSIGN_OR_RETURN(
        const tree::Node node,
        tree_.Create(
            sql, {.parent = project, .name = "t", .type = tree::NodeType::kTable, .by = "test"}));
    rid = node.rid;
    return StatusOf(sql.Execute(
        "INSERT INTO catalog_object (rid, kind, folder, name, uuid, metadata_location, writers) "
        "VALUES (?1, 0, ?2, 't', 'u', 'file:///w/tables/u/metadata/00000-x.metadata.json', 1)",
        {rid.ToString(), project.ToString()}));
  }));
  ASSERT_OK(old->Migrate(Migrations()));
  ASSERT_OK(old->Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const std::optional<CatalogObject> found, FindObject(sql, rid));
    EXPECT_TRUE(found.has_value());
    EXPECT_EQ(found->location, "file:///w/tables/u");
    EXPECT_EQ(found->writers, Writers::kProduct);
    return Status::Ok();
  }));
}

}  // namespace
}  // namespace tarn::catalog
