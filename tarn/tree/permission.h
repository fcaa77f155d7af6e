// Permission: the check that every door makes, for resources of the tree.
#pragma once

#include "tarn/access/authorizer.h"
#include "tarn/base/rid.h"
#include "tarn/metastore/database.h"

namespace tarn::tree {

/// What a caller must be allowed. Value.
struct Need {
  access::Role role = access::Role::kViewer;
  access::Scope scope = access::Scope::kFilesystemRead;
};

/// Finds the chain of `rid` and asks the authorizer. Errors: as Authorizer::Require; a missing
/// resource and one without access give the same kNotFound.
Status Require(metastore::SqlTransaction& sql, access::Authorizer& authorizer,
               const access::Principal& principal, const Rid& rid, const Need& need);

/// The role of the principal on `rid`; kNone when there is no such resource.
Result<access::Role> RoleOn(metastore::SqlTransaction& sql, access::Authorizer& authorizer,
                            const access::Principal& principal, const Rid& rid);

}  // namespace tarn::tree
