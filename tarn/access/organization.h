// Organizations: who the users, groups and spaces of a server belong to. A fresh server has one.
//
// Each has a marking of its own; markings are labels here, roles alone decide who may do what.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/rid.h"
#include "tarn/base/uuid.h"
#include "tarn/metastore/database.h"

namespace tarn::access {

/// Value.
struct Organization {
  Rid rid;           // "ri.multipass..organization.<uuid>".
  std::string name;  // Unique, 1..256 bytes.
  std::string description;
  std::string marking_id;  // UUID text.
  std::string host{};      // Kept for clients; empty = none.
  friend bool operator==(const Organization&, const Organization&) = default;
};

/// Makes one; `rid` and `marking_id` of the argument are ignored.
/// Errors: kInvalidArgument on the name; kAlreadyExists (OrganizationNameAlreadyExists).
Result<Organization> CreateOrganization(metastore::SqlTransaction& sql, Organization organization,
                                        UuidGenerator& ids, const Clock& clock);
/// The one a server began with, to which users belong. Errors: kNotFound before Bootstrap.
Result<Organization> GetOrganization(metastore::SqlTransaction& sql);
/// Errors: kNotFound (OrganizationNotFound).
Result<Organization> GetOrganization(metastore::SqlTransaction& sql, const Rid& rid);
/// Oldest first.
Result<std::vector<Organization>> ListOrganizations(metastore::SqlTransaction& sql);
/// Writes name, description and host. Errors: as Create; kNotFound (OrganizationNotFound).
Status ReplaceOrganization(metastore::SqlTransaction& sql, const Organization& organization);

/// What a group has beside its name. Value.
struct GroupDetails {
  std::vector<Rid> organizations;      // At least one.
  std::string attributes_json = "{}";  // {name: [text, …]}
  friend bool operator==(const GroupDetails&, const GroupDetails&) = default;
};

/// Errors: kInvalidArgument (InvalidGroupOrganizations) without any; kNotFound
/// (OrganizationNotFound, GroupNotFound).
Status SetGroupDetails(metastore::SqlTransaction& sql, std::string_view group_id,
                       const GroupDetails& details);
/// A group that was made without any belongs to the first organization.
Result<GroupDetails> GetGroupDetails(metastore::SqlTransaction& sql, std::string_view group_id);

}  // namespace tarn::access
