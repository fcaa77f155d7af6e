#include "tarn/iceberg/commit.h"

#include "tarn/storage/faulty_store.h"
#include "tarn/storage/memory_store.h"
#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

TEST(CommitTest, VersionsAreReadFromEveryKindOfName) {
  EXPECT_EQ(MetadataFileName(7, Uuid{}),
            "00007-00000000-0000-0000-0000-000000000000.metadata.json");
  EXPECT_EQ(MetadataVersionOf("s3://b/t/metadata/00012-abc.metadata.json"), 12);
  EXPECT_EQ(MetadataVersionOf("/t/metadata/v3.metadata.json"), 3);
  EXPECT_EQ(MetadataVersionOf("/t/metadata/00001-x.gz.metadata.json"), 1);
  EXPECT_EQ(MetadataVersionOf("/t/metadata/x.json"), -1);
  EXPECT_EQ(MetadataVersionOf(""), -1);
}

TableMetadata Table() {
  Schema schema;
  schema.fields = {{.id = 1, .name = "a", .type = Type::Long()}};
  return MakeTableMetadata({.table_uuid = "9c12d441-03fe-4693-9a96-a0705ddf69c1",
                            .location = "memory://store/t",
                            .schema = schema},
                           5)
      .value();
}

TEST(CommitTest, MetadataRoundTripsThroughAFile) {
  const ManualClock clock{FromMillis(5)};
  storage::MemoryStore store(clock);
  UuidGenerator uuids(clock);
  ASSERT_OK_AND_ASSIGN(const std::string first, WriteMetadata(store, Table(), "", uuids));
  EXPECT_TRUE(first.starts_with("memory://store/t/metadata/00000-"));
  ASSERT_OK_AND_ASSIGN(const std::string second, WriteMetadata(store, Table(), first, uuids));
  EXPECT_TRUE(second.starts_with("memory://store/t/metadata/00001-"));
  EXPECT_THAT(ReadTableMetadata(store, second), IsOkAndHolds(Table()));
  EXPECT_THAT(ReadTableMetadata(store, "memory://store/t/metadata/none"),
              FailsWith(ErrorCode::kNotFound,
                        "Failed to open input stream for file: memory://store/t/metadata/none"));
}

TEST(CommitTest, AnUnknownWriteIsAFailedOne) {
  const ManualClock clock{FromMillis(5)};
  storage::MemoryStore memory(clock);
  storage::FaultyStore store(memory, {.fail_at = 1,
                                      .mode = storage::FaultMode::kAfterEffect,
                                      .only = storage::StoreOperation::kClose});
  UuidGenerator uuids(clock);
  EXPECT_THAT(WriteMetadata(store, Table(), "", uuids), Fails(ErrorCode::kUnavailable));
}

}  // namespace
}  // namespace tarn::iceberg
