#include "tarn/transform/mapping.h"

#include <sstream>

#include <arrow/api.h>
#include <arrow/extension/uuid.h>
#include <arrow/json/from_string.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tarn/base/arrow_status.h"
#include "tarn/engine/row_writer.h"
#include "tarn/transform/outcome.h"
#include "test/support/matchers.h"

namespace tarn::transform {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What became of a batch.
struct Outcome {
  std::string good;      // The mapped columns as JSON lines.
  std::string hidden;    // tarn_row, tarn_element, tarn_before, tarn_delete … as JSON lines.
  std::string rejected;  // "row.element code text" lines.
  std::vector<RejectedRow> rows;
  OutcomeCounts counts;
  CompiledMapping mapping;
};

class MappingTest : public ::testing::Test {
 protected:
  MappingTest() {
    engine_ = std::move(engine::Engine::Open({})).value();
    session_ = std::move(engine_->OpenSession()).value();
  }

  /// Compiles and runs a mapping over rows given as JSON.
  Result<Outcome> Run(MappingSpec spec, const arrow::FieldVector& landed, std::string_view rows,
                      const std::vector<ColumnFit>& fits = {}) {
    if (spec.target.empty()) {
      spec.target = "orders";
    }
    if (spec.key.empty()) {
      spec.mode = Mode::kAppend;
    }
    Outcome out;
    TARN_ASSIGN_OR_RETURN(out.mapping,
                          CompileMapping(*session_, spec, *arrow::schema(landed), fits));
    TARN_RETURN_IF_ERROR(Register(landed, rows));
    TARN_ASSIGN_OR_RETURN(const auto stream, session_->Query(out.mapping.sql));
    if (!stream->schema()->Equals(*out.mapping.result)) {
      return Status::Internal("result is " + stream->schema()->ToString());
    }
    while (true) {
      TARN_ASSIGN_OR_RETURN(const auto batch, stream->Next());
      if (batch == nullptr) {
        break;
      }
      TARN_ASSIGN_OR_RETURN(MappedBatch mapped, SplitOutcome(out.mapping, *batch));
      TARN_RETURN_IF_ERROR(mapped.good->ValidateFull());
      const int columns = static_cast<int>(out.mapping.columns.size());
      out.good += Lines(*mapped.good, 0, columns);
      out.hidden += Lines(*mapped.good, columns, mapped.good->num_columns());
      AddCounts(mapped.counts, out.counts);
      out.rows.insert(out.rows.end(), mapped.rejected.begin(), mapped.rejected.end());
    }
    TARN_RETURN_IF_ERROR(ReadLanded(*session_, out.rows));
    for (const RejectedRow& row : out.rows) {
      out.rejected += std::to_string(row.row) + "." + std::to_string(row.element) + " " + row.code +
                      " " + row.text + "\n";
    }
    return out;
  }

  Status Register(const arrow::FieldVector& landed, std::string_view rows) {
    TARN_ASSIGN_OR_RETURN(const auto array,
                          arrow::json::ArrayFromJSONString(arrow::struct_(landed), rows));
    TARN_ASSIGN_OR_RETURN(auto batch, arrow::RecordBatch::FromStructArray(array));
    arrow::Int64Builder numbers;
    for (int64_t i = 0; i < batch->num_rows(); ++i) {
      TARN_RETURN_IF_ERROR(numbers.Append(i));
    }
    TARN_ASSIGN_OR_RETURN(batch,
                          batch->AddColumn(batch->num_columns(), "tarn_row", *numbers.Finish()));
    return session_->RegisterBatches("tarn_input", batch->schema(), {batch});
  }

  static std::string Lines(const arrow::RecordBatch& batch, int begin, int end) {
    std::string out;
    for (int64_t row = 0; row < batch.num_rows(); ++row) {
      for (int i = begin; i < end; ++i) {
        out += i > begin ? " " : "";
        EXPECT_TRUE(engine::AppendJsonValue(*batch.column(i), row, out).ok());
      }
      out += "\n";
    }
    return out;
  }

