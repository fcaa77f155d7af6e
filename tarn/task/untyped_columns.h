// Columns that only ever were NULL: they have no type yet, and are taken in when they get one.
#pragma once

#include <vector>

#include "tarn/format/field_type.h"
#include "tarn/transform/mapping_spec.h"

namespace tarn::task {

/// Sets what the mapping leaves out for want of a type: of `fields`, the landed columns, those
/// without one, and such members of their structs.
void LeaveOutUntyped(const std::vector<format::Field>& fields, transform::MappingSpec& spec);

}  // namespace tarn::task
