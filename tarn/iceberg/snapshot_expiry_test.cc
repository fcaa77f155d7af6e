#include "tarn/iceberg/snapshot_expiry.h"

#include "tarn/iceberg/metadata_builder.h"
#include "tarn/iceberg/snapshot_update.h"
#include "tarn/storage/memory_store.h"
#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

constexpr int64_t kStart = 1'700'000'000'000;
constexpr int64_t kHour = 3'600'000;

TableMetadata EmptyTable() {
  Schema schema;
  schema.fields = {{.id = 1, .name = "a", .type = Type::Long()}};
  return MakeTableMetadata({.table_uuid = "9c12d441-03fe-4693-9a96-a0705ddf69c1",
                            .location = "memory://store/t",
                            .schema = schema},
                           kStart)
      .value();
}

// Snapshots 1..count, one an hour, each the child of the one before.
TableMetadata Chain(int64_t count) {
  TableMetadata metadata = EmptyTable();
  for (int64_t id = 1; id <= count; ++id) {
    const Snapshot snapshot{
        .snapshot_id = id,
        .parent_snapshot_id = id == 1 ? std::nullopt : std::optional<int64_t>(id - 1),
        .sequence_number = id,
        .timestamp_ms = kStart + id * kHour,
        .manifest_list = "memory://store/t/metadata/snap-" + std::to_string(id)};
    metadata = ApplyUpdates(&metadata,
                            {table_update::AddSnapshot{snapshot},
                             table_update::SetSnapshotRef{"main", {.snapshot_id = id}}},
                            snapshot.timestamp_ms)
                   .value()
                   .metadata;
  }
  return metadata;
}

