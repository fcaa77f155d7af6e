// LandedRelation: the files of a batch as the relation that a mapping reads.
#pragma once

#include <memory>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/engine/engine.h"
#include "tarn/format/field_type.h"
#include "tarn/storage/object_store.h"
#include "tarn/task/landed_batch.h"

namespace tarn::task {

/// Makes the view `tarn_input` of the session: the landed columns `columns` of `fields` in their
/// widest types, and tarn_row. Files whose columns are all of that type are read by the engine
/// itself; otherwise all are read here and cast up.
/// Errors: those of the store; kCorruption for a broken file.
Status RegisterLanded(engine::Session& session, storage::ObjectStore& store,
                      const LandedBatch& batch, const std::vector<format::Field>& fields);

}  // namespace tarn::task
