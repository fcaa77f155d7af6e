// Keys below `transform:` of a pipeline file. Only for parse.
#pragma once

#include <string>

#include "tarn/pipeline/pipeline_spec.h"
#include "tarn/pipeline/yaml_reader.h"

namespace tarn::pipeline {

TransformSpec ReadTransform(const std::string& name, YamlReader& keys);

}  // namespace tarn::pipeline
