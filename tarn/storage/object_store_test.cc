#include "tarn/storage/object_store.h"

#include "tarn/storage/faulty_store.h"
#include "tarn/storage/memory_store.h"
#include "test/support/matchers.h"

namespace tarn::storage {
namespace {

class ObjectStoreTest : public ::testing::Test {
 protected:
  SystemClock clock_;
  MemoryStore store_{clock_, "file:///home/me/warehouse"};
};

TEST_F(ObjectStoreTest, UrisAndKeysAreTwoNamesOfOneThing) {
  EXPECT_EQ(UriOf(store_, "db/t/x.parquet"), "file:///home/me/warehouse/db/t/x.parquet");
  for (const char* uri : {"file:///home/me/warehouse/db/t", "file:/home/me/warehouse/db/t",
                          "/home/me/warehouse/db/t", "file://localhost/home/me/warehouse/db/t"}) {
    EXPECT_THAT(KeyOf(store_, uri), IsOkAndHolds(std::string("db/t"))) << uri;
  }
}

TEST_F(ObjectStoreTest, UrisOutsideTheStoreAreRefused) {
  for (const char* uri : {"", "file:///home/me/warehouse", "file:///home/me/warehouse/",
                          "file:///home/me/warehouse2/a", "file:///etc/passwd",
                          "file:///home/me/warehouse/../secret", "s3://home/me/warehouse/a"}) {
    EXPECT_THAT(KeyOf(store_, uri), Fails(ErrorCode::kInvalidArgument)) << uri;
  }
  const MemoryStore bucket(clock_, "s3://bucket/root");
  EXPECT_THAT(KeyOf(bucket, "s3://bucket/root/a"), IsOkAndHolds(std::string("a")));
  EXPECT_THAT(KeyOf(bucket, "s3a://bucket/root/a"), IsOkAndHolds(std::string("a")));
  EXPECT_THAT(KeyOf(bucket, "s3x://bucket/root/a"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(KeyOf(bucket, "s3://bucket/roots/a"), Fails(ErrorCode::kInvalidArgument));
}

TEST_F(ObjectStoreTest, AFailedWriteLeavesNothing) {
  for (int64_t n = 1; n <= 3; ++n) {
    FaultyStore faulty(store_, {.fail_at = n, .mode = FaultMode::kShortWrite});
    EXPECT_FALSE(WriteObject(faulty, "a", "0123456789", WriteMode::kOverwrite).ok());
    EXPECT_TRUE(faulty.failed());
    EXPECT_EQ(store_.object_count(), 0u);
  }
}

}  // namespace
}  // namespace tarn::storage
