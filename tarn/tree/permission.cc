#include "tarn/tree/permission.h"

#include <vector>

#include "tarn/tree/tree.h"

namespace tarn::tree {

Status Require(metastore::SqlTransaction& sql, access::Authorizer& authorizer,
               const access::Principal& principal, const Rid& rid, const Need& need) {
  TARN_ASSIGN_OR_RETURN(const std::vector<Rid> chain, AncestorChain(sql, rid));
  return authorizer.Require(sql, principal, rid, chain, need.role, need.scope);
}

Result<access::Role> RoleOn(metastore::SqlTransaction& sql, access::Authorizer& authorizer,
                            const access::Principal& principal, const Rid& rid) {
  TARN_ASSIGN_OR_RETURN(const std::vector<Rid> chain, AncestorChain(sql, rid));
  return authorizer.RoleOf(sql, principal, chain);
}

}  // namespace tarn::tree
