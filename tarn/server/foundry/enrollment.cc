#include "tarn/server/foundry/enrollment.h"

#include "tarn/access/organization.h"
#include "tarn/base/json_text.h"

namespace tarn::server::foundry {

Result<Rid> EnrollmentRid(metastore::SqlTransaction& sql) {
  TARN_ASSIGN_OR_RETURN(const access::Organization first, access::GetOrganization(sql));
  return Rid::Parse("ri.control-panel.main.customer." + std::string(first.rid.locator()));
}

Status CheckEnrollment(metastore::SqlTransaction& sql, std::string_view rid) {
  TARN_ASSIGN_OR_RETURN(const Rid known, EnrollmentRid(sql));
  if (known.ToString() != rid) {
    return Status::NotFound("there is no enrollment " + JsonString(rid))
        .WithReason("EnrollmentNotFound", JsonObject({{"enrollmentRid", rid}}));
  }
  return Status::Ok();
}

}  // namespace tarn::server::foundry