  Status Failure(MappingSpec spec, const arrow::FieldVector& landed) {
    return StatusOf(Run(std::move(spec), landed, "[]"));
  }

  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::Session> session_;
};

std::shared_ptr<arrow::Field> F(const std::string& name,
                                const std::shared_ptr<arrow::DataType>& type) {
  return arrow::field(name, type);
}
std::shared_ptr<arrow::DataType> ListOf(const std::shared_ptr<arrow::DataType>& type) {
  return arrow::list(arrow::field("element", type));
}

std::string Columns(const CompiledMapping& mapping) {
  std::string out;
  for (const MappedColumn& column : mapping.columns) {
    out += (out.empty() ? "" : ", ") + column.name + " " + column.type->ToString();
  }
  return out;
}

const arrow::FieldVector kOrder = {
    F("id", arrow::int64()), F("price", arrow::utf8()), F("Region", arrow::utf8()),
    F("hdr__event_timestamp", arrow::timestamp(arrow::TimeUnit::MICRO, "UTC"))};

TEST_F(MappingTest, LandedColumnsGoThroughWithoutHeaders) {
  ASSERT_OK_AND_ASSIGN(
      const Outcome out,
      Run({.key = {"id"}}, kOrder,
          R"([{"id": 1, "price": "2.50", "Region": "EU", "hdr__event_timestamp": 0},
                               {"id": 2, "price": null, "hdr__event_timestamp": 1}])"));
  EXPECT_EQ(Columns(out.mapping), "id int64, price string, Region string");
  EXPECT_EQ(out.good, "1 \"2.50\" \"EU\"\n2 null null\n");
  EXPECT_EQ(out.hidden,
            "0 0 false false null \"1970-01-01T00:00:00.000000Z\"\n"
            "1 0 false false null \"1970-01-01T00:00:00.000001Z\"\n");
  EXPECT_THAT(out.mapping.key_columns, ElementsAre(0));
  EXPECT_THAT(out.mapping.passed_columns, ElementsAre("hdr__event_timestamp"));
  EXPECT_EQ(out.counts, (OutcomeCounts{.good = 2}));
}

TEST_F(MappingTest, ColumnsReplaceInPlaceAndAdd) {
  ASSERT_OK_AND_ASSIGN(
      const Outcome out,
      Run({.columns = {{"PRICE", "price::DECIMAL(10,2) * 2"},
                       {"zone", "lower(${Region})"},
                       {"seen", "hdr__event_timestamp"}}},
          kOrder, R"([{"id": 1, "price": "2.50", "Region": "EU", "hdr__event_timestamp": 0}])"));
  EXPECT_EQ(Columns(out.mapping),
            "id int64, PRICE decimal128(18, 2), Region string, zone string, seen timestamp[us, "
            "tz=UTC]");
  EXPECT_EQ(out.good, "1 5.00 \"EU\" \"eu\" \"1970-01-01T00:00:00.000000Z\"\n");
}

TEST_F(MappingTest, OnlyDropAndRename) {
  ASSERT_OK_AND_ASSIGN(const Outcome only,
                       Run({.columns = {{"zone", "Region"}, {"id", ""}}, .only = true}, kOrder,
                           R"([{"id": 1, "price": "x", "Region": "EU"}])"));
  EXPECT_EQ(only.good, "\"EU\" 1\n");
  ASSERT_OK_AND_ASSIGN(const Outcome rest,
                       Run({.drop = {"PR%", "nothing%"}, .rename = {{"region", "zone"}}}, kOrder,
                           R"([{"id": 1, "price": "x", "Region": "EU"}])"));
  EXPECT_EQ(Columns(rest.mapping), "id int64, zone string");
}

TEST_F(MappingTest, FailedExpressionsRejectTheRowAlone) {
  ASSERT_OK_AND_ASSIGN(const Outcome out,
                       Run({.columns = {{"price", "CAST(price AS INTEGER) + 1"}}}, kOrder,
                           R"([{"id": 1, "price": "2"}, {"id": 2, "price": "two"},
                               {"id": 3, "price": null}])"));
  EXPECT_EQ(out.good, "1 3 null\n3 null null\n");
  EXPECT_EQ(out.rejected, "1.0 expression_failed columns.price: the expression failed\n");
  ASSERT_EQ(out.rows.size(), 1U);
  EXPECT_EQ(out.rows[0].landed_json,
            R"({"id":2,"price":"two","Region":null,"hdr__event_timestamp":null})");
  EXPECT_EQ(out.counts, (OutcomeCounts{.good = 2, .rejected = 1}));
}

TEST_F(MappingTest, FailedCastsRejectOrBecomeNull) {
  const std::string rows = R"([{"id": 1, "price": "2.5"}, {"id": 2, "price": "two"},
                               {"id": 3, "price": "2.555"}, {"id": 4, "price": null}])";
  MappingSpec spec = {.columns = {{"price", "", "decimal(10,2)"}}};
  ASSERT_OK_AND_ASSIGN(const Outcome rejecting, Run(spec, kOrder, rows));
  EXPECT_EQ(rejecting.good, "1 2.50 null\n4 null null\n");
  EXPECT_EQ(rejecting.rejected,
            "1.0 cast_failed columns.price: two is no decimal128(10, 2)\n"
            "2.0 cast_failed columns.price: 2.555 is no decimal128(10, 2)\n");
  spec.on_cast_error = OnCastError::kNull;
  ASSERT_OK_AND_ASSIGN(const Outcome nulling, Run(spec, kOrder, rows));
  EXPECT_EQ(nulling.good, "1 2.50 null\n2 null null\n3 null null\n4 null null\n");
  EXPECT_EQ(nulling.counts, (OutcomeCounts{.good = 4, .null_casts = 2}));
}

TEST_F(MappingTest, NullKeysAreRejectedUnlessAllowed) {
  const std::string rows = R"([{"id": null, "price": "1"}, {"id": 1, "price": "2"}])";
  ASSERT_OK_AND_ASSIGN(const Outcome out, Run({.key = {"id"}}, kOrder, rows));
  EXPECT_EQ(out.rejected, "0.0 null_key key: column id is NULL\n");
  ASSERT_OK_AND_ASSIGN(const Outcome allowed,
                       Run({.key = {"ID"}, .null_keys = NullKeys::kAllow}, kOrder, rows));
  EXPECT_EQ(allowed.counts.good, 2);
}

