#include "tarn/transform/canonical_text.h"

#include <limits>

#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <arrow/extension/uuid.h>
#include <arrow/json/from_string.h>
#include <gtest/gtest.h>

#include "tarn/base/arrow_status.h"
#include "tarn/base/hash.h"
#include "test/support/matchers.h"

namespace tarn::transform {
namespace {

using ArrayPointer = std::shared_ptr<arrow::Array>;

ArrayPointer Json(const std::shared_ptr<arrow::DataType>& type, std::string_view text) {
  const auto array = arrow::json::ArrayFromJSONString(type, text);
  EXPECT_TRUE(array.ok()) << array.status().ToString();
  return *array;
}

/// Texts joined by '|', NULL as "NULL".
std::string Texts(const arrow::Array& array) {
  const auto texts = MakeCanonicalTexts(array);
  if (!texts.ok()) {
    return texts.status().ToString();
  }
  std::string out;
  for (size_t i = 0; i + 1 < texts->offsets.size(); ++i) {
    const auto size = static_cast<size_t>(texts->offsets[i + 1] - texts->offsets[i]);
    const std::string text = texts->bytes.substr(static_cast<size_t>(texts->offsets[i]), size);
    out += i == 0 ? "" : "|";
    out += text == std::string(1, '\0') ? "NULL" : text;
  }
  return out;
}

std::string HexAt(const arrow::Array& hashes, int64_t row) {
  return EncodeHex(static_cast<const arrow::FixedSizeBinaryArray&>(hashes).GetView(row));
}

TEST(CanonicalTextTest, EachTypeHasItsText) {
  using arrow::TimeUnit;
  EXPECT_EQ(Texts(*Json(arrow::boolean(), "[true, null, false]")), "true|NULL|false");
  EXPECT_EQ(Texts(*Json(arrow::int8(), "[-128, 0, null]")), "-128|0|NULL");
  EXPECT_EQ(Texts(*Json(arrow::int64(), "[-9223372036854775808, 9223372036854775807]")),
            "-9223372036854775808|9223372036854775807");
  EXPECT_EQ(Texts(*Json(arrow::uint64(), "[18446744073709551615]")), "18446744073709551615");
  EXPECT_EQ(Texts(*Json(arrow::decimal128(10, 2), R"(["0.05", "-12.30", "0.00", null])")),
            "0.05|-12.30|0.00|NULL");
  EXPECT_EQ(
      Texts(*Json(arrow::decimal128(38, 0), R"(["-99999999999999999999999999999999999999"])")),
      "-99999999999999999999999999999999999999");
  EXPECT_EQ(
      Texts(*Json(arrow::decimal128(38, 20),
                  R"(["100000000000000000.00000000000000000001", "-0.00000000000000000001"])")),
      "100000000000000000.00000000000000000001|-0.00000000000000000001");
  EXPECT_EQ(Texts(*Json(arrow::utf8(), R"(["", "grüße", null])")), "|grüße|NULL");
  EXPECT_EQ(Texts(*Json(arrow::large_utf8(), R"(["a", null])")), "a|NULL");
  EXPECT_EQ(Texts(*Json(arrow::binary(), R"(["\u0000\u000fz", null])")), "000F7A|NULL");
  EXPECT_EQ(Texts(*Json(arrow::fixed_size_binary(2), R"(["zz"])")), "7A7A");
  EXPECT_EQ(Texts(*Json(arrow::date32(), "[20484, -1, null]")), "2026-01-31|1969-12-31|NULL");
  EXPECT_EQ(Texts(*Json(arrow::time64(TimeUnit::MICRO), "[0, 86399999999]")),
            "00:00:00.000000|23:59:59.999999");
  EXPECT_EQ(Texts(*Json(arrow::timestamp(TimeUnit::MICRO), "[-1, 1700000000123456]")),
            "1969-12-31T23:59:59.999999|2023-11-14T22:13:20.123456");
  EXPECT_EQ(Texts(*Json(arrow::timestamp(TimeUnit::MICRO, "UTC"), "[0]")),
            "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(Texts(*Json(arrow::timestamp(TimeUnit::MILLI), "[-1]")), "1969-12-31T23:59:59.999000");
  EXPECT_EQ(Texts(*Json(arrow::timestamp(TimeUnit::NANO), "[-1]")), "1969-12-31T23:59:59.999999");
  const auto uuid = arrow::ExtensionType::WrapArray(
      arrow::extension::uuid(),
      Json(arrow::fixed_size_binary(16), R"(["0123456789abcdef", null])"));
  EXPECT_EQ(Texts(*uuid), "30313233-3435-3637-3839-616263646566|NULL");
  const auto dictionary =
      arrow::compute::DictionaryEncode(Json(arrow::utf8(), R"(["a", null, "a"])"));
  EXPECT_EQ(Texts(*dictionary->make_array()), "a|NULL|a");
}

TEST(CanonicalTextTest, FloatsAreShortest) {
  arrow::DoubleBuilder builder;
  const double infinity = std::numeric_limits<double>::infinity();
  ASSERT_TRUE(builder
                  .AppendValues({100000.0, 1e16, 1e15, 9999999999999998.0, 1e-4, 1e-5, 0.1, -2.5,
                                 1.0 / 3, 5e-324, 1.7976931348623157e308, infinity, -infinity,
                                 std::nan(""), -0.0, 123456789.125})
                  .ok());
  const auto doubles = builder.Finish();
  EXPECT_EQ(Texts(**doubles),
            "100000.0|1e+16|1000000000000000.0|9999999999999998.0|0.0001|1e-05|0.1|-2.5|"
            "0.3333333333333333|5e-324|1.7976931348623157e+308|Infinity|-Infinity|NaN|0.0|"
            "123456789.125");
  arrow::FloatBuilder floats;
  ASSERT_TRUE(floats.AppendValues({0.1F, 16777216.0F, 3.4028235e38F}).ok());
  EXPECT_EQ(Texts(**floats.Finish()), "0.1|16777216.0|3.4028235e+38");
}

TEST(CanonicalTextTest, ExtremeTimes) {
  EXPECT_EQ(Texts(*Json(arrow::date32(), "[-719528, -719529, 2932896, 2932897, -735599]")),
            "0000-01-01|-0001-12-31|9999-12-31|10000-01-01|-0044-01-01");
  EXPECT_EQ(Texts(*Json(arrow::timestamp(arrow::TimeUnit::MICRO),
                        "[9223372036854775807, -9223372036854775808]")),
            "294247-01-10T04:00:54.775807|-290308-12-21T19:59:05.224192");
}

TEST(CanonicalTextTest, SlicesCountFromTheirOffset) {
  EXPECT_EQ(Texts(*Json(arrow::int32(), "[1, 2, null, 4]")->Slice(1, 3)), "2|NULL|4");
  EXPECT_EQ(Texts(*Json(arrow::utf8(), R"(["a", "b", null])")->Slice(1)), "b|NULL");
  EXPECT_EQ(Texts(*Json(arrow::boolean(), "[true, false, true]")->Slice(2)), "true");
}

TEST(CanonicalTextTest, NestedTypesHaveNone) {
  EXPECT_FALSE(HasCanonicalText(*arrow::list(arrow::int32())));
  EXPECT_FALSE(HasCanonicalText(*arrow::null()));
  EXPECT_THAT(MakeCanonicalTexts(*Json(arrow::list(arrow::int32()), "[[1]]")),
              FailsWith(ErrorCode::kInvalidArgument, "list"));
}

TEST(KeyHashesTest, PublishedVectors) {
  ASSERT_OK_AND_ASSIGN(const auto one, KeyHashes({Json(arrow::utf8(), R"(["42"])")}));
  EXPECT_EQ(HexAt(*one, 0), "92cfceb39d57d914ed8b14d0e37643de0797ae56");
  ASSERT_OK_AND_ASSIGN(const auto number, KeyHashes({Json(arrow::int64(), "[42]")}));
  EXPECT_EQ(HexAt(*number, 0), "92cfceb39d57d914ed8b14d0e37643de0797ae56");
  ASSERT_OK_AND_ASSIGN(const auto two, KeyHashes({Json(arrow::utf8(), R"(["1", null])"),
                                                  Json(arrow::utf8(), R"(["a", "a"])")}));
  EXPECT_EQ(HexAt(*two, 0), "d34f3df3d58980bf584d729b860d4ec1a611aac1");
  const Sha1Digest with_null =
      Sha1(std::string_view("\0\x08"
                            "a",
                            3));
  EXPECT_EQ(HexAt(*two, 1),
            EncodeHex({reinterpret_cast<const char*>(with_null.data()), with_null.size()}));
  EXPECT_EQ(two->type()->ToString(), "fixed_size_binary[20]");
}

TEST(KeyHashesTest, EqualsALibrarysDigestForEveryLength) {
  arrow::StringBuilder builder;
  std::vector<std::string> texts;
  for (size_t size = 0; size < 300; ++size) {
    texts.push_back(std::string(size, static_cast<char>('a' + size % 26)));
    ASSERT_TRUE(builder.Append(texts.back()).ok());
  }
  ASSERT_OK_AND_ASSIGN(const auto hashes, KeyHashes({*builder.Finish()}));
  for (size_t i = 0; i < texts.size(); ++i) {
    const Sha1Digest expected = Sha1(texts[i]);
    EXPECT_EQ(HexAt(*hashes, static_cast<int64_t>(i)),
              EncodeHex({reinterpret_cast<const char*>(expected.data()), expected.size()}));
  }
}

TEST(KeyHashesTest, RefusesWhatCannotBeAKey) {
  EXPECT_THAT(KeyHashes(std::vector<ArrayPointer>{}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(KeyHashes({Json(arrow::float64(), "[1.5]")}),
              FailsWith(ErrorCode::kInvalidArgument, "double"));
  EXPECT_THAT(KeyHashes({Json(arrow::list(arrow::int32()), "[[1]]")}),
              Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(KeyHashes({Json(arrow::int32(), "[1]"), Json(arrow::int32(), "[1, 2]")}),
              FailsWith(ErrorCode::kInvalidArgument, "rows"));
  const auto batch = arrow::RecordBatch::Make(arrow::schema({arrow::field("a", arrow::int32())}), 1,
                                              {Json(arrow::int32(), "[42]")});
  ASSERT_OK_AND_ASSIGN(const auto hashes, KeyHashes(*batch, {0}));
  EXPECT_EQ(HexAt(*hashes, 0), "92cfceb39d57d914ed8b14d0e37643de0797ae56");
  EXPECT_THAT(KeyHashes(*batch, {1}), Fails(ErrorCode::kInvalidArgument));
}

TEST(HashColumnTest, IsHexOfTheText) {
  ASSERT_OK_AND_ASSIGN(const auto hashes, HashColumn(*Json(arrow::int32(), "[42, null]")));
  EXPECT_EQ(hashes->ToString(), Json(arrow::utf8(), R"(["92cfceb39d57d914ed8b14d0e37643de0797ae56",
                                                       null])")
                                    ->ToString());
}

}  // namespace
}  // namespace tarn::transform
