#include "tarn/source/kafka/read_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tarn::source::kafka {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ReadAheadTest, IsDueAfterAThirdOfTheBytes) {
  ReadAhead ahead(300, 1000);
  ahead.Took(4, 60);
  ahead.Took(4, 30);
  EXPECT_THAT(ahead.TakeDue(), IsEmpty());
  ahead.Took(2, 10);
  EXPECT_THAT(ahead.TakeDue(), ElementsAre(4, 2));
  EXPECT_THAT(ahead.TakeDue(), IsEmpty());
}

TEST(ReadAheadTest, IsDueAfterAThirdOfTheMessages) {
  ReadAhead ahead(1 << 20, 6);
  ahead.Took(0, 0);
  EXPECT_THAT(ahead.TakeDue(), IsEmpty());
  ahead.Took(0, 0);
  EXPECT_THAT(ahead.TakeDue(), ElementsAre(0));
}

TEST(ReadAheadTest, CountsAnew) {
  ReadAhead ahead(30, 100);
  ahead.Took(0, 25);
  EXPECT_THAT(ahead.TakeDue(), ElementsAre(0));
  ahead.Took(1, 9);
  EXPECT_THAT(ahead.TakeDue(), IsEmpty());
  ahead.Took(1, 1);
  EXPECT_THAT(ahead.TakeDue(), ElementsAre(1));
}

TEST(ReadAheadTest, NamesSomeOfManyPartitions) {
  ReadAhead ahead(3000, 0);
  for (uint32_t partition = 0; partition < 1000; ++partition) {
    ahead.Took(partition, 1);
  }
  EXPECT_THAT(ahead.TakeDue(), SizeIs(ReadAhead::kPartitionsMax));
}

TEST(ReadAheadTest, IsNeverDueWithoutALimit) {
  ReadAhead ahead(0, 0);
  ahead.Took(0, 1 << 30);
  EXPECT_THAT(ahead.TakeDue(), IsEmpty());
}

}  // namespace
}  // namespace tarn::source::kafka
