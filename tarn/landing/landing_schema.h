// The dataset schema that a landing task puts on its dataset.
#pragma once

#include <string>
#include <vector>

#include "tarn/format/column_set.h"
#include "tarn/format/field_type.h"
#include "tarn/landing/landing_spec.h"

namespace tarn::landing {

/// Header columns, then user columns, as fields.
std::vector<format::Field> LandingFields(const LandingSpec& spec, const format::ColumnSet& columns);
/// The same as JSON text for DatasetStore::PutSchema.
std::string MakeLandingSchema(const LandingSpec& spec, const format::ColumnSet& columns);

}  // namespace tarn::landing
