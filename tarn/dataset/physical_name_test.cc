#include "tarn/dataset/physical_name.h"

#include "test/support/matchers.h"

namespace tarn::dataset {
namespace {

constexpr const char* kDataset = "11111111-2222-3333-4444-555555555555";
// 2026-01-31T12:00:00Z as a v7 identifier.
constexpr const char* kFile = "019c13ec-9e00-7000-8000-000000000001";

std::string NameFor(std::string_view path) {
  return PhysicalName({.uuid = Uuid::Parse(kDataset).value()}, Uuid::Parse(kFile).value(), path);
}

TEST(PhysicalNameTest, HoldsDatasetDayAndExtension) {
  EXPECT_EQ(NameFor("a/b.parquet"), std::string(kDataset) + "/2026/01/31/" + kFile + ".parquet");
}

TEST(PhysicalNameTest, LogicalNamesNeverShowBeyondAPlainExtension) {
  const std::string bare = std::string(kDataset) + "/2026/01/31/" + kFile;
  for (const char* path : {"x", "a.b/c", ".hidden", "x.", "x.c v", "x.\xC3\xA4", "x.a%2Fb",
                           "x.aaaaaaaaaaaaaaaaaaaaaaaa"}) {
    EXPECT_EQ(NameFor(path), bare) << path;
  }
  EXPECT_EQ(NameFor("x.tar.gz"), bare + ".gz");
}

}  // namespace
}  // namespace tarn::dataset
