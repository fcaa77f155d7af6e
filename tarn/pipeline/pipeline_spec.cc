#include "tarn/pipeline/pipeline_spec.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "tarn/landing/topic_names.h"
#include "tarn/pipeline/folder_name.h"
#include "tarn/pipeline/landing_keys.h"
#include "tarn/pipeline/transform_keys.h"
#include "tarn/pipeline/yaml_check.h"
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
  for (const ClaimedName& claim : ListClaims(pipeline)) {
    const auto [owner, fresh] = owners.emplace(claim.schema + "." + claim.name, claim.task);
    if (!fresh) {
      document.Complain("", fmt::format("{} and {} both need the name {}.{}: use another schema or "
                                        "prefix",
                                        owner->second, claim.task, claim.schema, claim.name));
    }
  }
}

// Without the image before it, a change of the key leaves the row of the old key where it is.
void CheckBeforeImages(YamlReader& document, const PipelineSpec& pipeline) {
  YamlReader landings = document.Child("landing");
  for (const TransformSpec& task : pipeline.transforms) {
    for (const std::string& from : task.from) {
      const std::optional<LandingInput> input = pipeline.FindInput(from);
      if (input && task.mapping.mode == transform::Mode::kMerge &&
          input->landing.envelope == landing::Envelope::kDebezium &&
          input->landing.cdc_before == landing::CdcBefore::kOff) {
        landings.Child(input->task->name)
            .Child("content")
            .Complain("cdc_before",
                      fmt::format(
                          "off cannot be read by transform.{} in mode merge, which needs the image "
                          "before a change to see that its key changed: use key or full",
                          task.name));
      }
    }
  }
}

bool CanBeKey(const format::FieldType& type) {
  switch (type.kind) {
    case format::FieldKind::kFloat:
    case format::FieldKind::kDouble:
    case format::FieldKind::kArray:
    case format::FieldKind::kMap:
    case format::FieldKind::kStruct:
      return false;
    default:
      return true;
  }
}

// The declared type of a column of the key, where the file has one.
std::optional<format::FieldType> DeclaredType(const PipelineSpec& pipeline,
                                              const TransformSpec& spec, const std::string& name) {
  for (const transform::ColumnMapping& column : spec.mapping.columns) {
    if (column.name != name) {
      continue;
    }
    if (column.type) {
      const Result<format::FieldType> type = format::ParseTypeName(*column.type);
      return type.ok() ? std::optional(*type) : std::nullopt;
    }
    if (!column.expression.empty()) {
      return std::nullopt;
    }
  }
  for (const std::string& from : spec.from) {
    const landing::LandingSpec* landing = pipeline.FindLanding(from);
    if (landing == nullptr) {
      continue;
    }
    for (const format::Field& field : landing->columns.declared) {
      if (field.name == name) {
        return field.type;
      }
    }
  }
  return std::nullopt;
}

