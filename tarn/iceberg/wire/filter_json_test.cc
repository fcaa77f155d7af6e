#include "tarn/iceberg/wire/filter_json.h"

#include <nlohmann/json.hpp>

#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

class FilterJsonTest : public ::testing::Test {
 protected:
  FilterJsonTest() {
    const auto add = [](Schema& schema, int32_t id, const char* name, Type type) {
      SchemaField field;
      field.id = id;
      field.name = name;
      field.type = std::move(type);
      schema.fields.push_back(std::move(field));
    };
    SchemaField inner;
    inner.id = 9;
    inner.name = "x";
    inner.type = Type::Long();
    add(named_, 1, "id", Type::Long());
    add(named_, 2, "name", Type::String());
    add(named_, 3, "day", Type::Date());
    add(named_, 4, "price", Type::Decimal(9, 2));
    add(named_, 5, "ratio", Type::Double());
    add(named_, 6, "added", Type::Long());
    add(named_, 8, "s", Type::Struct({inner}));
    planned_ = named_;
    planned_.fields[1].name = "was_name";
    planned_.fields.erase(planned_.fields.begin() + 5);
  }

  Result<Expression> Read(const std::string& json, CaseRule rule = CaseRule::kSensitive) {
    TARN_ASSIGN_OR_RETURN(const Json parsed, ParseJson(json, "filter"));
    return FilterFromJson(parsed, {.named = named_, .planned = planned_, .rule = rule});
  }
  std::string Text(const std::string& json) {
    const Result<Expression> read = Read(json);
    return read.ok() ? FormatExpression(*read) : read.status().ToString();
  }

  Schema named_;
  Schema planned_;
};

TEST_F(FilterJsonTest, EveryPredicateIsRead) {
  const auto same = [&](const std::string& json, ExpressionKind kind, size_t values) {
    ASSERT_OK_AND_ASSIGN(Expression read, Read(json));
    if (read.kind == ExpressionKind::kOr) {
      EXPECT_EQ(read.children[1].kind, ExpressionKind::kIsNull);
      read = Expression(read.children[0]);
    }
    EXPECT_EQ(read.kind, kind) << json;
    EXPECT_EQ(read.values.size(), values) << json;
  };
  same("true", ExpressionKind::kTrue, 0);
  same("false", ExpressionKind::kFalse, 0);
  same(R"({"type":"true"})", ExpressionKind::kTrue, 0);
  same(R"({"type":"is-null","term":"id"})", ExpressionKind::kIsNull, 0);
  same(R"({"type":"not-null","term":"id"})", ExpressionKind::kNotNull, 0);
  same(R"({"type":"is-nan","term":"ratio"})", ExpressionKind::kIsNan, 0);
  same(R"({"type":"not-nan","term":"ratio"})", ExpressionKind::kNotNan, 0);
  same(R"({"type":"lt","term":"id","value":5})", ExpressionKind::kLess, 1);
  same(R"({"type":"lt-eq","term":"id","value":5})", ExpressionKind::kLessOrEqual, 1);
  same(R"({"type":"gt","term":"id","value":5})", ExpressionKind::kGreater, 1);
  same(R"({"type":"gt-eq","term":"id","value":5})", ExpressionKind::kGreaterOrEqual, 1);
  same(R"({"type":"eq","term":"id","value":5})", ExpressionKind::kEqual, 1);
  same(R"({"type":"not-eq","term":"id","value":5})", ExpressionKind::kNotEqual, 1);
  same(R"({"type":"starts-with","term":"name","value":"a"})", ExpressionKind::kStartsWith, 1);
  same(R"({"type":"not-starts-with","term":"name","value":"a"})", ExpressionKind::kNotStartsWith,
       1);
  same(R"({"type":"in","term":"id","values":[1,2]})", ExpressionKind::kIn, 2);
  same(R"({"type":"not-in","term":"id","values":[1]})", ExpressionKind::kNotIn, 1);
}