TEST_F(MappingTest, ExpectationsActAsTold) {
  MappingSpec spec = {.expect = {{"warned", "id < 3", ExpectAction::kWarn},
                                 {"dropped", "id <> 4", ExpectAction::kDrop},
                                 {"rejected", "id <> 5", ExpectAction::kReject},
                                 {"broken", "price::INT > 0", ExpectAction::kWarn}}};
  const std::string rows = R"([{"id": 1, "price": "1"}, {"id": 3, "price": "1"},
                               {"id": 4, "price": "1"}, {"id": 5, "price": "1"},
                               {"id": null, "price": "1"}, {"id": 2, "price": "x"}])";
  ASSERT_OK_AND_ASSIGN(const Outcome out, Run(spec, kOrder, rows));
  EXPECT_EQ(out.good, "1 \"1\" null\n3 \"1\" null\nnull \"1\" null\n");
  EXPECT_EQ(out.rejected,
            "3.0 expectation_failed expect.rejected: the check is false\n"
            "5.0 expression_failed expect.broken: the expression failed\n");
  EXPECT_EQ(out.counts,
            (OutcomeCounts{.good = 3,
                           .rejected = 2,
                           .dropped = 1,
                           .warnings = {{"warned", 1}},
                           .null_checks = {{"warned", 1}, {"dropped", 1}, {"rejected", 1}}}));
  spec.expect = {{"stopped", "id < 3", ExpectAction::kStop}};
  EXPECT_THAT(Run(spec, kOrder, rows), FailsWith(ErrorCode::kFailedPrecondition, "stopped"));
  EXPECT_THAT(Run(spec, kOrder, R"([{"id": 1}])"), IsOk());
}

TEST_F(MappingTest, WhereLeavesOutWhatIsNotTrue) {
  ASSERT_OK_AND_ASSIGN(
      const Outcome out,
      Run({.columns = {{"n", "price::INT"}}, .where = "id > 1 AND price::INT > 0 -- comment"},
          kOrder,
          R"([{"id": 1, "price": "x"}, {"id": 2, "price": "5"}, {"id": null, "price": "1"},
              {"id": 4, "price": "x"}, {"id": 5, "price": "-1"}])"));
  EXPECT_EQ(out.good, "2 \"5\" null 5\n");
  EXPECT_THAT(out.rejected, HasSubstr("3.0 expression_failed where"));
}

TEST_F(MappingTest, DeleteSequenceAndEventTime) {
  ASSERT_OK_AND_ASSIGN(
      const Outcome out,
      Run({.columns = {{"gone", "price = 'x'"}},
           .only = false,
           .key = {"id"},
           .delete_when = "gone",
           .sequence_by = "id * 10",
           .event_time = "CASE WHEN id = 1 THEN '2026-01-31T00:00:00+01:00' END"},
          {F("id", arrow::int32()), F("price", arrow::utf8())},
          R"([{"id": 1, "price": "x"}, {"id": 2, "price": "y"}, {"id": 3, "price": null}])"));
  EXPECT_EQ(out.hidden,
            "0 0 false true \"2026-01-30T23:00:00.000000Z\" 10\n1 0 false false null 20\n2 0 false "
            "false null 30\n");
  ASSERT_NE(out.mapping.sequence_type, nullptr);
}

TEST_F(MappingTest, MappedNamesHideLandedOnesInLaterKeys) {
  ASSERT_OK_AND_ASSIGN(const Outcome out,
                       Run({.columns = {{"id", "id + 100"}, {"label", "price"}},
                            .drop = {"price"},
                            .expect = {{"mapped", "id > 100", ExpectAction::kReject},
                                       {"landed", "price <> 'x'", ExpectAction::kReject}}},
                           kOrder, R"([{"id": 1, "price": "y"}, {"id": 2, "price": "x"}])"));
  EXPECT_EQ(out.good, "101 null \"y\"\n");
  EXPECT_THAT(out.rejected, HasSubstr("expect.landed"));
}

const auto kCustomer = arrow::struct_(
    {F("name", arrow::utf8()),
     F("address", arrow::struct_({F("city", arrow::utf8()), F("zip", arrow::int8())}))});

TEST_F(MappingTest, StructsAreExpandedOrKept) {
  const arrow::FieldVector landed = {F("id", arrow::int32()), F("c", kCustomer)};
  const std::string rows = R"([{"id": 1, "c": {"name": "n", "address": {"city": "x", "zip": 7}}},
                               {"id": 2, "c": null}])";
  ASSERT_OK_AND_ASSIGN(const Outcome out, Run({.columns = {{"home", "c.address"}},
                                               .drop = {"c_name"},
                                               .rename = {{"c_address_zip", "zip"}}},
                                              landed, rows));
  EXPECT_EQ(Columns(out.mapping),
            "id int32, c_address_city string, zip int32, home_city string, home_zip int32");
  EXPECT_EQ(out.good, "1 \"x\" 7 \"x\" 7\n2 null null null null\n");
  ASSERT_OK_AND_ASSIGN(const Outcome kept, Run({.nested = Nesting::kKeep}, landed, rows));
  EXPECT_EQ(Columns(kept.mapping),
            "id int32, c struct<name: string, address: struct<city: string, zip: int32>>");
  EXPECT_EQ(kept.good, "1 {\"name\":\"n\",\"address\":{\"city\":\"x\",\"zip\":7}}\n2 null\n");
}