void CheckKeyTypes(YamlReader& keys, const PipelineSpec& pipeline, const TransformSpec& spec) {
  if (spec.table.mode != lakehouse::Mode::kMerge) {
    return;
  }
  for (const std::string& name : spec.table.key) {
    const std::optional<format::FieldType> type = DeclaredType(pipeline, spec, name);
    if (type && !CanBeKey(*type)) {
      keys.Complain("key", fmt::format("{} is declared as {}, which no key can be: equal values "
                                       "are not always the same bytes",
                                       name, format::FormatTypeName(*type)));
    }
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
      if (!pipeline.FindInput(from)) {
        const landing::LandingSpec* many = pipeline.FindLanding(from);
        keys.Complain("from",
                      many != nullptr
                          ? fmt::format("{} has a dataset for each topic: name one of them", from)
                          : fmt::format("there is no landing task {}", from));
      }
    }
    // Where change events come from, the source names the key.
    const bool has_source_key =
        std::all_of(spec.from.begin(), spec.from.end(), [&](const std::string& from) {
          const std::optional<LandingInput> input = pipeline.FindInput(from);
          return !input || input->landing.envelope == landing::Envelope::kDebezium;
        });
    if (spec.table.mode == lakehouse::Mode::kMerge && spec.table.key.empty() && !has_source_key) {
      keys.Complain("", "mode merge needs key: [column, …]");
    }
    CheckKeyTypes(keys, pipeline, spec);
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

std::optional<LandingInput> PipelineSpec::FindInput(std::string_view from) const {
  for (const landing::LandingSpec& landing : landings) {
    const bool one = !landing.kafka || landing.kafka->one_dataset;
    if (one ? landing.name == from
            : landing::MayGiveDataset(landing.kafka->source.topics, from) && from != landing.name) {
      LandingInput input{.task = &landing, .landing = landing};
      input.landing.name = from;
      return input;
    }
  }
  return std::nullopt;
}

std::vector<ClaimedName> ListClaims(const PipelineSpec& pipeline) {
  std::vector<ClaimedName> claims;
  for (const landing::LandingSpec& landing : pipeline.landings) {
    for (const std::string& name : {landing.name, landing.rejected_name()}) {
      claims.push_back({landing.schema, name, "landing." + landing.name});
    }
    if (!landing.kafka || landing.kafka->one_dataset) {
      continue;
    }
    for (const std::string& topic : landing.kafka->source.topics) {
      if (topic.find('%') == std::string::npos) {
        claims.push_back(
            {landing.schema, landing::DatasetNameOf(topic), "landing." + landing.name});
      }
    }
  }
  for (const TransformSpec& task : pipeline.transforms) {
    const std::string owner = "transform." + task.name;
    const lakehouse::TableSpec& table = task.table;
    claims.push_back({table.internal_schema, table.internal_name(), owner});
    for (const std::string& name : {table.name, table.history_name(), table.applied_name()}) {
      claims.push_back({table.external_schema, name, owner});
    }
  }
  return claims;
}

Result<PipelineSpec> ParsePipeline(std::string_view yaml, const Variables& variables) {
  TARN_ASSIGN_OR_RETURN(YamlReader document, YamlReader::Parse(yaml));
  PipelineSpec pipeline;
  pipeline.name = document.RequiredText("pipeline");
  if (document.Has("pipeline") && !IsPlainName(pipeline.name)) {
    document.Complain("pipeline", "a name has only a-z, 0-9, _ and -, at least one of them");
  }
  pipeline.project = ReadFolderName(document, "project", "default");
  std::map<std::string, SourceSpec> sources;
  YamlReader source_keys = document.Child("sources");
  source_keys.Expand(variables);
  for (const std::string& name : source_keys.Keys()) {
    YamlReader keys = source_keys.Child(name);
    sources[name] = ReadSource(keys);
  }
  YamlReader landings = document.Child("landing");
  for (const std::string& name : landings.Keys()) {
    CheckName(landings, name);
    YamlReader keys = landings.Child(name);
    landing::LandingSpec landing = ReadLanding(name, keys, sources);
    if (landing.kafka) {
      landing.kafka->source.client.group = "tarn." + pipeline.name + "." + name;
    }
    pipeline.landings.push_back(std::move(landing));
  }
  ReadTransforms(document, pipeline);
  document.Refuse({"rules", "alerts"});
  document.Finish();
  CheckClashes(document, pipeline);
  CheckBeforeImages(document, pipeline);
  if (!document.status().ok()) {
    return Status::InvalidArgument(HideValues(document.status().message(), variables));
  }
  return pipeline;
}

Result<std::map<std::string, std::string>> DescribeTasks(std::string_view yaml) {
  TARN_RETURN_IF_ERROR(CheckYaml(yaml));
  std::map<std::string, std::string> tasks;
  try {
    const YAML::Node document = YAML::Load(std::string(yaml));
    const auto text = [](const YAML::Node& node) {
      YAML::Emitter emitter;
      emitter.SetMapFormat(YAML::Flow);
      emitter.SetSeqFormat(YAML::Flow);
      emitter << node;
      return std::string(emitter.c_str());
    };
    for (const char* kind : {"landing", "transform"}) {
      for (const auto& member : document[kind]) {
        std::string described = text(member.second);
        if (const YAML::Node source = member.second["source"]; source && source.IsScalar()) {
          described += "\n" + text(document["sources"][source.Scalar()]);
        }
        tasks[std::string(kind) + "." + member.first.Scalar()] = std::move(described);
      }
    }
  } catch (const YAML::Exception& exception) {
    return Status::InvalidArgument(exception.what());
  }
  return tasks;
}

}  // namespace tarn::pipeline
