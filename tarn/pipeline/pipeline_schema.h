// The JSON schema (draft 2020-12) of pipeline files, for editors: `tarn pipeline schema`.
#pragma once

#include <string_view>

namespace tarn::pipeline {

/// One JSON document. It lists exactly the keys that this version reads.
std::string_view PipelineSchema();

}  // namespace tarn::pipeline