TEST_F(MappingTest, WhatHasNoTypeYetIsNoColumn) {
  const arrow::FieldVector landed = {
      F("id", arrow::int32()), F("a%", arrow::utf8()), F("ab", arrow::int32()),
      F("s", arrow::struct_({F("x", arrow::utf8()), F("y", arrow::int32())}))};
  const std::string rows = R"([{"id": 1, "a%": null, "ab": 2, "s": {"x": null, "y": 3}}])";
  MappingSpec spec{.untyped = {{"a%"}, {"s", "x"}}};
  ASSERT_OK_AND_ASSIGN(const Outcome out, Run(spec, landed, rows));
  EXPECT_EQ(Columns(out.mapping), "id int32, ab int32, s_y int32");
  spec.rename = {{"a%", "new"}, {"s_x", "sx"}};
  EXPECT_OK(StatusOf(Run(spec, landed, rows)));
  spec.rename = {};
  spec.columns = {{"ID", ""}, {"seen", "\"a%\" IS NULL"}};
  spec.only = true;
  ASSERT_OK_AND_ASSIGN(const Outcome only, Run(spec, landed, rows));
  EXPECT_EQ(Columns(only.mapping), "ID int32, seen bool");
  spec = {.key = {"s_x"}, .untyped = {{"s", "x"}}};
  ASSERT_OK_AND_ASSIGN(const Outcome keyed, Run(spec, landed, rows));
  EXPECT_THAT(keyed.rejected, HasSubstr("null_key"));
}

TEST_F(MappingTest, ColumnsThatTheTableDoesNotTakeAreLeftOutByTheirFinalName) {
  const MappingSpec spec{
      .columns = {{"w", "id + 1"}}, .rename = {{"price", "cost"}}, .left_out = {"W", "cost"}};
  ASSERT_OK_AND_ASSIGN(const Outcome out, Run(spec, kOrder, R"([{"id": 1, "price": "2"}])"));
  EXPECT_THAT(Columns(out.mapping), testing::Not(HasSubstr("w ")));
  EXPECT_THAT(Columns(out.mapping), testing::Not(HasSubstr("cost")));
  EXPECT_THAT(Columns(out.mapping), HasSubstr("id "));
}

TEST_F(MappingTest, MembersWithReservedNamesGetAnUnderscore) {
  const auto inner = arrow::struct_({F("x", arrow::int32()), F("_x", arrow::int32())});
  ASSERT_OK_AND_ASSIGN(const Outcome out,
                       Run({}, {F("tarn", inner), F("HDR", inner)},
                           R"([{"tarn": {"x": 1, "_x": 2}, "HDR": {"x": 3, "_x": 4}}])"));
  EXPECT_EQ(Columns(out.mapping), "_tarn_x int32, _tarn__x int32, HDR_x int32, _HDR__x int32");
  EXPECT_EQ(out.good, "1 2 3 4\n");
}

TEST_F(MappingTest, ClashesNameBothColumns) {
  EXPECT_THAT(
      Failure({}, {F("a", arrow::struct_({F("b", arrow::int32())})), F("A_B", arrow::utf8())}),
      FailsWith(ErrorCode::kInvalidArgument,
                "transform orders: two columns have the name \"A_B\": landed column a.b and "
                "landed column A_B"));
  EXPECT_THAT(Failure({.rename = {{"price", "ID"}}}, kOrder),
              FailsWith(ErrorCode::kInvalidArgument, "landed column id and landed column price"));
  EXPECT_THAT(Failure({.columns = {{"x", "1"}, {"X", "2"}}}, kOrder),
              FailsWith(ErrorCode::kInvalidArgument, "columns.X is there twice"));
}

const arrow::FieldVector kBasket = {
    F("id", arrow::int32()),
    F("items", ListOf(arrow::struct_({F("sku", arrow::utf8()), F("qty", arrow::int32())}))),
    F("tags", ListOf(arrow::utf8()))};
const std::string kBaskets = R"([
    {"id": 1, "items": [{"sku": "a", "qty": 1}, {"sku": "b", "qty": 2}, null], "tags": ["t", "u"]},
    {"id": 2, "items": [], "tags": []}, {"id": 3, "items": null, "tags": null}])";

TEST_F(MappingTest, ElementsOfOneArrayBecomeRows) {
  ASSERT_OK_AND_ASSIGN(
      const Outcome out,
      Run({.columns = {{"sku", "items[].sku"}, {"twice", "items[].qty * 2"}}}, kBasket, kBaskets));
  EXPECT_EQ(Columns(out.mapping), "id int32, tags list<element: string>, sku string, twice int32");
  EXPECT_EQ(out.good,
            "1 [\"t\",\"u\"] \"a\" 2\n1 [\"t\",\"u\"] \"b\" 4\n1 [\"t\",\"u\"] null null\n"
            "2 [] null null\n3 null null null\n");
  EXPECT_TRUE(out.mapping.has_elements);
  EXPECT_THAT(out.hidden, HasSubstr("0 2 false"));
  ASSERT_OK_AND_ASSIGN(
      const Outcome dropped,
      Run({.columns = {{"sku", "items[].sku"}}, .only = true, .empty_arrays = EmptyArrays::kDrop},
          kBasket, kBaskets));
  EXPECT_EQ(dropped.good, "\"a\"\n\"b\"\nnull\n");
  EXPECT_EQ(dropped.counts, (OutcomeCounts{.good = 3, .empty_arrays = 2}));
  ASSERT_OK_AND_ASSIGN(
      const Outcome filtered,
      Run({.columns = {{"sku", "items[].sku"}}, .only = true, .where = "items[].qty > 1"}, kBasket,
          kBaskets));
  EXPECT_EQ(filtered.good, "\"b\"\n");
}

TEST_F(MappingTest, TwoArraysAreRefusedOrZipped) {
  const MappingSpec spec = {.columns = {{"sku", "items[].sku"}, {"tag", "tags[]"}}, .only = true};
  EXPECT_THAT(Failure(spec, kBasket), FailsWith(ErrorCode::kInvalidArgument, "items[] and tags[]"));
  MappingSpec zipped = spec;
  zipped.zip = true;
  ASSERT_OK_AND_ASSIGN(const Outcome out, Run(zipped, kBasket, kBaskets));
  EXPECT_EQ(out.good, "\"a\" \"t\"\n\"b\" \"u\"\nnull null\nnull null\nnull null\n");
}

