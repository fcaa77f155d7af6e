// Names of folders and projects in a pipeline file.
#pragma once

#include <string>
#include <string_view>

#include "tarn/pipeline/yaml_reader.h"

namespace tarn::pipeline {

/// The text of `key`, or `otherwise`: the name of a folder that the tree and the catalog both take.
/// Complains about any other: one with a slash, control characters (the protocol of the catalog
/// separates levels by one of them) or a blank at an end, which nobody would see.
std::string ReadFolderName(YamlReader& keys, std::string_view key, const std::string& otherwise);

}  // namespace tarn::pipeline
