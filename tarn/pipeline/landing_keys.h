// Keys below `landing:` of a pipeline file. Only for parse.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tarn/landing/landing_spec.h"
#include "tarn/pipeline/yaml_reader.h"

namespace tarn::pipeline {

/// A source by name.
struct SourceSpec {
  std::string uri;  // Of files; "kafka:" of the other kind.
  std::optional<source::kafka::ClientSettings> kafka;
};

SourceSpec ReadSource(YamlReader& keys);
landing::LandingSpec ReadLanding(const std::string& name, YamlReader& keys,
                                 const std::map<std::string, SourceSpec>& sources);

}  // namespace tarn::pipeline
