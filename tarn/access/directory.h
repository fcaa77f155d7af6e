// Directory: users, service users and groups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/uuid.h"
#include "tarn/metastore/database.h"

namespace tarn::access {

enum class UserKind : uint8_t { kPerson = 0, kService = 1 };
enum class UserStatus : uint8_t { kActive = 0, kDeleted = 1 };

/// A user or service user. Value.
struct User {
  std::string id;        // UUID text; never reused.
  std::string username;  // Unique among active users, 1..256 bytes.
  std::string given_name;
  std::string family_name;
  std::string email;
  UserKind kind = UserKind::kPerson;
  UserStatus status = UserStatus::kActive;
  Timestamp created{};
  friend bool operator==(const User&, const User&) = default;
};

/// Value.
struct Group {
  std::string id;    // UUID text.
  std::string name;  // Unique, 1..256 bytes.
  std::string description;
  Timestamp created{};
  friend bool operator==(const Group&, const Group&) = default;
};

enum class MemberKind : uint8_t { kUser = 0, kGroup = 1 };

/// A direct member of a group. Value.
struct GroupMember {
  std::string principal_id;
  MemberKind kind = MemberKind::kUser;
  std::optional<Timestamp> expiration;  // Exclusive: no member from then on.
  friend bool operator==(const GroupMember&, const GroupMember&) = default;
};

/// Which users or groups to list, in the order of their ids.
struct DirectoryPage {
  std::string prefix;    // Case-insensitive (ASCII) prefix of any of the names; empty = all.
  std::string after_id;  // Exclusive; empty = from the beginning.
  int64_t limit = 1000;
};

/// Creates and changes; reading is by the free functions below. Threads: any; holds nothing but
/// its dependencies, which must outlive it.
class Directory {
 public:
  Directory(UuidGenerator& ids, const Clock& clock) : ids_(ids), clock_(clock) {}

  /// `user` without id, status and time. Errors: kInvalidArgument; kAlreadyExists.
  Result<User> CreateUser(metastore::SqlTransaction& sql, User user);
  /// Marks the user deleted, revokes its tokens, ends its memberships and grants.
  /// Errors: kNotFound; kInvalidArgument (reason UserDeleted).
  Status DeleteUser(metastore::SqlTransaction& sql, std::string_view user_id);
  /// Errors: kInvalidArgument; kAlreadyExists (reason GroupNameAlreadyExists).
  Result<Group> CreateGroup(metastore::SqlTransaction& sql, std::string_view name,
                            std::string_view description);
  /// Errors: kNotFound; kAlreadyExists.
  Status ReplaceGroup(metastore::SqlTransaction& sql, std::string_view group_id,
                      std::string_view name, std::string_view description);
  /// Ends its memberships and grants. Errors: kNotFound.
  Status DeleteGroup(metastore::SqlTransaction& sql, std::string_view group_id);
  /// Adds or re-dates one member. Errors: kNotFound (reasons GroupNotFound, PrincipalNotFound);
  /// kInvalidArgument when a group would contain itself or the expiration is over.
  Status AddMember(metastore::SqlTransaction& sql, std::string_view group_id,
                   std::string_view principal_id, std::optional<Timestamp> expiration);
  /// No member: success. Errors: kNotFound (GroupNotFound).
  Status RemoveMember(metastore::SqlTransaction& sql, std::string_view group_id,
                      std::string_view principal_id);

 private:
  UuidGenerator& ids_;
  const Clock& clock_;
};

/// Errors: kNotFound (reason UserNotFound). Deleted users are found.
Result<User> GetUser(metastore::SqlTransaction& sql, std::string_view user_id);
/// The active user of that name.
Result<std::optional<User>> FindUserByName(metastore::SqlTransaction& sql,
                                           std::string_view username);
Result<std::vector<User>> ListUsers(metastore::SqlTransaction& sql, const DirectoryPage& page,
                                    UserStatus status = UserStatus::kActive);
/// Errors: kNotFound (reason GroupNotFound).
Result<Group> GetGroup(metastore::SqlTransaction& sql, std::string_view group_id);
Result<std::optional<Group>> FindGroupByName(metastore::SqlTransaction& sql, std::string_view name);
Result<std::vector<Group>> ListGroups(metastore::SqlTransaction& sql, const DirectoryPage& page);
/// Direct members, also expired ones, by principal id. Errors: kNotFound (GroupNotFound).
Result<std::vector<GroupMember>> ListMembers(metastore::SqlTransaction& sql,
                                             std::string_view group_id);
enum class Reach : uint8_t { kDirect, kTransitive };

/// The groups of a principal at a time. Value.
struct Memberships {
  std::vector<std::string> group_ids;    // Sorted.
  std::optional<Timestamp> next_expiry;  // When the first of them ends; none = never.
  friend bool operator==(const Memberships&, const Memberships&) = default;
};

/// Groups that `principal_id` is in at `now`: its own, and with kTransitive theirs too.
Result<Memberships> ReadMemberships(metastore::SqlTransaction& sql, std::string_view principal_id,
                                    Timestamp now, Reach reach);

}  // namespace tarn::access
