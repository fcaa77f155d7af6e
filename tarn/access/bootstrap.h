// Bootstrap: the organisation and the admin of a fresh metastore.
#pragma once

#include <optional>

#include "tarn/access/directory.h"
#include "tarn/access/organization.h"
#include "tarn/access/token.h"
#include "tarn/base/rid.h"
#include "tarn/metastore/database.h"

namespace tarn::access {

struct Bootstrapped {
  User admin;
  IssuedToken token;  // All scopes, no expiry; the caller writes its text to <home>/admin-token.
};

/// Creates the organisation, the user "admin", its token and its Owner grant on `root`, from which
/// all its power comes. nullopt, and no change, when any user exists already.
Result<std::optional<Bootstrapped>> Bootstrap(metastore::SqlTransaction& sql, const Rid& root,
                                              UuidGenerator& ids, const Clock& clock);

}  // namespace tarn::access