TEST_F(FilterJsonTest, TermsAndValuesHaveTwoForms) {
  EXPECT_EQ(Text(R"({"type":"eq","term":{"type":"reference","term":"id"},)"
                 R"("value":{"type":"literal","value":5}})"),
            Text(R"({"type":"eq","term":"id","value":5})"));
  ASSERT_OK_AND_ASSIGN(const Expression day,
                       Read(R"({"type":"eq","term":"day","value":"1970-01-03"})"));
  EXPECT_EQ(day.values[0], Literal::Long(2));
  EXPECT_THAT(Read(R"({"type":"eq","term":"day","value":2})"), IsOkAndHolds(day));
  ASSERT_OK_AND_ASSIGN(const Expression price,
                       Read(R"({"type":"eq","term":"price","value":"1.50"})"));
  EXPECT_EQ(price.values[0], Literal::Decimal(150));
}

TEST_F(FilterJsonTest, NamesAreThoseOfThePlannedSchema) {
  ASSERT_OK_AND_ASSIGN(const Expression renamed,
                       Read(R"({"type":"eq","term":"name","value":"a"})"));
  EXPECT_EQ(renamed.column, "was_name");
  EXPECT_THAT(Read(R"({"type":"eq","term":"NAME","value":"a"})"),
              FailsWith(ErrorCode::kInvalidArgument, "NAME"));
  ASSERT_OK_AND_ASSIGN(const Expression anyhow,
                       Read(R"({"type":"eq","term":"NAME","value":"a"})", CaseRule::kInsensitive));
  EXPECT_EQ(anyhow.column, "was_name");
}

TEST_F(FilterJsonTest, WhatPlanningCannotDecideIsLeftOut) {
  for (const char* json :
       {R"({"type":"eq","term":"added","value":1})", R"({"type":"eq","term":"s.x","value":1})",
        R"({"type":"is-null","term":"s"})",
        R"({"type":"eq","term":{"type":"transform","transform":"bucket[4]","term":"id"},)"
        R"("value":1})"}) {
    ASSERT_OK_AND_ASSIGN(const Expression read, Read(json));
    EXPECT_EQ(read.kind, ExpressionKind::kTrue) << json;
    // Its opposite cannot be decided either.
    ASSERT_OK_AND_ASSIGN(const Expression opposite,
                         Read(std::string(R"({"type":"not","child":)") + json + "}"));
    EXPECT_EQ(opposite.kind, ExpressionKind::kTrue) << json;
  }
}

TEST_F(FilterJsonTest, NotGoesDownToThePredicates) {
  ASSERT_OK_AND_ASSIGN(
      const Expression read,
      Read(R"({"type":"not","child":{"type":"and","left":{"type":"lt","term":"id","value":5},)"
           R"("right":{"type":"not","child":{"type":"is-null","term":"name"}}}})"));
  ASSERT_EQ(read.kind, ExpressionKind::kOr);
  EXPECT_EQ(read.children[0].kind, ExpressionKind::kGreaterOrEqual);
  EXPECT_EQ(read.children[1].kind, ExpressionKind::kIsNull);
}

TEST_F(FilterJsonTest, WrongFiltersSayWhatIsWrong) {
  for (const char* json :
       {R"("x")", "1", "[]", "{}", R"({"type":"maybe"})", R"({"type":"and","left":true})",
        R"({"type":"not"})", R"({"type":"eq","term":"id"})", R"({"type":"eq","value":1})",
        R"({"type":"eq","term":"nothing","value":1})", R"({"type":"eq","term":"id","value":"x"})",
        R"({"type":"eq","term":"id","value":null})", R"({"type":"eq","term":"s","value":1})",
        R"({"type":"in","term":"id"})", R"({"type":"in","term":"id","values":[]})",
        R"({"type":"eq","term":{"type":"other"},"value":1})",
        R"({"type":"eq","term":"day","value":"tomorrow"})"}) {
    EXPECT_THAT(Read(json), Fails(ErrorCode::kInvalidArgument)) << json;
  }
  std::string deep = "true";
  for (int i = 0; i < 150; ++i) {
    deep = R"({"type":"not","child":)" + deep + "}";
  }
  EXPECT_THAT(Read(deep), IsOk());
}

}  // namespace
}  // namespace tarn::iceberg
