#include "tarn/pipeline/pipeline_schema.h"

#include <nlohmann/json.hpp>

#include "tarn/pipeline/pipeline_spec.h"
#include "test/support/matchers.h"

namespace tarn::pipeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// A file with one key, without a value, in one of its mappings.
std::string FileWith(const std::string& place, const std::string& key) {
  const auto in = [&](const std::string& here) {
    return place == here ? "'" + key + "': , " : std::string();
  };
  const auto below = [&](const std::string& member) {
    return place.starts_with(member) ? member + ": {" + in(member) + "}, " : std::string();
  };
  std::string text = "pipeline: p\n";
  text += "sources: {in: {" + in("source") + "x: }}\n";
  text += "landing: {e: {" + in("landing") + below("content") + below("commit") + "x: }}\n";
  text += "transform: {t: {" + in("transform") + below("batch") + below("apply") +
          below("snapshots") + below("schema_evolution") + "x: }}\n";
  return text;
}

// The first complaint about a key is what its place gives: the readers complain in order.
std::string ComplaintAbout(const std::string& place, const std::string& key) {
  const Result<PipelineSpec> spec = ParsePipeline(FileWith(place, key));
  return spec.ok() ? "" : spec.status().message();
}

TEST(PipelineSchemaTest, IsOneDocumentWithoutOpenReferences) {
  const json schema = json::parse(PipelineSchema());
  std::vector<json> left = {schema};
  while (!left.empty()) {
    const json node = std::move(left.back());
    left.pop_back();
    if (node.is_object() && node.contains("$ref")) {
      const std::string target = node["$ref"].get<std::string>().substr(1);
      EXPECT_TRUE(schema.contains(json::json_pointer(target))) << target;
    }
    for (const json& child : node) {
      if (child.is_structured()) {
        left.push_back(child);
      }
    }
  }
}

// Whatever the schema lists is read: no complaint says that such a key is unknown or not offered.
TEST(PipelineSchemaTest, EveryListedKeyIsRead) {
  const json schema = json::parse(PipelineSchema());
  const json& landing = schema["$defs"]["landing"]["properties"];
  const json& transform = schema["$defs"]["transform"]["properties"];
  std::map<std::string, json> places = {
      {"source", schema["$defs"]["source"]["properties"]},
      {"content", schema["$defs"]["content"]["properties"]},
      {"landing", landing},
      {"transform", transform},
      {"commit", landing["commit"]["properties"]},
  };
  for (const char* member : {"batch", "apply", "snapshots", "schema_evolution"}) {
    places[member] = transform[member]["properties"];
  }
  for (const auto& [place, properties] : places) {
    ASSERT_FALSE(properties.empty()) << place;
    for (const auto& [key, value] : properties.items()) {
      const std::string complaint = ComplaintAbout(place, key);
      EXPECT_THAT(complaint, Not(HasSubstr(key + ": unknown key"))) << place;
      EXPECT_THAT(complaint, Not(HasSubstr(key + ": not available"))) << place;
    }
  }
}

TEST(PipelineSchemaTest, DescriptionsOfTasksForgetTheWriting) {
  ASSERT_OK_AND_ASSIGN(const auto block, DescribeTasks("sources:\n  in:\n    uri: a\n"
                                                       "landing:\n  e:\n    source: in\n"
                                                       "transform:\n  t:\n    key: [id]\n"));
  ASSERT_OK_AND_ASSIGN(const auto flow,
                       DescribeTasks("sources: {in: {uri: a}}\nlanding: {e: {source: in}}\n"
                                     "transform: {t: {key: [id]}}\n"));
  EXPECT_EQ(block, flow);
  ASSERT_OK_AND_ASSIGN(const auto other,
                       DescribeTasks("sources: {in: {uri: b}}\nlanding: {e: {source: in}}\n"
                                     "transform: {t: {key: [id]}}\n"));
  EXPECT_NE(block.at("landing.e"), other.at("landing.e"));
  EXPECT_EQ(block.at("transform.t"), other.at("transform.t"));
}

}  // namespace
}  // namespace tarn::pipeline
