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

/// A location as file rows hold it: a physical name as '~', its two identifiers
/// in base 64 and its extension, about half as long; any other as it is, behind
/// '~' when it begins with one.
std::string ShortenLocation(std::string_view location);
/// The location behind what ShortenLocation made, into a string that keeps its
/// room.
void AssignLocation(std::string_view stored, std::string& location);

}  // namespace tarn::dataset
