#include "tarn/iceberg/literal.h"

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "tarn/base/hash.h"
#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

std::string Hex(const Type& type, const Literal& literal) {
  Result<std::string> bytes = EncodeLiteral(type, literal);
  return bytes.ok() ? EncodeHex(*bytes) : bytes.status().ToString();
}

TEST(LiteralTest, DecimalsAreMinimalBigEndian) {
  EXPECT_EQ(EncodeHex(EncodeDecimal(0)), "00");
  EXPECT_EQ(EncodeHex(EncodeDecimal(127)), "7f");
  EXPECT_EQ(EncodeHex(EncodeDecimal(128)), "0080");
  EXPECT_EQ(EncodeHex(EncodeDecimal(-1)), "ff");
  EXPECT_EQ(EncodeHex(EncodeDecimal(-128)), "80");
  EXPECT_EQ(EncodeHex(EncodeDecimal(-129)), "ff7f");
  EXPECT_EQ(Hex(Type::Decimal(9, 2), Literal::Decimal(1420)), "058c");
  for (const Int128 value :
       {Int128{0}, Int128{-1}, Int128{255}, Int128{-256}, Int128{1} << 126, -(Int128{1} << 126)}) {
    EXPECT_TRUE(DecodeDecimal(EncodeDecimal(value)).value() == value);
    EXPECT_TRUE(DecodeDecimal(EncodeDecimalFixed(value, 16)).value() == value);
    EXPECT_TRUE(
        DecodeDecimal(std::string(4, value < 0 ? '\xFF' : '\0') + EncodeDecimalFixed(value, 16))
            .value() == value);
  }
  EXPECT_THAT(DecodeDecimal("").status(), Fails(ErrorCode::kCorruption));
  EXPECT_THAT(DecodeDecimal(std::string(17, '\x01')).status(), Fails(ErrorCode::kCorruption));
}