TEST_F(MappingTest, NestedArraysGiveInnerRows) {
  const arrow::FieldVector landed = {
      F("o", ListOf(arrow::struct_({F("n", arrow::int32()), F("l", ListOf(arrow::int32()))})))};
  ASSERT_OK_AND_ASSIGN(
      const Outcome out,
      Run({.columns = {{"n", "o[].n"}, {"l", "o[].l[]"}}, .only = true}, landed,
          R"([{"o": [{"n": 1, "l": [10, 11]}, {"n": 2, "l": []}]}, {"o": null}])"));
  EXPECT_EQ(out.good, "1 10\n1 11\n2 null\nnull null\n");
  EXPECT_THAT(out.hidden, HasSubstr("0 2147483648 false"));
}

TEST_F(MappingTest, HashedColumnsAreHex) {
  ASSERT_OK_AND_ASSIGN(const Outcome out,
                       Run({.columns = {{.name = "id", .expression = "", .hash = true}},
                            .only = true,
                            .key = {"id"}},
                           kOrder, R"([{"id": 42}])"));
  EXPECT_EQ(out.good, "\"92cfceb39d57d914ed8b14d0e37643de0797ae56\"\n");
  EXPECT_EQ(Columns(out.mapping), "id string");
}

const arrow::FieldVector kChange = {F("id", arrow::int64()), F("name", arrow::utf8()),
                                    F("hdr__cdc_operation", arrow::utf8()),
                                    F("hdr__cdc_before", arrow::utf8())};

TEST_F(MappingTest, BeforeImagesGiveTheOldKey) {
  ASSERT_OK_AND_ASSIGN(
      const Outcome out,
      Run({.columns = {{"key", "'k' || id"}, {"n", "name::INT"}}, .key = {"key"}}, kChange,
          R"([{"id": 1, "name": "1", "hdr__cdc_operation": "I", "hdr__cdc_before": null},
              {"id": 2, "name": "2", "hdr__cdc_operation": "U", "hdr__cdc_before": "{\"id\":1}"},
  {"id": 3, "name": "3", "hdr__cdc_operation": "U", "hdr__cdc_before": "{\"name\":\"z\"}"},
              {"id": 4, "name": "4", "hdr__cdc_operation": "D", "hdr__cdc_before": "{\"id\":9}"},
  {"id": 5, "name": "bad", "hdr__cdc_operation": "U", "hdr__cdc_before": "{\"id\":6}"}])"));
  EXPECT_THAT(out.hidden, HasSubstr("1 0 false"));
  EXPECT_EQ(out.good,
            "1 \"1\" \"k1\" 1\n2 \"2\" \"k2\" 2\n1 \"2\" \"k1\" 2\n3 \"3\" \"k3\" 3\n3 \"3\" "
            "\"k3\" 3\n4 \"4\" \"k4\" 4\n6 \"bad\" \"k6\" null\n");
  EXPECT_EQ(out.counts.good, 4);
  EXPECT_EQ(out.counts.rejected, 1);
}

TEST_F(MappingTest, WhereJudgesTheRowAndItsImageBeforeApart) {
  ASSERT_OK_AND_ASSIGN(
      const Outcome out,
      Run({.where = "name <> 'x'", .key = {"id"}}, kChange,
          R"([{"id": 1, "name": "x", "hdr__cdc_operation": "U", "hdr__cdc_before": null},
              {"id": 2, "name": "x", "hdr__cdc_operation": "I", "hdr__cdc_before": null},
  {"id": 3, "name": "y", "hdr__cdc_operation": "U", "hdr__cdc_before": "{\"id\":9,\"name\":\"x\"}"},
  {"id": 4, "name": "x", "hdr__cdc_operation": "U", "hdr__cdc_before": "{\"id\":8,\"name\":\"x\"}"},
              {"id": 5, "name": "x", "hdr__cdc_operation": "U", "hdr__cdc_before": "{\"id\":7}"},
              {"id": 6, "name": "x", "hdr__cdc_operation": "D", "hdr__cdc_before": null},
              {"id": 7, "name": null, "hdr__cdc_operation": "U", "hdr__cdc_before": null}])"));
  EXPECT_EQ(out.good,
            "1 \"x\"\n3 \"y\"\n9 \"x\"\n4 \"x\"\n8 \"x\"\n5 \"x\"\n7 \"x\"\n6 \"x\"\n7 null\n");
  std::string deletes;
  std::istringstream lines(out.hidden);
  for (std::string line; std::getline(lines, line);) {
    deletes += line.substr(0, line.find(" null")) + "\n";
  }
  EXPECT_EQ(deletes,
            "0 0 false true\n2 0 false false\n2 0 true true\n3 0 false true\n3 0 true true\n"
            "4 0 false true\n4 0 true false\n5 0 false false\n6 0 false true\n");
}

TEST_F(MappingTest, ATruncateIsNoRowToCheckInAppendModeEither) {
  ASSERT_OK_AND_ASSIGN(
      const Outcome out,
      Run({.expect = {{"e", "id IS NOT NULL", ExpectAction::kReject}}}, kChange,
          R"([{"id": null, "name": null, "hdr__cdc_operation": "T", "hdr__cdc_before": null}])"));
  EXPECT_EQ(out.counts.good, 1);
  EXPECT_EQ(out.rejected, "");
}

