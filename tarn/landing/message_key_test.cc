#include "tarn/landing/message_key.h"

#include "test/support/matchers.h"

namespace tarn::landing {
namespace {

struct Case {
  const char* what;
  KeyColumns columns;
  std::optional<std::string> key;
  std::string value;
  std::string expected;  // Empty: the key cannot be read.
};

class MessageKeyTest : public ::testing::TestWithParam<Case> {};

TEST_P(MessageKeyTest, Joins) {
  const Case& one = GetParam();
  MessageKey key(one.columns);
  format::JsonTape value;
  ASSERT_TRUE(value.Parse(one.value).ok());
  const std::string text = one.key.value_or("");
  const LandedMessage message{.has_key = one.key.has_value(), .key = text};
  const format::RecordFailure failure = key.Join(message, value.root());
  EXPECT_EQ(failure.ok(), !one.expected.empty()) << one.what << failure.text;
  if (failure.ok()) {
    EXPECT_EQ(key.joined().text(), one.expected) << one.what;
  }
}

const KeyColumns kId{.format = KeyColumns::Format::kJson, .names = {"id"}};
const KeyColumns kTwo{.format = KeyColumns::Format::kJson, .names = {"a", "b"}};
const KeyColumns kText{.format = KeyColumns::Format::kString, .names = {"id"}};

INSTANTIATE_TEST_SUITE_P(
    All, MessageKeyTest,
    ::testing::Values(
        Case{"object", kId, R"({"id": 7, "more": 1})", R"({"x":1})", R"({"x":1,"id":7})"},
        Case{"scalar", kId, "12345678901234567890", R"({"x":1})",
             R"({"x":1,"id":12345678901234567890})"},
        Case{"two members", kTwo, R"({"b": "y", "a": null})", "{}", R"({"a":null,"b":"y"})"},
        Case{"a member is missing", kTwo, R"({"b": 1})", "{}", R"({"b":1})"},
        Case{"with schema", kId, R"({"schema": {"type": "struct"}, "payload": {"id": 7}})", "{}",
             R"({"id":7})"},
        Case{"text", kText, "a\"b", R"({"x":1})", R"({"x":1,"id":"a\"b"})"},
        Case{"empty text", kText, "", "{}", R"({"id":""})"},
        Case{"the key wins over the value", kId, R"({"id": 7})", R"({"ID": 8, "x": [1, 2]})",
             R"({"x":[1, 2],"id":7})"},
        Case{"no key: the value has it", kId, std::nullopt, R"({"id": 8})", R"({"id":8})"},
        Case{"names with escapes", kId, R"({"id": 7})", R"({"a\nb": 1})", R"({"a\nb":1,"id":7})"},
        Case{"no JSON", kId, "abc", "{}", ""}, Case{"a scalar for two", kTwo, "1", "{}", ""},
        Case{"no UTF-8", kText, "\xff", "{}", ""}));

}  // namespace
}  // namespace tarn::landing
