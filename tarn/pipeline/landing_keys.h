// Keys below `landing:` of a pipeline file. Only for parse.
#pragma once

#include <map>
#include <string>

#include "tarn/landing/landing_spec.h"
#include "tarn/pipeline/yaml_reader.h"

namespace tarn::pipeline {

/// A source by name; only those over files are offered.
struct SourceSpec {
  std::string uri;
};

SourceSpec ReadSource(YamlReader& keys);
landing::LandingSpec ReadLanding(const std::string& name, YamlReader& keys,
                                 const std::map<std::string, SourceSpec>& sources);

}  // namespace tarn::pipeline
