#include "tarn/pipeline/pipeline_spec.h"

#include <map>
#include <set>

#include <fmt/format.h>

#include "tarn/pipeline/landing_keys.h"
#include "tarn/pipeline/transform_keys.h"
#include "tarn/pipeline/yaml_reader.h"

namespace tarn::pipeline {

namespace {

bool IsPlainName(std::string_view name) {
  return !name.empty() && name.size() <= 200 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
}

void CheckName(YamlReader& keys, const std::string& name) {
  if (!IsPlainName(name)) {
    keys.Complain(name, "a name has only a-z, 0-9, _ and -");
  }
}

// A name that two tasks of this file would give to different things.
void CheckClashes(YamlReader& document, const PipelineSpec& pipeline) {
  std::map<std::string, std::string> owners;
  const auto claim = [&](const std::string& schema, const std::string& name,
                         const std::string& task) {
    const auto [owner, fresh] = owners.emplace(schema + "." + name, task);
    if (!fresh) {
      document.Complain("", fmt::format("{} and {} both need the name {}.{}: use another schema or "
                                        "prefix",
                                        owner->second, task, schema, name));
    }
  };
  for (const landing::LandingSpec& landing : pipeline.landings) {
    claim(landing.schema, landing.name, "landing." + landing.name);
    claim(landing.schema, landing.rejected_name(), "landing." + landing.name);
  }
  for (const TransformSpec& task : pipeline.transforms) {
    const std::string owner = "transform." + task.name;
    claim(task.table.internal_schema, task.table.internal_name(), owner);
    claim(task.table.external_schema, task.table.name, owner);
    claim(task.table.external_schema, task.table.history_name(), owner);
    claim(task.table.external_schema, task.table.applied_name(), owner);
  }
}

void ReadTransforms(YamlReader& document, PipelineSpec& pipeline) {
  YamlReader transforms = document.Child("transform");
  for (const std::string& name : transforms.Keys()) {
    CheckName(transforms, name);
    YamlReader keys = transforms.Child(name);
    TransformSpec spec = ReadTransform(name, keys);
    spec.table.owner = pipeline.name + "." + name;
    for (const std::string& from : spec.from) {
      if (pipeline.FindLanding(from) == nullptr) {
        keys.Complain("from", fmt::format("there is no landing task {}", from));
      }
    }
    if (pipeline.FindLanding(name) != nullptr) {
      keys.Complain("", fmt::format("a landing task has the name {}, too", name));
    }
    pipeline.transforms.push_back(std::move(spec));
  }
}

}  // namespace

const landing::LandingSpec* PipelineSpec::FindLanding(std::string_view task) const {
  for (const landing::LandingSpec& landing : landings) {
    if (landing.name == task) {
      return &landing;
    }
  }
  return nullptr;
}

Result<PipelineSpec> ParsePipeline(std::string_view yaml) {
  TARN_ASSIGN_OR_RETURN(YamlReader document, YamlReader::Parse(yaml));
  PipelineSpec pipeline;
  pipeline.name = document.RequiredText("pipeline");
  if (!pipeline.name.empty() && !IsPlainName(pipeline.name)) {
    document.Complain("pipeline", "a name has only a-z, 0-9, _ and -");
  }
  pipeline.project = document.Text("project", "default");
  std::map<std::string, SourceSpec> sources;
  YamlReader source_keys = document.Child("sources");
  for (const std::string& name : source_keys.Keys()) {
    YamlReader keys = source_keys.Child(name);
    sources[name] = ReadSource(keys);
  }
  YamlReader landings = document.Child("landing");
  for (const std::string& name : landings.Keys()) {
    CheckName(landings, name);
    YamlReader keys = landings.Child(name);
    pipeline.landings.push_back(ReadLanding(name, keys, sources));
  }
  ReadTransforms(document, pipeline);
  document.Refuse({"rules", "alerts"});
  document.Finish();
  CheckClashes(document, pipeline);
  TARN_RETURN_IF_ERROR(document.status());
  return pipeline;
}

}  // namespace tarn::pipeline
