#include "tarn/transform/array_path.h"

#include <gtest/gtest.h>

#include "test/support/matchers.h"

namespace tarn::transform {
namespace {

std::string Replaced(std::string_view text) {
  ArrayPaths paths({"items", "a", "we ird", "orders", "int_col"});
  return paths.Replace(text);
}

TEST(ArrayPathTest, PathsBecomeElementColumns) {
  EXPECT_EQ(Replaced("items[].sku"), "\"tarn:element0\".sku");
  EXPECT_EQ(Replaced("items[]"), "\"tarn:element0\"");
  EXPECT_EQ(Replaced("upper(Items[].sku) || ITEMS[].x"),
            "upper(\"tarn:element0\".sku) || \"tarn:element0\".x");
  EXPECT_EQ(Replaced("a.b.c[].d.e + 1"), "\"tarn:element0\".d.e + 1");
  EXPECT_EQ(Replaced("\"we ird\"[].x"), "\"tarn:element0\".x");
  EXPECT_EQ(Replaced("${we ird}[].\"x y\""), "\"tarn:element0\".\"x y\"");
  EXPECT_EQ(Replaced("orders[].lines[].sku"), "\"tarn:element1\".sku");
  EXPECT_EQ(Replaced("orders[].id || orders[].lines[].sku || orders[].x"),
            "\"tarn:element0\".id || \"tarn:element1\".sku || \"tarn:element0\".x");
}

TEST(ArrayPathTest, EverythingElseStays) {
  for (const char* text :
       {"items[1].sku", "coalesce(items, [])", "'items[].x'", "-- items[]\na", "/* items[] */ a",
        "x::INT[]", "CAST(a AS items[])", "a::items[]", "unknown[].x", "a.b", "", "\"open", "it''s",
        "items [1:2]", "1.5", "a -> 'b'"}) {
    EXPECT_EQ(Replaced(text), text);
  }
}

TEST(ArrayPathTest, NestedArraysArePlannedOuterFirst) {
  ArrayPaths paths({"orders"});
  paths.Replace("orders[].lines[].sku");
  ASSERT_OK_AND_ASSIGN(const auto levels, paths.Plan(false));
  ASSERT_EQ(levels.size(), 2U);
  EXPECT_EQ(levels[0], (ArrayLevel{"orders[]", "", {"orders"}, "tarn:element0"}));
  EXPECT_EQ(levels[1], (ArrayLevel{"orders[].lines[]", "orders[]", {"lines"}, "tarn:element1"}));
  EXPECT_THAT(paths.Plan(true), FailsWith(ErrorCode::kInvalidArgument, "orders[].lines[]"));
}

TEST(ArrayPathTest, TwoArraysNeedZip) {
  ArrayPaths paths({"a", "b"});
  paths.Replace("a[].x + b[].y");
  EXPECT_THAT(paths.Plan(false), FailsWith(ErrorCode::kInvalidArgument, "a[] and b[]"));
  ASSERT_OK_AND_ASSIGN(const auto levels, paths.Plan(true));
  EXPECT_EQ(levels.size(), 2U);
  ArrayPaths siblings({"o"});
  siblings.Replace("o[].x[] || o[].y[]");
  EXPECT_THAT(siblings.Plan(false), FailsWith(ErrorCode::kInvalidArgument, "o[].x[] and o[].y[]"));
  ArrayPaths deep({"o"});
  deep.Replace("o[].x[].y[]");
  EXPECT_THAT(deep.Plan(false), FailsWith(ErrorCode::kInvalidArgument, "two deep"));
}

}  // namespace
}  // namespace tarn::transform
