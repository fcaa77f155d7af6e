#include "tarn/base/strong_id.h"

#include <type_traits>
#include <unordered_set>

#include "test/support/matchers.h"

namespace tarn {
namespace {

using SnapshotId = StrongId<struct SnapshotIdTag>;
using SchemaId = StrongId<struct SchemaIdTag, int32_t>;

static_assert(!std::is_convertible_v<SnapshotId, SchemaId>);
static_assert(!std::is_convertible_v<int64_t, SnapshotId>);

TEST(StrongIdTest, ComparesAndHashesByValue) {
  EXPECT_EQ(SnapshotId{3}, SnapshotId{3});
  EXPECT_LT(SnapshotId{2}, SnapshotId{3});
  EXPECT_EQ((std::unordered_set<SchemaId>{{1}, {2}, {1}}).size(), 2u);
  EXPECT_EQ(SnapshotId{}.value, 0);
}

}  // namespace
}  // namespace tarn
