// Physical names: where the bytes of a managed file are, chosen by the server.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tarn/base/clock.h"
#include "tarn/base/uuid.h"
#include "tarn/dataset/ids.h"

namespace tarn::dataset {

/// "<dataset uuid>/<yyyy>/<mm>/<dd>/<uuid v7>[.ext]": the day is that of the uuid, the extension
/// that of the logical path when it is short and plain. Written once, never overwritten.
std::string PhysicalName(const DatasetRid& dataset, const Uuid& file, std::string_view path);

/// When `location` was named, if it is a physical name of this dataset in exactly this form.
std::optional<Timestamp> PhysicalNameTime(const DatasetRid& dataset, std::string_view location);

}  // namespace tarn::dataset
