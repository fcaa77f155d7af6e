#include "tarn/iceberg/manifest_cache.h"

#include "tarn/iceberg/manifest_avro.h"
#include "tarn/storage/memory_store.h"
#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

class ManifestCacheTest : public ::testing::Test {
 protected:
  ManifestFile Write(const std::string& name) {
    Schema schema;
    schema.fields = {{.id = 1, .name = "a", .type = Type::Long()}};
    ManifestEntry entry;
    entry.data_file.file_path = "memory://store/" + name + ".parquet";
    EncodedManifest encoded = EncodeManifest({.schema = schema}, 1, {entry}).value();
    EXPECT_OK(WriteObject(store_, name, encoded.bytes, storage::WriteMode::kOverwrite));
    encoded.file.manifest_path = "memory://store/" + name;
    encoded.file.sequence_number = 4;
    return encoded.file;
  }

  ManualClock clock_{FromMillis(1)};
  storage::MemoryStore store_{clock_};
  TableMetadata metadata_{.partition_specs = {{.spec_id = 0}}};
};

TEST_F(ManifestCacheTest, AFileIsReadOnce) {
  ManifestCache cache;
  const ManifestFile manifest = Write("m");
  ASSERT_OK_AND_ASSIGN(const ManifestEntries first,
                       cache.ReadManifest(store_, metadata_, manifest));
  EXPECT_EQ((*first)[0].sequence_number, 4);
  ASSERT_OK(store_.Delete("m"));
  ASSERT_OK_AND_ASSIGN(const ManifestEntries second,
                       cache.ReadManifest(store_, metadata_, manifest));
  EXPECT_EQ(first, second);
  EXPECT_GT(cache.size_bytes(), 0U);
}

TEST_F(ManifestCacheTest, TheLeastRecentlyUsedGoes) {
  ManifestCache probe;
  const ManifestFile a = Write("a");
  const ManifestFile b = Write("b");
  const ManifestFile c = Write("c");
  ASSERT_OK(probe.ReadManifest(store_, metadata_, a));
  ManifestCache cache({.size_bytes_max = probe.size_bytes() * 2});
  for (const ManifestFile& manifest : {a, b, a, c}) {
    ASSERT_OK(cache.ReadManifest(store_, metadata_, manifest));
  }
  EXPECT_LE(cache.size_bytes(), probe.size_bytes() * 2);
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_OK(store_.Delete(key));
  }
  EXPECT_OK(cache.ReadManifest(store_, metadata_, a));
  EXPECT_THAT(cache.ReadManifest(store_, metadata_, b), Fails(ErrorCode::kNotFound));
}

TEST_F(ManifestCacheTest, ErrorsNameTheFile) {
  ManifestCache cache;
  ManifestFile manifest = Write("m");
  ASSERT_OK(WriteObject(store_, "m", "not avro", storage::WriteMode::kOverwrite));
  EXPECT_THAT(cache.ReadManifest(store_, metadata_, manifest),
              FailsWith(ErrorCode::kCorruption, "memory://store/m"));
  manifest.partition_spec_id = 7;
  EXPECT_THAT(cache.ReadManifest(store_, metadata_, manifest),
              FailsWith(ErrorCode::kCorruption, "spec 7"));
}

}  // namespace
}  // namespace tarn::iceberg