TEST_F(MappingTest, DeletesAndTruncatesAreNotLost) {
  const arrow::FieldVector landed = {F("id", arrow::int64()), F("name", arrow::utf8()),
                                     F("hdr__cdc_operation", arrow::utf8()),
                                     F("hdr__kafka_tombstone", arrow::boolean())};
  const MappingSpec spec = {.columns = {{"n", "name::INT"}},
                            .where = "name <> 'x'",
                            .expect = {{"e", "name IS NOT NULL", ExpectAction::kReject}},
                            .key = {"id"}};
  ASSERT_OK_AND_ASSIGN(const Outcome out, Run(spec, landed,
                                              R"([{"id": 1, "name": "x", "hdr__cdc_operation": "D"},
              {"id": 2, "name": "bad", "hdr__cdc_operation": "D"},
              {"id": 3, "name": null, "hdr__kafka_tombstone": true},
              {"id": null, "name": null, "hdr__cdc_operation": "T"},
              {"id": null, "name": null, "hdr__cdc_operation": "D"},
              {"id": 5, "name": "x", "hdr__cdc_operation": "I"}])"));
  EXPECT_EQ(out.good, "1 \"x\" null\n2 \"bad\" null\n3 null null\nnull null null\n");
  EXPECT_EQ(out.rejected, "4.0 null_key key: column id is NULL\n");
}

TEST_F(MappingTest, ChangesOfOtherTablesAreLeftOutWholly) {
  const arrow::FieldVector landed = {
      F("id", arrow::int64()), F("hdr__cdc_operation", arrow::utf8()),
      F("hdr__cdc_before", arrow::utf8()), F("hdr__cdc_table", arrow::utf8())};
  const MappingSpec spec = {.where = "hdr__cdc_table = 's.a'", .key = {"id"}};
  ASSERT_OK_AND_ASSIGN(const Outcome out, Run(spec, landed, R"([
      {"id": 1, "hdr__cdc_operation": "D", "hdr__cdc_table": "s.a"},
      {"id": 2, "hdr__cdc_operation": "D", "hdr__cdc_table": "s.b"},
      {"id": 3, "hdr__cdc_operation": "U", "hdr__cdc_table": "s.b"},
  {"id": 4, "hdr__cdc_operation": "U", "hdr__cdc_table": "s.b", "hdr__cdc_before": "{\"id\":1}"},
  {"id": 5, "hdr__cdc_operation": "U", "hdr__cdc_table": "s.a", "hdr__cdc_before": "{\"id\":6}"},
      {"hdr__cdc_operation": "T", "hdr__cdc_table": "s.b"},
      {"id": 7, "hdr__cdc_operation": "I", "hdr__cdc_table": "s.a"}])"));
  EXPECT_EQ(out.good, "1\n5\n6\n7\n");
  EXPECT_EQ(out.rejected, "");
}

TEST_F(MappingTest, TypesBecomeThoseOfTheTable) {
  using arrow::TimeUnit;
  const arrow::FieldVector landed = {F("i8", arrow::int8()),
                                     F("u16", arrow::uint16()),
                                     F("u32", arrow::uint32()),
                                     F("u64", arrow::uint64()),
                                     F("ms", arrow::timestamp(TimeUnit::MILLI)),
                                     F("ns", arrow::timestamp(TimeUnit::NANO)),
                                     F("t", arrow::time32(TimeUnit::SECOND)),
                                     F("f", arrow::fixed_size_binary(2)),
                                     F("n", arrow::null()),
                                     F("l", ListOf(arrow::uint8()))};
  ASSERT_OK_AND_ASSIGN(
      const Outcome out,
      Run({.columns = {{"big", "u64::HUGEINT * 10"},
                       {"iv", "INTERVAL 1 DAY"},
                       {"e", "'a'::ENUM('a')"},
                       {"j", "'{\"a\":1}'::JSON"},
                       {"s", "list_sum(l)"},
                       {"u", "'00000000-0000-0000-0000-00000000000a'::UUID"}}},
          landed,
          R"([{"i8": -1, "u16": 65535, "u32": 4294967295, "u64": 18446744073709551615, "ms": 1,
               "ns": 2000, "t": 1, "f": "ab", "n": null, "l": [255]}])"));
  EXPECT_EQ(Columns(out.mapping),
            "i8 int32, u16 int32, u32 int64, u64 decimal128(20, 0), ms timestamp[us], ns "
            "timestamp[us], t time64[us], f binary, n string, l list<element: int32>, big "
            "decimal128(38, 0), iv string, e string, j string, s decimal128(38, 0), u "
            "extension<arrow.uuid>");
  EXPECT_THAT(out.good, HasSubstr("-1 65535 4294967295 18446744073709551615"));
  EXPECT_THAT(out.good, HasSubstr("184467440737095516150 \"1 day\" \"a\" \"{\\\"a\\\":1}\" 255"));
}

TEST_F(MappingTest, HugeintsBeyondTheTableRejectTheRow) {
  ASSERT_OK_AND_ASSIGN(
      const Outcome out,
      Run({.columns = {{"h", "CAST(rpad('1', id::INT + 1, '0') AS HUGEINT)"}}, .only = true},
          kOrder, R"([{"id": 2}, {"id": 38}])"));
  EXPECT_EQ(out.good, "100\n");
  EXPECT_THAT(out.rejected, HasSubstr("1.0 cast_failed columns.h"));
}

