// gmock matchers for Status and Result:
//   EXPECT_THAT(store.Head("a"), IsOk());
//   EXPECT_THAT(store.Head("a"), IsOkAndHolds(meta));
//   EXPECT_THAT(store.Head("b"), Fails(ErrorCode::kNotFound));
//   ASSERT_OK_AND_ASSIGN(const ObjectMeta meta, store.Head("a"));
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tarn/base/status.h"

namespace tarn {

MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return arg.ok();
}

MATCHER_P(Fails, code, std::string("fails with ") + std::string(ErrorCodeName(code))) {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code;
}

MATCHER_P2(FailsWith, code, text,
           std::string("fails with ") + std::string(ErrorCodeName(code)) + " saying " +
               std::string(text)) {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code &&
         StatusOf(arg).ToString().find(std::string(text)) != std::string::npos;
}

template <typename Inner>
class HoldsMatcher {
 public:
  explicit HoldsMatcher(Inner inner) : inner_(std::move(inner)) {}

  template <typename T>
  operator ::testing::Matcher<const Result<T>&>() const {  // NOLINT
    return ::testing::MakeMatcher(new Typed<T>(::testing::SafeMatcherCast<const T&>(inner_)));
  }

 private:
  template <typename T>
  class Typed : public ::testing::MatcherInterface<const Result<T>&> {
   public:
    explicit Typed(::testing::Matcher<const T&> inner) : inner_(std::move(inner)) {}
    bool MatchAndExplain(const Result<T>& result,
                         ::testing::MatchResultListener* listener) const override {
      if (!result.ok()) {
        *listener << result.status().ToString();
        return false;
      }
      return inner_.MatchAndExplain(*result, listener);
    }
    void DescribeTo(std::ostream* os) const override {
      *os << "is OK and ";
      inner_.DescribeTo(os);
    }

   private:
    ::testing::Matcher<const T&> inner_;
  };
  Inner inner_;
};

template <typename Inner>
HoldsMatcher<Inner> IsOkAndHolds(Inner inner) {
  return HoldsMatcher<Inner>(std::move(inner));
}

}  // namespace tarn

#define ASSERT_OK(expression) ASSERT_THAT((expression), ::tarn::IsOk())
#define EXPECT_OK(expression) EXPECT_THAT((expression), ::tarn::IsOk())

#define TARN_ASSERT_OK_AND_ASSIGN_(temporary, target, expression) \
  auto temporary = (expression);                                  \
  ASSERT_TRUE(temporary.ok()) << StatusOf(temporary).ToString();  \
  target = ValueOf(std::move(temporary))
#define ASSERT_OK_AND_ASSIGN(target, ...) \
  TARN_ASSERT_OK_AND_ASSIGN_(TARN_CONCAT(tarn_asserted_, __COUNTER__), target, (__VA_ARGS__))
