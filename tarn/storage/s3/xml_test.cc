#include "tarn/storage/s3/xml.h"

#include "test/support/matchers.h"

namespace tarn::storage::s3 {
namespace {

TEST(XmlTest, ReadsWhatServersSend) {
  ASSERT_OK_AND_ASSIGN(
      const XmlElement root,
      ParseXml("\xEF\xBB\xBF<?xml version=\"1.0\"?>\n<!-- a --><s:List xmlns:s='http://x/>'>\n"
               "<Key>a&amp;b&lt;&#233;&#x1F600;</Key><Key><![CDATA[<&>]]></Key><Empty/>"
               "<Owner><ID >1</ID></Owner></s:List>\n"));
  EXPECT_EQ(root.name, "List");
  EXPECT_EQ(root.TextOf("Key"), "a&b<\xC3\xA9\xF0\x9F\x98\x80");
  ASSERT_EQ(root.children.size(), 4u);
  EXPECT_EQ(root.children[1].text, "<&>");
  EXPECT_EQ(root.TextOf("Empty"), "");
  EXPECT_EQ(root.Find("Missing"), nullptr);
  EXPECT_EQ(root.Find("Owner")->TextOf("ID"), "1");
}

TEST(XmlTest, EveryCutAndEveryFlipIsAnErrorOrAnElement) {
  const std::string text = "<a x=\"1\"><b>t&amp;</b><![CDATA[x]]><!--c--><d/></a>";
  EXPECT_OK(ParseXml(text));
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_THAT(ParseXml(text.substr(0, i)), Fails(ErrorCode::kCorruption)) << i;
    for (const char c : {'<', '>', '/', '&', '"', '\0', '='}) {
      std::string bad = text;
      bad[i] = c;
      (void)ParseXml(bad).ok();  // Must only end.
    }
  }
}

TEST(XmlTest, WrongDocumentsAreRefused) {
  for (const char* text :
       {"", "x", "<a>", "<a></b>", "<a/><b/>", "<a>&x;</a>", "<a>&#xD800;</a>", "<a>&#x110000;</a>",
        "<a>&#1x;</a>", "<a b></a>", "<a b=c></a>", "<!DOCTYPE a><a/>", "<a>&amp</a>", "< a/>"}) {
    EXPECT_THAT(ParseXml(text), FailsWith(ErrorCode::kCorruption, "XML is wrong at byte")) << text;
  }
  std::string deep;
  for (int i = 0; i < 100'000; ++i) {
    deep += "<a>";
  }
  EXPECT_THAT(ParseXml(deep), FailsWith(ErrorCode::kCorruption, "too many levels"));
}

TEST(XmlTest, EscapedTextComesBack) {
  const std::string text = "a<b>&c\n\t\"'";
  ASSERT_OK_AND_ASSIGN(const XmlElement root, ParseXml("<k>" + EscapeXml(text) + "</k>"));
  EXPECT_EQ(root.text, text);
}

}  // namespace
}  // namespace tarn::storage::s3