TEST(SnapshotExpiryTest, AgeAndCountOfABranch) {
  const TableMetadata table = Chain(10);
  const int64_t now = kStart + 10 * kHour;
  using ::testing::ElementsAre;
  EXPECT_THAT(PlanExpiry(table, {.max_age_ms = 3 * kHour}, now).snapshot_ids,
              ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(PlanExpiry(table, {.max_age_ms = 0, .min_keep = 8}, now).snapshot_ids,
              ElementsAre(1, 2));
  EXPECT_THAT(PlanExpiry(table, {.max_age_ms = 100 * kHour, .max_count = 4}, now).snapshot_ids,
              ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_TRUE(PlanExpiry(table, {.max_age_ms = 3 * kHour, .batch = 7}, now).empty());
  // Above the count a whole batch goes at once.
  EXPECT_THAT(
      PlanExpiry(table, {.max_age_ms = 100 * kHour, .max_count = 9, .batch = 4}, now).snapshot_ids,
      ElementsAre(1, 2, 3, 4));
  // The head stays, however old.
  EXPECT_EQ(PlanExpiry(table, {.max_age_ms = 1}, now + 1000 * kHour).snapshot_ids.size(), 9U);
}

TEST(SnapshotExpiryTest, RefsAndTheirSettingsAreHonoured) {
  TableMetadata table = Chain(6);
  const int64_t now = kStart + 6 * kHour;
  table.refs["tag"] = {.snapshot_id = 2, .type = SnapshotRefType::kTag};
  table.refs["dev"] = {.snapshot_id = 4, .min_snapshots_to_keep = 2};
  table.refs["old"] = {
      .snapshot_id = 1, .type = SnapshotRefType::kTag, .max_ref_age_ms = 2 * kHour};
  const ExpiryPlan plan = PlanExpiry(table, {.max_age_ms = 1}, now);
  EXPECT_THAT(plan.snapshot_ids, ::testing::ElementsAre(1, 5));
  EXPECT_THAT(plan.refs, ::testing::ElementsAre("old"));
  ASSERT_OK_AND_ASSIGN(const UpdateResult result, ApplyUpdates(&table, UpdatesFor(plan), now));
  EXPECT_EQ(result.metadata.snapshots.size(), 4U);
  EXPECT_EQ(result.metadata.refs.size(), 3U);
}

class UnreachableFilesTest : public ::testing::Test {
 protected:
  DataFile File(const std::string& name) {
    DataFile file;
    file.file_path = "memory://store/t/data/" + name;
    file.record_count = 1;
    file.file_size_bytes = 1;
    return file;
  }

  void Commit(SnapshotUpdate update) {
    SnapshotProducer producer(std::move(update), {store_, cache_});
    now_ += 1000;
    const auto prepared = producer.Prepare(table_, now_);
    ASSERT_OK(prepared);
    const auto result = ApplyUpdates(&table_, prepared->updates, now_);
    ASSERT_OK(result);
    table_ = result->metadata;
  }

  TableMetadata Expire(std::vector<int64_t> ids) {
    return ApplyUpdates(&table_, {table_update::RemoveSnapshots{std::move(ids)}}, now_)
        .value()
        .metadata;
  }

  ManualClock clock_{FromMillis(kStart)};
  storage::MemoryStore store_{clock_};
  ManifestCache cache_;
  TableMetadata table_ = EmptyTable();
  int64_t now_ = kStart;
};

TEST_F(UnreachableFilesTest, OnlyWhatNoRemainingSnapshotHasGoes) {
  Commit({.added_data_files = {File("a"), File("b")}});
  const int64_t first = *table_.current_snapshot_id;
  Commit({.operation = SnapshotOperation::kOverwrite,
          .added_data_files = {File("c")},
          .removed_data_files = {File("a")}});
  const TableMetadata after = Expire({first});
  ASSERT_OK_AND_ASSIGN(const UnreachableFiles files,
                       FindUnreachableFiles(store_, cache_, table_, after));
  EXPECT_THAT(files.data_files, ::testing::ElementsAre(File("a").file_path));
  EXPECT_EQ(files.manifest_lists.size(), 1U);
  EXPECT_EQ(files.manifests.size(), 1U);
  ASSERT_OK_AND_ASSIGN(const auto referenced, ListReferencedFiles(store_, cache_, after, "m"));
  for (const std::string& gone : files.All()) {
    // "a" is still named, as deleted, by the snapshot that removed it.
    EXPECT_EQ(std::count(referenced.begin(), referenced.end(), gone),
              gone == File("a").file_path ? 1 : 0);
  }
}

TEST_F(UnreachableFilesTest, ATagKeepsItsFiles) {
  Commit({.added_data_files = {File("a")}});
  const int64_t first = *table_.current_snapshot_id;
  Commit({.operation = SnapshotOperation::kDelete, .removed_data_files = {File("a")}});
  const int64_t second = *table_.current_snapshot_id;
  Commit({.added_data_files = {File("b")}});
  const TableMetadata after = Expire({second});
  ASSERT_OK_AND_ASSIGN(const UnreachableFiles files,
                       FindUnreachableFiles(store_, cache_, table_, after));
  EXPECT_TRUE(files.data_files.empty());  // Snapshot `first` still has "a".
  EXPECT_NE(after.FindSnapshot(first), nullptr);
}

TEST_F(UnreachableFilesTest, AnUnreadableRemainingManifestDeletesNothing) {
  Commit({.added_data_files = {File("a"), File("b")}});
  const int64_t first = *table_.current_snapshot_id;
  Commit({.operation = SnapshotOperation::kDelete, .removed_data_files = {File("a")}});
  const TableMetadata after = Expire({first});
  ManifestCache cold;
  ASSERT_OK_AND_ASSIGN(const ManifestList list,
                       cold.ReadList(store_, after, *after.CurrentSnapshot()));
  for (const ManifestFile& manifest : *list) {
    ASSERT_OK(store_.Delete(KeyOf(store_, manifest.manifest_path).value()));
  }
  EXPECT_THAT(FindUnreachableFiles(store_, cold, table_, after), Fails(ErrorCode::kNotFound));
  table_.properties["gc.enabled"] = "false";
  ASSERT_OK_AND_ASSIGN(const UnreachableFiles files,
                       FindUnreachableFiles(store_, cold, table_, after));
  EXPECT_TRUE(files.data_files.empty());
}

}  // namespace
}  // namespace tarn::iceberg
