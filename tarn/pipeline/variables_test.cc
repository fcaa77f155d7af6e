#include "tarn/pipeline/variables.h"

#include "tarn/pipeline/pipeline_spec.h"
#include "test/support/matchers.h"

namespace tarn::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kFile = R"yaml(pipeline: p
sources:
  in: {type: files, uri: "file:///${ROOT}/${ROOT}/${SUB_1}"}
landing:
  events: {source: in}
transform:
  t: {from: events, key: [id], where: "${a} > 1"}
)yaml";

TEST(VariablesTest, NamesStandUnderSourcesOnly) {
  EXPECT_THAT(FindVariables("${A}x${B}${A}"), ElementsAre("A", "B"));
  EXPECT_THAT(FindVariables("$A {B} ${"), ElementsAre());
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names, ListVariables(kFile));
  EXPECT_THAT(names, ElementsAre("ROOT", "SUB_1"));
  EXPECT_THAT(ListVariables("a: ["), FailsWith(ErrorCode::kInvalidArgument, ""));
}

TEST(VariablesTest, ValuesAreNotExpandedAgain) {
  const Variables variables = {{"A", "${B}"}, {"B", "b"}};
  ASSERT_OK_AND_ASSIGN(const std::string text, ExpandVariables("<${A}|${B}>", variables));
  EXPECT_EQ(text, "<${B}|b>");
  EXPECT_THAT(ExpandVariables("${C}", variables), FailsWith(ErrorCode::kInvalidArgument, "${C}"));
  for (const char* bad : {"${", "${}", "${1A}", "${A B}", "${A"}) {
    EXPECT_THAT(ExpandVariables(bad, variables), FailsWith(ErrorCode::kInvalidArgument, "${NAME}"))
        << bad;
  }
}

TEST(VariablesTest, ValuesAreHiddenLongestFirst) {
  const Variables variables = {{"A", "secret"}, {"B", "secret-too"}, {"C", "no"}};
  EXPECT_EQ(HideValues("secret-too secret no", variables), "${B} ${A} no");
  EXPECT_EQ(HideValues("", variables), "");
}

TEST(VariablesTest, AFileIsReadWithItsValues) {
  const Variables variables = {{"ROOT", "data: {x}"}, {"SUB_1", "in"}};
  ASSERT_OK_AND_ASSIGN(const PipelineSpec spec, ParsePipeline(kFile, variables));
  EXPECT_EQ(spec.landings[0].source_uri, "file:///data: {x}/data: {x}/in");
  EXPECT_EQ(spec.transforms[0].mapping.where, "${a} > 1");
}

TEST(VariablesTest, AMissingValueNamesItsPlace) {
  EXPECT_THAT(
      ParsePipeline(kFile, {{"ROOT", "x"}}),
      FailsWith(ErrorCode::kInvalidArgument, "line 3, column 21: sources.in.uri: ${SUB_1}"));
}

TEST(VariablesTest, NoComplaintShowsAValue) {
  const Result<PipelineSpec> spec =
      ParsePipeline("pipeline: p\nsources:\n  in: {type: \"${TYPE}\", uri: \"file:///x\"}\n",
                    {{"TYPE", "topsecret"}});
  ASSERT_FALSE(spec.ok());
  EXPECT_THAT(spec.status().message(), Not(HasSubstr("topsecret")));
  EXPECT_THAT(spec.status().message(), HasSubstr("${TYPE}"));
}

}  // namespace
}  // namespace tarn::pipeline