TEST_F(MappingTest, MistakesAreNamed) {
  struct Case {
    MappingSpec spec;
    std::string text;
  };
  const std::vector<Case> cases = {
      {{.columns = {{"x", "prise * 2"}}},
       "transform orders: columns.x: there is no column \"prise\""},
      {{.columns = {{"x", "current_date"}}}, "there is no column \"current_date\""},
      {{.columns = {{"x", "now()"}}}, "columns.x: expressions cannot have functions whose value"},
      {{.columns = {{"x", "sum(id)"}}}, "aggregates, found sum"},
      {{.columns = {{"x", "nosuch(id)"}}}, "columns.x: "},
      {{.columns = {{"x", "id + "}}}, "columns.x: syntax error"},
      {{.columns = {{"x", "", std::nullopt}}}, "no landed column \"x\""},
      {{.columns = {{"x", "id", "floaty"}}}, "columns.x.type"},
      {{.columns = {{"hdr__x", "id"}}}, "reserved"},
      {{.columns = {{"tarn_row", "id"}}}, "reserved"},
      {{.columns = {{"x", "id[].y"}}}, "id"},
      {{.columns = {{"x", "[id]"}}, .key = {"x"}}, "key: column \"x\" has the type list"},
      {{.columns = {{"x", "id::DOUBLE"}}, .key = {"x"}}, "which cannot be a key"},
      {{.key = {"nope"}}, "key: there is no column \"nope\""},
      {{.key = {"id", "ID"}}, "key: column \"ID\" is there twice"},
      {{.drop = {"nope"}}, "drop: there is no column \"nope\""},
      {{.rename = {{"nope", "x"}}}, "rename: there is no column \"nope\""},
      {{.where = "id + "}, "where: "},
      {{.where = "nope"}, "where: there is no column"},
      {{.expect = {{"e", "nope > 1"}}}, "expect.e: there is no column"},
      {{.expect = {{"e", "id > 1"}, {"e", "id > 2"}}}, "expect.e is there twice"},
      {{.expect = {{"e", ""}}}, "expect.e has no check"},
      {{.key = {"id"}, .delete_when = "id; DROP TABLE x"}, "delete_when: "},
      {{.columns = {{.name = "x", .expression = "[id]", .hash = true}}}, "cannot be hashed"},
      {{.only = true}, "no column"},
      {{.delete_when = "id > 1"}, "mode append"},
  };
  for (const Case& item : cases) {
    EXPECT_THAT(Failure(item.spec, kOrder), FailsWith(ErrorCode::kInvalidArgument, item.text));
  }
  EXPECT_THAT(CompileMapping(*session_, {.target = "t"}, *arrow::schema(kOrder)),
              FailsWith(ErrorCode::kInvalidArgument, "key: mode merge needs"));
  EXPECT_THAT(Failure({}, {F("tarn_row", arrow::int64())}),
              FailsWith(ErrorCode::kInvalidArgument, "reserved"));
}

TEST_F(MappingTest, HostileColumnNamesAreOnlyNames) {
  const std::vector<std::string> names = {
      "a\"b",   "x'); DROP TABLE t; --", "new\nline", "日本", "select", "a.b", "v", "d", "user",
      "items[]"};
  arrow::FieldVector landed;
  std::string row;
  std::string expected;
  MappingSpec spec;
  for (size_t i = 0; i < names.size(); ++i) {
    landed.push_back(F(names[i], arrow::int32()));
    spec.expect.push_back(
        {.name = "e" + std::to_string(i), .check = "${" + names[i] + "} = " + std::to_string(i)});
    expected += (i > 0 ? " " : "") + std::to_string(i);
  }
  spec.key = {"a\"b", "new\nline"};
  arrow::FieldVector plain;
  for (size_t i = 0; i < names.size(); ++i) {
    row +=
        (i > 0 ? ", " : "[{") + std::string("\"c") + std::to_string(i) + "\": " + std::to_string(i);
    plain.push_back(F("c" + std::to_string(i), arrow::int32()));
  }
  // JSON with such names is a test of its own; rename after reading.
  ASSERT_OK_AND_ASSIGN(const CompiledMapping mapping,
                       CompileMapping(*session_, spec, *arrow::schema(landed)));
  const auto array = *arrow::json::ArrayFromJSONString(arrow::struct_(plain), row + "}]");
  const auto batch = *arrow::RecordBatch::FromStructArray(array);
  auto columns = batch->columns();
  columns.push_back(*arrow::MakeArrayFromScalar(arrow::Int64Scalar(0), 1));
  landed.push_back(F("tarn_row", arrow::int64()));
  const auto schema = arrow::schema(landed);
  ASSERT_OK(session_->RegisterBatches("tarn_input", schema,
                                      {arrow::RecordBatch::Make(schema, 1, columns)}));
  ASSERT_OK_AND_ASSIGN(const auto stream, session_->Query(mapping.sql));
  ASSERT_OK_AND_ASSIGN(const auto result, stream->Next());
  ASSERT_OK_AND_ASSIGN(const MappedBatch mapped, SplitOutcome(mapping, *result));
  EXPECT_EQ(Lines(*mapped.good, 0, static_cast<int>(names.size())), expected + "\n");
}