TEST(LiteralTest, BinaryFormsAreLittleEndian) {
  EXPECT_EQ(Hex(Type::Boolean(), Literal::Boolean(true)), "01");
  EXPECT_EQ(Hex(Type::Int(), Literal::Long(1)), "01000000");
  EXPECT_EQ(Hex(Type::Long(), Literal::Long(-2)), "feffffffffffffff");
  EXPECT_EQ(Hex(Type::Float(), Literal::Double(1.0)), "0000803f");
  EXPECT_EQ(Hex(Type::Double(), Literal::Double(1.0)), "000000000000f03f");
  EXPECT_EQ(Hex(Type::String(), Literal::String("é")), "c3a9");
  EXPECT_THAT(EncodeLiteral(Type::Int(), Literal::Null()), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(EncodeLiteral(Type::Int(), Literal::Long(1LL << 40)),
              Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(EncodeLiteral(Type::Fixed(3), Literal::String("ab")),
              Fails(ErrorCode::kInvalidArgument));
}

TEST(LiteralTest, BoundsFromBeforeAPromotionAreReadByTheirLength) {
  const std::string int_bytes = EncodeLiteral(Type::Int(), Literal::Long(-7)).value();
  EXPECT_THAT(DecodeLiteral(Type::Long(), int_bytes), IsOkAndHolds(Literal::Long(-7)));
  const std::string float_bytes = EncodeLiteral(Type::Float(), Literal::Double(0.5)).value();
  EXPECT_THAT(DecodeLiteral(Type::Double(), float_bytes), IsOkAndHolds(Literal::Double(0.5)));
  const std::string long_bytes = EncodeLiteral(Type::Long(), Literal::Long(7)).value();
  EXPECT_THAT(DecodeLiteral(Type::Int(), long_bytes), Fails(ErrorCode::kCorruption));
  EXPECT_THAT(DecodeLiteral(Type::Long(), "abc"), Fails(ErrorCode::kCorruption));
  EXPECT_THAT(DecodeLiteral(Type::Uuid(), "abc"), Fails(ErrorCode::kCorruption));
}

TEST(LiteralTest, OrderOfDoublesIsTotal) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> ordered{-inf, -1.0, -0.0, 0.0, 1e-300, 1.0, inf, nan};
  for (size_t i = 0; i < ordered.size(); ++i) {
    for (size_t j = 0; j < ordered.size(); ++j) {
      const int order = CompareLiterals(Literal::Double(ordered[i]), Literal::Double(ordered[j]));
      EXPECT_EQ(order, i < j ? -1 : (i > j ? 1 : 0)) << i << " " << j;
    }
  }
  EXPECT_EQ(Literal::Double(nan), Literal::Double(-nan));
  EXPECT_EQ(HashLiteral(Literal::Double(nan)), HashLiteral(Literal::Double(-nan)));
  EXPECT_FALSE(Literal::Double(0.0) == Literal::Double(-0.0));
  EXPECT_EQ(CompareLiterals(Literal::String("a\x7F"), Literal::String("a\xC3")), -1);
  EXPECT_EQ(CompareLiterals(Literal::Null(), Literal::Long(0)), -1);
}

TEST(LiteralTest, JsonFormsRoundTrip) {
  const std::vector<std::tuple<Type, Literal, std::string>> cases{
      {Type::Boolean(), Literal::Boolean(true), "true"},
      {Type::Int(), Literal::Long(34), "34"},
      {Type::Long(), Literal::Long(9007199254740993), "9007199254740993"},
      {Type::Double(), Literal::Double(0.5), "0.5"},
      {Type::Decimal(9, 2), Literal::Decimal(1420), "\"14.20\""},
      {Type::Decimal(9, 2), Literal::Decimal(-5), "\"-0.05\""},
      {Type::Decimal(9, 0), Literal::Decimal(12), "\"12\""},
      {Type::Date(), Literal::Long(17486), "\"2017-11-16\""},
      {Type::Date(), Literal::Long(-1), "\"1969-12-31\""},
      {Type::Time(), Literal::Long(81068123456), "\"22:31:08.123456\""},
      {Type::Timestamp(), Literal::Long(1510871468123456), "\"2017-11-16T22:31:08.123456\""},
      {Type::TimestampTz(), Literal::Long(1510871468000000), "\"2017-11-16T22:31:08+00:00\""},
      {Type::TimestampTz(), Literal::Long(-1), "\"1969-12-31T23:59:59.999999+00:00\""},
      {Type::String(), Literal::String("a\"b"), "\"a\\\"b\""},
      {Type::Uuid(), Literal::String(DecodeHex("f79c3e09677c4bbda4793f349cb785e7").value()),
       "\"f79c3e09-677c-4bbd-a479-3f349cb785e7\""},
      {Type::Fixed(3), Literal::String(std::string("\x01\x02\xFF", 3)), "\"0102ff\""},
      {Type::Binary(), Literal::String(""), "\"\""}};
  for (const auto& [type, literal, text] : cases) {
    ASSERT_OK_AND_ASSIGN(const Json json, LiteralToJson(type, literal));
    EXPECT_EQ(DumpJson(json), text);
    EXPECT_THAT(LiteralFromJson(type, json), IsOkAndHolds(literal)) << text;
  }
}

TEST(LiteralTest, WrongJsonIsRefused) {
  const std::vector<std::pair<Type, std::string>> cases{
      {Type::Int(), "2147483648"},
      {Type::Int(), "\"1\""},
      {Type::Long(), "1.5"},
      {Type::Date(), "\"2017-02-29\""},
      {Type::Date(), "\"2017-1-1\""},
      {Type::Timestamp(), "\"2017-11-16T22:31:08+00:00\""},
      {Type::TimestampTz(), "\"2017-11-16T22:31:08\""},
      {Type::Time(), "\"24:00:00\""},
      {Type::Decimal(4, 2), "\"123.45\""},
      {Type::Decimal(9, 2), "\"1.234\""},
      {Type::Uuid(), "\"x\""},
      {Type::Fixed(2), "\"0102ff\""},
      {Type::Boolean(), "1"}};
  for (const auto& [type, text] : cases) {
    ASSERT_OK_AND_ASSIGN(const Json json, ParseJson(text, "test"));
    EXPECT_THAT(LiteralFromJson(type, json), Fails(ErrorCode::kInvalidArgument)) << text;
  }
}

TEST(LiteralTest, CastsKeepValuesOrFail) {
  EXPECT_THAT(CastLiteral(Type::Long(), Type::Double(), Literal::Long(2)),
              IsOkAndHolds(Literal::Double(2)));
  EXPECT_THAT(CastLiteral(Type::Long(), Type::Decimal(9, 2), Literal::Long(3)),
              IsOkAndHolds(Literal::Decimal(300)));
  EXPECT_THAT(CastLiteral(Type::String(), Type::TimestampTz(),
                          Literal::String("2017-11-16T23:31:08+01:00")),
              IsOkAndHolds(Literal::Long(1510871468000000)));
  EXPECT_THAT(CastLiteral(Type::String(), Type::Int(), Literal::String("12")),
              IsOkAndHolds(Literal::Long(12)));
  EXPECT_THAT(CastLiteral(Type::Long(), Type::Int(), Literal::Long(1LL << 33)),
              Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(CastLiteral(Type::Double(), Type::Long(), Literal::Double(1.5)),
              Fails(ErrorCode::kInvalidArgument));
}

TEST(LiteralTest, TruncationCountsCodePoints) {
  const Type text = Type::String();
  EXPECT_EQ(TruncateLower(text, "iceberg", 3), "ice");
  EXPECT_EQ(TruncateUpper(text, "iceberg", 3), "icf");
  EXPECT_EQ(TruncateUpper(text, "ice", 3), "ice");
  EXPECT_EQ(TruncateLower(text, "äöü", 2), "äö");
  EXPECT_EQ(TruncateUpper(text, "äöü", 2), "ä\xC3\xB7");
  EXPECT_EQ(TruncateUpper(text, "a\xED\x9F\xBFxx", 2), "a\xEE\x80\x80");  // Over the surrogates.
  EXPECT_EQ(TruncateUpper(text, "a\xF4\x8F\xBF\xBFx", 2), "b");
  EXPECT_EQ(TruncateUpper(text, "\xF4\x8F\xBF\xBFx", 1), std::nullopt);
  EXPECT_EQ(TruncateUpper(Type::Binary(), "\x01\xFF\x02", 2), "\x02");
  EXPECT_EQ(TruncateUpper(Type::Binary(), "\xFF\xFF\x02", 2), std::nullopt);
}

}  // namespace
}  // namespace tarn::iceberg
