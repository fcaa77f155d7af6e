#include "tarn/storage/memory_store.h"

#include "test/support/matchers.h"

namespace tarn::storage {
namespace {

TEST(MemoryStoreTest, TakesTimesFromItsClockAndCountsLists) {
  const ManualClock clock(FromMicros(5));
  MemoryStore store(clock);
  ASSERT_OK_AND_ASSIGN(const ObjectMeta meta, WriteObject(store, "a", "x", WriteMode::kOverwrite));
  EXPECT_EQ(meta.modified, FromMicros(5));
  EXPECT_OK(store.List({}));
  EXPECT_EQ(store.list_count(), 1);
}

TEST(MemoryStoreTest, AnObjectMayBeAFolderToo) {
  const SystemClock clock;
  MemoryStore store(clock);
  EXPECT_OK(WriteObject(store, "a", "x", WriteMode::kOverwrite));
  EXPECT_OK(WriteObject(store, "a/b", "y", WriteMode::kOverwrite));
  EXPECT_EQ(store.object_count(), 2u);
}

}  // namespace
}  // namespace tarn::storage
