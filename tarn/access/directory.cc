#include "tarn/access/directory.h"

#include <algorithm>
#include <set>

#include "tarn/access/schema.h"
#include "tarn/access/token.h"
#include "tarn/base/json_text.h"

namespace tarn::access {

namespace {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

constexpr size_t kNameBytesMax = 256;
constexpr std::string_view kUserColumns =
    "SELECT id, username, given_name, family_name, email, kind, status, created FROM access_users ";
constexpr std::string_view kGroupColumns =
    "SELECT id, name, description, created FROM access_groups ";

std::string Select(std::string_view columns, std::string_view rest) {
  return std::string(columns).append(rest);
}

User UserOf(const SqlRow& row) {
  return {.id = std::string(row.Text(0)),
          .username = std::string(row.Text(1)),
          .given_name = std::string(row.Text(2)),
          .family_name = std::string(row.Text(3)),
          .email = std::string(row.Text(4)),
          .kind = static_cast<UserKind>(row.Int(5)),
          .status = static_cast<UserStatus>(row.Int(6)),
          .created = FromMicros(row.Int(7))};
}

Group GroupOf(const SqlRow& row) {
  return {.id = std::string(row.Text(0)),
          .name = std::string(row.Text(1)),
          .description = std::string(row.Text(2)),
          .created = FromMicros(row.Int(3))};
}

template <typename T>
Result<std::vector<T>> ReadAll(SqlTransaction& sql, const std::string& text,
                               const metastore::SqlArguments& arguments, T (*read)(const SqlRow&)) {
  std::vector<T> values;
  TARN_RETURN_IF_ERROR(sql.Query(text, arguments, [&](const SqlRow& row) {
    values.push_back(read(row));
    return Result<RowAction>(RowAction::kContinue);
  }));
  return values;
}

template <typename T>
std::optional<T> FirstOf(std::vector<T> values) {
  return values.empty() ? std::optional<T>() : std::optional<T>(std::move(values.front()));
}

Status CheckName(std::string_view kind, std::string_view name) {
  if (name.empty() || name.size() > kNameBytesMax || name.find('\0') != std::string_view::npos) {
    return Status::InvalidArgument("a " + std::string(kind) +
                                   " name has 1 to 256 bytes and no NUL, found " +
                                   std::to_string(name.size()) + " bytes");
  }
  return {};
}

Status UserNotFound(std::string_view id) {
  return Status::NotFound("no user " + std::string(id))
      .WithReason("UserNotFound", JsonObject({{"userId", id}}));
}

Status GroupNotFound(std::string_view id) {
  return Status::NotFound("no group " + std::string(id))
      .WithReason("GroupNotFound", JsonObject({{"groupId", id}}));
}

// The violated index is told only by position, so the insert is the check.
Status NameTaken(const Status& status, std::string_view name, std::string_view reason,
                 std::string_view parameter) {
  if (status.code() != ErrorCode::kAlreadyExists) {
    return status;
  }
  return Status::AlreadyExists("the name \"" + std::string(name) + "\" is taken")
      .WithReason(std::string(reason), JsonObject({{parameter, name}}));
}

std::string LowerAscii(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

Status EndPrincipal(SqlTransaction& sql, const std::string& id) {
  TARN_RETURN_IF_ERROR(sql.Execute("DELETE FROM access_members WHERE principal_id = ?1", {id}));
  TARN_RETURN_IF_ERROR(sql.Execute("DELETE FROM access_grants WHERE principal_id = ?1", {id}));
  return RenewAccessStamp(sql);
}

// Earlier than any expiration: reads memberships whatever their dates.
constexpr Timestamp kBeginning = Timestamp::min();

Result<MemberKind> KindOfPrincipal(SqlTransaction& sql, std::string_view id) {
  const Result<User> user = GetUser(sql, id);
  if (user.ok() && user->status == UserStatus::kActive) {
    return MemberKind::kUser;
  }
  const Result<Group> group = GetGroup(sql, id);
  if (group.ok()) {
    return MemberKind::kGroup;
  }
  if (group.status().code() != ErrorCode::kNotFound) {
    return group.status();
  }
  return Status::NotFound("no active user and no group " + std::string(id))
      .WithReason("PrincipalNotFound", JsonObject({{"principalId", id}}));
}

}  // namespace

Result<User> Directory::CreateUser(SqlTransaction& sql, User user) {
  TARN_RETURN_IF_ERROR(CheckName("user", user.username));
  user.id = ids_.NextV4().ToString();
  user.status = UserStatus::kActive;
  user.created = clock_.Now();
  const Result<int64_t> inserted = sql.Execute(
      "INSERT INTO access_users (id, username, given_name, family_name, email, kind, status, "
      "created) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7)",
      {user.id, user.username, user.given_name, user.family_name, user.email,
       static_cast<int64_t>(user.kind), ToMicros(user.created)});
  TARN_RETURN_IF_ERROR(
      NameTaken(inserted.status(), user.username, "UserNameAlreadyExists", "username"));
  TARN_RETURN_IF_ERROR(RenewAccessStamp(sql));
  return user;
}

Status Directory::DeleteUser(SqlTransaction& sql, std::string_view user_id) {
  TARN_ASSIGN_OR_RETURN(const User user, GetUser(sql, user_id));
  if (user.status == UserStatus::kDeleted) {
    return Status::InvalidArgument("user " + user.id + " is deleted already")
        .WithReason("UserDeleted", JsonObject({{"principalId", user.id}}));
  }
  TARN_RETURN_IF_ERROR(sql.Execute(
      "UPDATE access_users SET status = 1, client_secret_hash = NULL WHERE id = ?1", {user.id}));
  Tokens tokens(ids_, clock_);
  TARN_RETURN_IF_ERROR(tokens.RevokeAllOf(sql, user.id));
  return EndPrincipal(sql, user.id);
}

Result<Group> Directory::CreateGroup(SqlTransaction& sql, std::string_view name,
                                     std::string_view description) {
  TARN_RETURN_IF_ERROR(CheckName("group", name));
  Group group{.id = ids_.NextV4().ToString(),
              .name = std::string(name),
              .description = std::string(description),
              .created = clock_.Now()};
  const Result<int64_t> inserted = sql.Execute(
      "INSERT INTO access_groups (id, name, description, created) "
      "VALUES (?1, ?2, ?3, ?4)",
      {group.id, group.name, group.description, ToMicros(group.created)});
  TARN_RETURN_IF_ERROR(NameTaken(inserted.status(), name, "GroupNameAlreadyExists", "groupName"));
  return group;
}

Status Directory::ReplaceGroup(SqlTransaction& sql, std::string_view group_id,
                               std::string_view name, std::string_view description) {
  TARN_RETURN_IF_ERROR(CheckName("group", name));
  const Result<int64_t> updated =
      sql.Execute("UPDATE access_groups SET name = ?2, description = ?3 WHERE id = ?1",
                  {std::string(group_id), std::string(name), std::string(description)});
  TARN_RETURN_IF_ERROR(NameTaken(updated.status(), name, "GroupNameAlreadyExists", "groupName"));
  return *updated == 0 ? GroupNotFound(group_id) : Status();
}

Status Directory::DeleteGroup(SqlTransaction& sql, std::string_view group_id) {
  TARN_ASSIGN_OR_RETURN(const Group group, GetGroup(sql, group_id));
  TARN_RETURN_IF_ERROR(sql.Execute("DELETE FROM access_members WHERE group_id = ?1", {group.id}));
  TARN_RETURN_IF_ERROR(
      sql.Execute("DELETE FROM access_group_organizations WHERE group_id = ?1", {group.id}));
  TARN_RETURN_IF_ERROR(sql.Execute("DELETE FROM access_groups WHERE id = ?1", {group.id}));
  return EndPrincipal(sql, group.id);
}

Status Directory::AddMember(SqlTransaction& sql, std::string_view group_id,
                            std::string_view principal_id, std::optional<Timestamp> expiration) {
  TARN_ASSIGN_OR_RETURN(const Group group, GetGroup(sql, group_id));
  TARN_ASSIGN_OR_RETURN(const MemberKind kind, KindOfPrincipal(sql, principal_id));
  if (expiration.has_value() && *expiration <= clock_.Now()) {
    return Status::InvalidArgument("the membership would end before it begins: " +
                                   FormatTimestamp(*expiration))
        .WithReason("InvalidGroupMembershipExpiration",
                    JsonObject({{"groupId", group.id},
                                {"earliestExpiration", FormatTimestamp(clock_.Now())}}));
  }
  if (kind == MemberKind::kGroup) {
    TARN_ASSIGN_OR_RETURN(const Memberships above,
                          ReadMemberships(sql, group.id, kBeginning, Reach::kTransitive));
    if (principal_id == group.id ||
        std::binary_search(above.group_ids.begin(), above.group_ids.end(), principal_id)) {
      return Status::InvalidArgument("group " + group.id + " would contain itself through " +
                                     std::string(principal_id));
    }
  }
  metastore::SqlValue until;
  if (expiration.has_value()) {
    until = ToMicros(*expiration);
  }
  TARN_RETURN_IF_ERROR(
      sql.Execute("INSERT INTO access_members (group_id, principal_id, kind, expiration) "
                  "VALUES (?1, ?2, ?3, ?4) ON CONFLICT (group_id, principal_id) "
                  "DO UPDATE SET expiration = excluded.expiration",
                  {group.id, std::string(principal_id), static_cast<int64_t>(kind), until}));
  return RenewAccessStamp(sql);
}

Status Directory::RemoveMember(SqlTransaction& sql, std::string_view group_id,
                               std::string_view principal_id) {
  TARN_ASSIGN_OR_RETURN(const Group group, GetGroup(sql, group_id));
  TARN_RETURN_IF_ERROR(
      sql.Execute("DELETE FROM access_members WHERE group_id = ?1 AND principal_id = ?2",
                  {group.id, std::string(principal_id)}));
  return RenewAccessStamp(sql);
}

Result<User> GetUser(SqlTransaction& sql, std::string_view user_id) {
  TARN_ASSIGN_OR_RETURN(std::vector<User> users, ReadAll(sql, Select(kUserColumns, "WHERE id = ?1"),
                                                         {std::string(user_id)}, UserOf));
  if (users.empty()) {
    return UserNotFound(user_id);
  }
  return std::move(users.front());
}

Result<std::optional<User>> FindUserByName(SqlTransaction& sql, std::string_view username) {
  TARN_ASSIGN_OR_RETURN(std::vector<User> users,
                        ReadAll(sql, Select(kUserColumns, "WHERE username = ?1 AND status = 0"),
                                {std::string(username)}, UserOf));
  return FirstOf(std::move(users));
}

Result<std::vector<User>> ListUsers(SqlTransaction& sql, const DirectoryPage& page,
                                    UserStatus status) {
  return ReadAll(sql,
                 Select(kUserColumns,
                        "WHERE id > ?1 AND status = ?2 AND "
                        "(substr(lower(username), 1, length(?3)) = ?3 OR "
                        "substr(lower(given_name), 1, length(?3)) = ?3 OR "
                        "substr(lower(family_name), 1, length(?3)) = ?3) ORDER BY id LIMIT ?4"),
                 {page.after_id, static_cast<int64_t>(status), LowerAscii(page.prefix), page.limit},
                 UserOf);
}

Result<Group> GetGroup(SqlTransaction& sql, std::string_view group_id) {
  TARN_ASSIGN_OR_RETURN(
      std::vector<Group> groups,
      ReadAll(sql, Select(kGroupColumns, "WHERE id = ?1"), {std::string(group_id)}, GroupOf));
  if (groups.empty()) {
    return GroupNotFound(group_id);
  }
  return std::move(groups.front());
}

Result<std::optional<Group>> FindGroupByName(SqlTransaction& sql, std::string_view name) {
  TARN_ASSIGN_OR_RETURN(
      std::vector<Group> groups,
      ReadAll(sql, Select(kGroupColumns, "WHERE name = ?1"), {std::string(name)}, GroupOf));
  return FirstOf(std::move(groups));
}

Result<std::vector<Group>> ListGroups(SqlTransaction& sql, const DirectoryPage& page) {
  return ReadAll(sql,
                 Select(kGroupColumns,
                        "WHERE id > ?1 AND substr(lower(name), 1, length(?2)) = ?2 "
                        "ORDER BY id LIMIT ?3"),
                 {page.after_id, LowerAscii(page.prefix), page.limit}, GroupOf);
}

Result<std::vector<GroupMember>> ListMembers(SqlTransaction& sql, std::string_view group_id) {
  TARN_RETURN_IF_ERROR(GetGroup(sql, group_id));
  std::vector<GroupMember> members;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT principal_id, kind, expiration FROM access_members WHERE group_id = ?1 "
                "ORDER BY principal_id",
                {std::string(group_id)}, [&](const SqlRow& row) {
                  GroupMember member{.principal_id = std::string(row.Text(0)),
                                     .kind = static_cast<MemberKind>(row.Int(1))};
                  if (!row.IsNull(2)) {
                    member.expiration = FromMicros(row.Int(2));
                  }
                  members.push_back(std::move(member));
                  return Result<RowAction>(RowAction::kContinue);
                }));
  return members;
}

Result<Memberships> ReadMemberships(SqlTransaction& sql, std::string_view principal_id,
                                    Timestamp now, Reach reach) {
  Memberships memberships;
  std::set<std::string> seen;
  std::vector<std::string> to_visit = {std::string(principal_id)};
  while (!to_visit.empty()) {
    const std::string id = std::move(to_visit.back());
    to_visit.pop_back();
    TARN_RETURN_IF_ERROR(sql.Query(
        "SELECT group_id, expiration FROM access_members WHERE principal_id = ?1 "
        "AND (expiration IS NULL OR expiration > ?2)",
        {id, ToMicros(now)}, [&](const SqlRow& row) {
          std::string group(row.Text(0));
          if (!row.IsNull(1)) {
            const Timestamp end = FromMicros(row.Int(1));
            memberships.next_expiry = std::min(memberships.next_expiry.value_or(end), end);
          }
          if (seen.insert(group).second && reach == Reach::kTransitive) {
            to_visit.push_back(std::move(group));
          }
          return Result<RowAction>(RowAction::kContinue);
        }));
  }
  memberships.group_ids.assign(seen.begin(), seen.end());
  return memberships;
}

}  // namespace tarn::access