TEST_F(MappingTest, WhatDoesNotFitTheTableGoesToAnotherColumn) {
  const std::vector<ColumnFit> fits = {{"P", arrow::int32(), "p_string", arrow::utf8()}};
  ASSERT_OK_AND_ASSIGN(
      Outcome out,
      Run({}, {F("p", arrow::utf8()), F("q", arrow::int32())},
          R"([{"p": "7", "q": 1}, {"p": "x", "q": 2}, {"p": null, "q": 3}, {"p": "1.5", "q": 4},
              {"p": "2147483648", "q": 5}])",
          fits));
  EXPECT_EQ(Columns(out.mapping), "p int32, q int32, p_string string");
  EXPECT_EQ(out.good,
            "7 1 null\n"
            "null 2 \"x\"\n"
            "null 3 null\n"
            "null 4 \"1.5\"\n"
            "null 5 \"2147483648\"\n");
  EXPECT_EQ(out.rejected, "");
  EXPECT_EQ(out.counts.null_casts, 0);
  // An expression that fails is one failure; with on_cast_error: null nothing is lost either.
  MappingSpec spec;
  spec.columns = {{.name = "p", .expression = "CAST(p AS DOUBLE) / 2"}};
  spec.on_cast_error = OnCastError::kNull;
  ASSERT_OK_AND_ASSIGN(out, Run(spec, {F("p", arrow::utf8())}, R"([{"p": "4"}, {"p": "5"},
                                                                   {"p": "x"}])",
                                {{"p", arrow::int32(), "p_double", arrow::float64()}}));
  EXPECT_EQ(out.good, "2 null\nnull 2.5\n");
  EXPECT_EQ(out.rejected, "2.0 expression_failed columns.p: the expression failed\n");
}

TEST_F(MappingTest, ATextThatOnlyLooksLikeANumberIsNoNumber) {
  const std::vector<ColumnFit> fits = {{.column = "id", .type = arrow::int64()}};
  const std::string rows = R"([{"id": "7"}, {"id": "-7"}, {"id": "0"}, {"id": "07"}, {"id": " 7"},
                               {"id": "+7"}, {"id": "7 "}, {"id": "-07"}, {"id": "1e1"}])";
  ASSERT_OK_AND_ASSIGN(Outcome out, Run({.key = {"id"}}, {F("id", arrow::utf8())}, rows, fits));
  EXPECT_EQ(out.good, "7\n-7\n0\n10\n");
  EXPECT_EQ(out.counts.rejected, 5);
  EXPECT_THAT(out.rejected, HasSubstr("3.0 cast_failed landed column id: 07 is no int64"));
  // Who names the type gets what SQL makes of the text.
  ASSERT_OK_AND_ASSIGN(out, Run({.columns = {{"id", "", "long"}}, .key = {"id"}},
                                {F("id", arrow::utf8())}, R"([{"id": "07"}, {"id": " 7"}])", fits));
  EXPECT_EQ(out.good, "7\n7\n");
}

TEST_F(MappingTest, WithOnCastErrorNullAnExpressionThatFailsIsNull) {
  MappingSpec spec = {.columns = {{"half", "CAST(price AS DOUBLE) / 2"}},
                      .on_cast_error = OnCastError::kNull};
  const std::string rows = R"([{"id": 1, "price": "5"}, {"id": 2, "price": "two"},
                               {"id": 3, "price": null}])";
  spec.only = true;
  ASSERT_OK_AND_ASSIGN(Outcome out, Run(spec, kOrder, rows));
  EXPECT_EQ(out.good, "2.5\nnull\nnull\n");
  EXPECT_EQ(out.counts, (OutcomeCounts{.good = 3, .null_casts = 1}));
  // A key that fails is no NULL key, and a condition that fails decides nothing.
  spec.columns = {{"n", "CAST(price AS BIGINT)"}};
  spec.key = {"n"};
  ASSERT_OK_AND_ASSIGN(out, Run(spec, kOrder, rows));
  EXPECT_EQ(out.rejected,
            "1.0 expression_failed columns.n: the expression failed\n"
            "2.0 null_key key: column n is NULL\n");
}

TEST_F(MappingTest, AFitWithoutAnotherColumnRejects) {
  ASSERT_OK_AND_ASSIGN(const Outcome out,
                       Run({.rename = {{"s_p", "price"}}, .nested = Nesting::kExpand},
                           {F("s", arrow::struct_({F("p", arrow::utf8())}))},
                           R"([{"s": {"p": "7"}}, {"s": {"p": "x"}}])",
                           {{.column = "price", .type = arrow::int32()}}));
  EXPECT_EQ(Columns(out.mapping), "price int32");
  EXPECT_EQ(out.good, "7\n");
  EXPECT_THAT(out.rejected, HasSubstr("1.0 cast_failed"));
}

TEST_F(MappingTest, WhereAllFitsThereIsNoOtherColumn) {
  ASSERT_OK_AND_ASSIGN(const Outcome out, Run({}, {F("p", arrow::int32())}, R"([{"p": 7}])",
                                              {{"p", arrow::utf8(), "p_int", arrow::int32()}}));
  EXPECT_EQ(Columns(out.mapping), "p string");
  EXPECT_EQ(out.good, "\"7\"\n");
}

TEST_F(MappingTest, CompilingLeavesNothingRegistered) {
  EXPECT_THAT(
      CompileMapping(*session_, {.target = "t", .mode = Mode::kAppend}, *arrow::schema(kOrder)),
      IsOk());
  EXPECT_THAT(session_->Unregister("tarn_input"), Fails(ErrorCode::kNotFound));
}

}  // namespace
}  // namespace tarn::transform
