#include "tarn/iceberg/update/manifest_merge.h"

#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

ManifestFile Manifest(int32_t files, int64_t length, int32_t spec_id = 0) {
  return {.manifest_length = length,
          .partition_spec_id = spec_id,
          .added_files_count = files,
          .existing_files_count = 0};
}

TEST(ManifestMergeTest, TiersAreMergedWhenFull) {
  const MergeOptions options{.min_count = 3};
  using Groups = std::vector<std::vector<size_t>>;
  EXPECT_TRUE(PlanManifestMerge({Manifest(1, 10), Manifest(1, 10)}, options, false).empty());
  EXPECT_EQ(PlanManifestMerge({Manifest(1, 10), Manifest(50, 10), Manifest(2, 10), Manifest(1, 10)},
                              options, false),
            (Groups{{0, 2, 3}}));
  EXPECT_TRUE(
      PlanManifestMerge({Manifest(1, 10), Manifest(1, 10, 1), Manifest(1, 10, 2)}, options, false)
          .empty());
  EXPECT_EQ(PlanManifestMerge({Manifest(1, 10), Manifest(50, 10)}, options, true),
            (Groups{{0, 1}}));
}

TEST(ManifestMergeTest, MergedOnesStayBelowTheTarget) {
  const MergeOptions options{.target_bytes = 100, .min_count = 2};
  const auto groups = PlanManifestMerge(
      {Manifest(1, 60), Manifest(1, 60), Manifest(1, 30), Manifest(1, 90)}, options, false);
  EXPECT_EQ(groups, (std::vector<std::vector<size_t>>{{1, 2}}));
}

}  // namespace
}  // namespace tarn::iceberg
