#include "tarn/transform/schema_plan.h"

#include <arrow/api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tarn::transform {
namespace {

using Type = std::shared_ptr<arrow::DataType>;

std::string ActionName(SchemaAction action) {
  static const char* const kNames[] = {"keep", "add",       "widen",   "narrow", "suffix",
                                       "drop", "leave out", "suspend", "stop"};
  static constexpr SchemaAction kActions[] = {
      SchemaAction::kKeep,     SchemaAction::kAdd,     SchemaAction::kWiden,
      SchemaAction::kNarrow,   SchemaAction::kSuffix,  SchemaAction::kDrop,
      SchemaAction::kLeaveOut, SchemaAction::kSuspend, SchemaAction::kStop};
  for (size_t i = 0; i < std::size(kActions); ++i) {
    if (kActions[i] == action) {
      return kNames[i];
    }
  }
  return "?";
}

/// Steps as "action column type", one per line.
std::string Plan(const arrow::FieldVector& table, const std::vector<MappedColumn>& mapped,
                 const SchemaPolicies& policies = {}, bool case_sensitive = false) {
  std::string out;
  for (const SchemaStep& step :
       PlanSchemaChange(*arrow::schema(table), mapped, policies, case_sensitive)) {
    out += ActionName(step.action) + " " + step.column + " " + step.type->ToString();
    out += step.suffixed_column.empty() ? "" : " -> " + step.suffixed_column;
    out += step.suffixed_exists ? " (there)\n" : "\n";
  }
  return out;
}

arrow::FieldVector Table(const std::string& name, const Type& type) {
  return {arrow::field(name, type)};
}

TEST(SchemaPlanTest, EqualColumnsStay) {
  EXPECT_EQ(Plan(Table("a", arrow::int64()), {{"A", arrow::int64()}}), "keep a int64\n");
  EXPECT_EQ(Plan(Table("a", arrow::int64()), {{"A", arrow::int64()}}, {}, true),
            "keep a int64\nstop A int64\n");
}

TEST(SchemaPlanTest, NewColumnsFollowTheirPolicy) {
  const std::vector<MappedColumn> mapped = {{"b", arrow::utf8()}};
  EXPECT_EQ(Plan({}, mapped), "add b string\n");
  EXPECT_EQ(Plan({}, mapped, {.add_column = SchemaPolicy::kIgnore}), "leave out b string\n");
  EXPECT_EQ(Plan({}, mapped, {.add_column = SchemaPolicy::kSuspendTable}), "suspend b string\n");
  EXPECT_EQ(Plan({}, mapped, {.add_column = SchemaPolicy::kStopTask}), "stop b string\n");
}

TEST(SchemaPlanTest, MissingColumnsFollowTheirPolicy) {
  EXPECT_EQ(Plan(Table("a", arrow::int32()), {}), "keep a int32\n");
  EXPECT_EQ(Plan(Table("a", arrow::int32()), {}, {.drop_column = SchemaPolicy::kApply}),
            "drop a int32\n");
  EXPECT_EQ(Plan(Table("a", arrow::int32()), {}, {.drop_column = SchemaPolicy::kStopTask}),
            "stop a int32\n");
}

TEST(SchemaPlanTest, WideningNeedsApply) {
  const SchemaPolicies apply = {.change_column_type = SchemaPolicy::kApply};
  EXPECT_EQ(Plan(Table("a", arrow::int32()), {{"a", arrow::int64()}}, apply), "widen a int64\n");
  EXPECT_EQ(Plan(Table("a", arrow::int32()), {{"a", arrow::int64()}}), "narrow a int32\n");
  EXPECT_EQ(Plan(Table("a", arrow::int64()), {{"a", arrow::int32()}}, apply), "keep a int64\n");
  EXPECT_EQ(Plan(Table("a", arrow::float32()), {{"a", arrow::float64()}}, apply),
            "widen a double\n");
  EXPECT_EQ(Plan(Table("a", arrow::decimal128(10, 2)), {{"a", arrow::decimal128(12, 2)}}, apply),
            "widen a decimal128(12, 2)\n");
  EXPECT_EQ(Plan(Table("a", arrow::decimal128(10, 2)), {{"a", arrow::decimal128(9, 1)}}, apply),
            "keep a decimal128(10, 2)\n");
  EXPECT_EQ(Plan(Table("a", arrow::decimal128(10, 2)), {{"a", arrow::decimal128(11, 1)}}, apply),
            "widen a decimal128(12, 2)\n");
}

TEST(SchemaPlanTest, WhatCannotWidenGoesToASuffixedColumn) {
  const SchemaPolicies apply = {.change_column_type = SchemaPolicy::kApply};
  EXPECT_EQ(Plan(Table("price", arrow::int32()), {{"price", arrow::utf8()}}, apply),
            "suffix price int32 -> price_string\n");
  EXPECT_EQ(
      Plan({arrow::field("price", arrow::int32()), arrow::field("price_string", arrow::utf8())},
           {{"price", arrow::utf8()}},
           {.change_column_type = SchemaPolicy::kApply, .drop_column = SchemaPolicy::kApply}),
      "suffix price int32 -> price_string (there)\n");
  // The one of an earlier type is no dropped column.
  EXPECT_EQ(
      Plan({arrow::field("price", arrow::int32()), arrow::field("price_double", arrow::float64())},
           {{"price", arrow::utf8()}},
           {.change_column_type = SchemaPolicy::kApply, .drop_column = SchemaPolicy::kStopTask}),
      "suffix price int32 -> price_string\nkeep price_double double\n");
  EXPECT_EQ(Plan(Table("a", arrow::decimal128(10, 2)), {{"a", arrow::decimal128(10, 4)}}, apply),
            "suffix a decimal128(10, 2) -> a_decimal_10_4\n");
  EXPECT_EQ(Plan(Table("price", arrow::int32()),
                 {{"price", arrow::utf8()}, {"Price_String", arrow::utf8()}}, apply),
            "suffix price int32 -> price_string_2\nadd Price_String string\n");
  EXPECT_EQ(Plan({arrow::field("a", arrow::utf8()), arrow::field("a_list", arrow::int32())},
                 {{"a", arrow::list(arrow::int32())}}, apply),
            "suffix a string -> a_list_2\nkeep a_list int32\n");
  EXPECT_EQ(Plan(Table("price", arrow::int32()), {{"price", arrow::utf8()}},
                 {.change_column_type = SchemaPolicy::kSuspendTable}),
            "suspend price int32\n");
  EXPECT_EQ(Plan(Table("price", arrow::int32()), {{"price", arrow::utf8()}}),
            "narrow price int32\n");
}

TEST(SchemaPlanTest, StructsGrowByMembers) {
  const auto one = arrow::struct_({arrow::field("x", arrow::int32())});
  const auto two =
      arrow::struct_({arrow::field("y", arrow::utf8()), arrow::field("X", arrow::int32())});
  EXPECT_EQ(Plan(Table("s", one), {{"s", two}}), "widen s struct<x: int32, y: string>\n");
  EXPECT_EQ(Plan(Table("s", one), {{"s", two}}, {.add_struct_field = SchemaPolicy::kIgnore}),
            "keep s struct<x: int32>\n");
  EXPECT_EQ(Plan(Table("s", two), {{"s", one}}), "keep s struct<y: string, X: int32>\n");
  const auto wide = arrow::struct_({arrow::field("x", arrow::int64())});
  EXPECT_EQ(Plan(Table("s", one), {{"s", wide}}), "narrow s struct<x: int32>\n");
  EXPECT_EQ(Plan(Table("s", arrow::list(arrow::field("element", one))),
                 {{"s", arrow::list(arrow::field("element", two))}}),
            "widen s list<element: struct<x: int32, y: string>>\n");
}

TEST(SchemaPlanTest, CanWiden) {
  EXPECT_TRUE(CanWiden(*arrow::int32(), *arrow::int64()));
  EXPECT_FALSE(CanWiden(*arrow::int64(), *arrow::int32()));
  EXPECT_FALSE(CanWiden(*arrow::int32(), *arrow::float64()));
  EXPECT_TRUE(CanWiden(*arrow::map(arrow::utf8(), arrow::int32()),
                       *arrow::map(arrow::utf8(), arrow::int64())));
  EXPECT_FALSE(CanWiden(*arrow::map(arrow::int32(), arrow::int32()),
                        *arrow::map(arrow::int64(), arrow::int32())));
  EXPECT_FALSE(CanWiden(*arrow::date32(), *arrow::timestamp(arrow::TimeUnit::MICRO)));
}

}  // namespace
}  // namespace tarn::transform
