// The enrollment: what the clients call the whole of one server. There is exactly one.
#pragma once

#include <string>
#include <string_view>

#include "tarn/base/rid.h"
#include "tarn/base/status.h"
#include "tarn/metastore/database.h"

namespace tarn::server::foundry {

/// Named after the first organization, so it is the same as long as the metastore lives.
Result<Rid> EnrollmentRid(metastore::SqlTransaction& sql);

/// Errors: EnrollmentNotFound unless `rid` is the one.
Status CheckEnrollment(metastore::SqlTransaction& sql, std::string_view rid);

}  // namespace tarn::server::foundry
