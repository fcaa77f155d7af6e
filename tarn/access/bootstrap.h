// Bootstrap: the organisation and the admin of a fresh metastore.
#pragma once

#include <optional>
#include <string>

#include "tarn/access/directory.h"
#include "tarn/access/token.h"
#include "tarn/base/rid.h"
#include "tarn/metastore/database.h"

namespace tarn::access {

/// The one organisation of a server, to which all users and spaces belong. Value.
struct Organization {
  Rid rid;  // "ri.multipass..organization.<uuid>".
  std::string name;
  std::string description;
  std::string marking_id;  // UUID text.
  friend bool operator==(const Organization&, const Organization&) = default;
};

struct Bootstrapped {
  User admin;
  IssuedToken token;  // All scopes, no expiry; the caller writes its text to <home>/admin-token.
};

/// Creates the organisation, the user "admin", its token and its Owner grant on `root`, from which
/// all its power comes. nullopt, and no change, when any user exists already.
Result<std::optional<Bootstrapped>> Bootstrap(metastore::SqlTransaction& sql, const Rid& root,
                                              UuidGenerator& ids, const Clock& clock);

/// Errors: kNotFound before Bootstrap.
Result<Organization> GetOrganization(metastore::SqlTransaction& sql);
/// Errors: kInvalidArgument on an empty name; kNotFound.
Status ReplaceOrganization(metastore::SqlTransaction& sql, const Rid& rid, std::string_view name,
                           std::string_view description);

}  // namespace tarn::access
