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

TEST(PhysicalNameTest, OnlyItsOwnNamesHaveATime) {
  const DatasetRid dataset{.uuid = Uuid::Parse(kDataset).value()};
  const std::string name = NameFor("x.parquet");
  ASSERT_TRUE(PhysicalNameTime(dataset, name).has_value());
  EXPECT_EQ(FormatTimestamp(*PhysicalNameTime(dataset, name)).substr(0, 10), "2026-01-31");
  EXPECT_TRUE(PhysicalNameTime(dataset, NameFor("x")).has_value());
  std::string other = name;
  other[0] = other[0] == '0' ? '1' : '0';
  std::string wrong_day = name;
  wrong_day.replace(37, 4, "2025");
  for (const std::string& foreign :
       {other, wrong_day, name + "/x", name + ".tmp~", name.substr(0, 60), std::string(kDataset),
        std::string("metadata/x"), std::string()}) {
    EXPECT_FALSE(PhysicalNameTime(dataset, foreign).has_value()) << foreign;
  }
}

TEST(PhysicalNameTest, LocationsAreStoredShorterAndComeBack) {
  const std::string name = NameFor("x.parquet");
  EXPECT_EQ(ShortenLocation(name).size(), 44U + 8U);
  std::string short_name = ShortenLocation(NameFor("x"));
  for (const std::string& location :
       {name, NameFor("x"), std::string("at/a"), std::string("s3://b/k"), std::string("~"),
        std::string("~~x"), short_name, name + "/x", std::string(60, '~'), std::string()}) {
    std::string back = "something else";
    AssignLocation(ShortenLocation(location), back);
    EXPECT_EQ(back, location);
  }
}

}  // namespace
}  // namespace tarn::dataset
