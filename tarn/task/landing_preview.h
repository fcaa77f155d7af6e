// What a landing task would read: its files, and the first rows as they would land. Changes
// nothing. Only for control.cc.
#pragma once

#include <memory>
#include <optional>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/landing/landing_spec.h"
#include "tarn/source/files/files_source.h"
#include "tarn/task/control.h"

namespace tarn::task {

/// The files that a run would read now, given what the task landed before; and why not the rest.
/// Errors: kNotFound when the source is not there.
Result<source::files::FilesPreview> PreviewLanding(const ControlDeps& deps,
                                                   const std::optional<Rid>& project,
                                                   const landing::LandingSpec& landing);

/// The first rows of the source, as if nothing had landed; records that would be rejected are
/// left out. Null when there are none. Reads until `rows_max` rows or 64 MiB.
Result<std::shared_ptr<arrow::RecordBatch>> SampleLanding(const ControlDeps& deps,
                                                          landing::LandingSpec landing,
                                                          int64_t rows_max);

}  // namespace tarn::task
