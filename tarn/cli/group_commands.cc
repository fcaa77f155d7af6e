#include <algorithm>
#include <cctype>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/cli/commands.h"
#include "tarn/cli/exit_code.h"

namespace tarn::cli {

namespace {

using nlohmann::json;

struct GroupOptions {
  std::string group;
  std::string description;
  std::vector<std::string> users;
  std::vector<std::string> groups;
  std::string resource;
  std::string role;
  bool everyone = false;
  bool inherited = false;
};

using Names = std::vector<std::string>;

// The ids of things listed at `target` whose name or id is given.
Result<Names> FindIds(CommandContext& context, const std::string& target, const char* name_member,
                      std::string_view kind, const Names& wanted) {
  if (wanted.empty()) {
    return Names();
  }
  TARN_ASSIGN_OR_RETURN(const json all, ListAll(context, target));
  Names ids;
  for (const std::string& name : wanted) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const json& one) {
      return one.value(name_member, "") == name || one.value("id", "") == name;
    });
    if (found == all.end()) {
      return Status::NotFound(fmt::format("there is no {} {}", kind, name));
    }
    ids.push_back(found->value("id", ""));
  }
  return ids;
}

Result<std::string> GroupTarget(CommandContext& context, const std::string& group) {
  TARN_ASSIGN_OR_RETURN(const Names ids,
                        FindIds(context, "/api/v2/admin/groups", "name", "group", {group}));
  return "/api/v2/admin/groups/" + EncodeUrl(ids.front());
}

// Ids of the users and groups that the command names.
Result<Names> Principals(CommandContext& context, const GroupOptions& options) {
  TARN_ASSIGN_OR_RETURN(Names ids, FindIds(context, "/api/v2/admin/users?preview=true", "username",
                                           "user", options.users));
  TARN_ASSIGN_OR_RETURN(const Names groups,
                        FindIds(context, "/api/v2/admin/groups", "name", "group", options.groups));
  ids.insert(ids.end(), groups.begin(), groups.end());
  return ids;
}

// In the organization of the caller: a group belongs to one at least.
Status CreateGroup(CommandContext& context, const GroupOptions& options) {
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  TARN_ASSIGN_OR_RETURN(const json me,
                        client->GetJson("/api/v2/admin/users/getCurrent?preview=true"));
  json organizations = json::array();
  organizations.push_back(me.value("organization", ""));
  return CallAndShow(context, "POST", "/api/v2/admin/groups",
                     {{"name", options.group},
                      {"description", options.description},
                      {"organizations", std::move(organizations)},
                      {"attributes", json::object()}},
                     {});
}

Status ChangeMembers(CommandContext& context, const GroupOptions& options, const char* verb) {
  TARN_ASSIGN_OR_RETURN(const Names ids, Principals(context, options));
  if (ids.empty()) {
    return UsageError("name members with --user and --group");
  }
  TARN_ASSIGN_OR_RETURN(const std::string target, GroupTarget(context, options.group));
  return CallAndShow(context, "POST", target + "/groupMembers/" + verb, {{"principalIds", ids}},
                     {});
}

struct PrincipalMembers {
  const char* id;
  const char* type;
};

// Puts the names of users and groups beside their ids. Who may not look a name up sees the id only.
Status AddNames(CommandContext& context, const PrincipalMembers& members, json& rows) {
  TARN_ASSIGN_OR_RETURN(HttpClient * client, context.Client());
  std::map<std::string, std::string> names;
  for (json& row : rows) {
    const std::string id = row.value(members.id, "");
    if (id.empty()) {
      continue;
    }
    const auto [entry, is_new] = names.try_emplace(id);
    if (is_new) {
      const bool is_group = row.value(members.type, "") == "GROUP";
      const Result<json> found =
          client->GetJson((is_group ? "/api/v2/admin/groups/" : "/api/v2/admin/users/") +
                          EncodeUrl(id) + "?preview=true");
      if (found.ok()) {
        entry->second = found->value(is_group ? "name" : "username", "");
      } else if (IsRetryable(found.status().code())) {
        return found.status();
      }
    }
    row["name"] = entry->second;
  }
  return Status::Ok();
}

Status ListMembers(CommandContext& context, const GroupOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string target, GroupTarget(context, options.group));
  TARN_ASSIGN_OR_RETURN(json members, ListAll(context, target + "/groupMembers"));
  TARN_RETURN_IF_ERROR(AddNames(context, {"principalId", "principalType"}, members));
  return ShowDocument(context, members, {"principalType", "name", "principalId"});
}

// {"roles": […]} of the principals that the command names.
Result<json> RolesBody(CommandContext& context, const GroupOptions& options) {
  std::string role = options.role;
  if (!role.empty() && role.find(':') == std::string::npos) {
    role[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(role[0])));
  }
  TARN_ASSIGN_OR_RETURN(const Names ids, Principals(context, options));
  json roles = json::array();
  for (const std::string& id : ids) {
    roles.push_back(
        {{"roleId", role},
         {"resourceRolePrincipal", {{"type", "principalIdOnly"}, {"principalId", id}}}});
  }
  if (options.everyone) {
    roles.push_back({{"roleId", role}, {"resourceRolePrincipal", {{"type", "everyone"}}}});
  }
  if (roles.empty()) {
    return UsageError("say whom with --user, --group or --everyone");
  }
  return json{{"roles", std::move(roles)}};
}

Result<std::string> RolesTarget(CommandContext& context, const GroupOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string rid, ResolveRid(context, options.resource));
  return "/api/v2/filesystem/resources/" + EncodeUrl(rid) + "/roles";
}

Status ChangeRoles(CommandContext& context, const GroupOptions& options, const char* verb) {
  TARN_ASSIGN_OR_RETURN(const json body, RolesBody(context, options));
  TARN_ASSIGN_OR_RETURN(const std::string target, RolesTarget(context, options));
  return CallAndShow(context, "POST", target + "/" + verb, body, {});
}

Status ListRoles(CommandContext& context, const GroupOptions& options) {
  TARN_ASSIGN_OR_RETURN(const std::string target, RolesTarget(context, options));
  TARN_ASSIGN_OR_RETURN(
      const json roles,
      ListAll(context, WithQuery(target, {{"includeInherited", options.inherited ? "true" : ""}})));
  json rows = json::array();
  for (const json& entry : roles) {
    const json principal = entry.value("resourceRolePrincipal", json::object());
    rows.push_back({{"role", entry.value("roleId", "")},
                    {"type", principal.value("principalType", principal.value("type", ""))},
                    {"principal", principal.value("principalId", "")}});
  }
  TARN_RETURN_IF_ERROR(AddNames(context, {"principal", "type"}, rows));
  return ShowDocument(context, rows, {"role", "type", "name", "principal"});
}

using Action = Status (*)(CommandContext&, const GroupOptions&);

CLI::App* AddCommand(CLI::App& parent, CommandContext& context, const char* name, const char* help,
                     const std::shared_ptr<GroupOptions>& options, Action action) {
  CLI::App* const command = parent.add_subcommand(name, help);
  command->callback([&context, options, action] {
    context.action = [&context, options, action] { return action(context, *options); };
  });
  return command;
}

void AddPrincipalOptions(CLI::App& command, GroupOptions& options) {
  command.add_option("--user", options.users, "name or id of a user; may be repeated");
  command.add_option("--group", options.groups, "name or id of a group; may be repeated");
}

void AddGroupCommand(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<GroupOptions>();
  CLI::App* const group = app.add_subcommand("group", "groups of users");
  group->require_subcommand(1);
  CLI::App* const create =
      AddCommand(*group, context, "create", "create a group without members", options, CreateGroup);
  create->add_option("--description", options->description, "what the group is for");
  AddCommand(*group, context, "list", "list groups", options,
             [](CommandContext& c, const GroupOptions&) -> Status {
               TARN_ASSIGN_OR_RETURN(const json groups, ListAll(c, "/api/v2/admin/groups"));
               return ShowDocument(c, groups, {"id", "name", "description"});
             });
  CLI::App* const remove =
      AddCommand(*group, context, "delete", "delete a group and what it was allowed", options,
                 [](CommandContext& c, const GroupOptions& o) -> Status {
                   TARN_ASSIGN_OR_RETURN(const std::string target, GroupTarget(c, o.group));
                   return CallAndShow(c, "DELETE", target, json(), {});
                 });
  CLI::App* const members =
      AddCommand(*group, context, "members", "list the members of a group", options, ListMembers);
  CLI::App* const add = AddCommand(
      *group, context, "add", "add members", options,
      [](CommandContext& c, const GroupOptions& o) { return ChangeMembers(c, o, "add"); });
  CLI::App* const drop = AddCommand(
      *group, context, "remove", "remove members", options,
      [](CommandContext& c, const GroupOptions& o) { return ChangeMembers(c, o, "remove"); });
  for (CLI::App* const command : {create, remove, members, add, drop}) {
    command->add_option("name", options->group, "name or id of the group")->required();
  }
  AddPrincipalOptions(*add, *options);
  AddPrincipalOptions(*drop, *options);
}

void AddRoleCommand(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<GroupOptions>();
  CLI::App* const role = app.add_subcommand("role", "roles on spaces, projects, folders, datasets");
  role->require_subcommand(1);
  CLI::App* const grant =
      AddCommand(*role, context, "grant", "give a role", options,
                 [](CommandContext& c, const GroupOptions& o) { return ChangeRoles(c, o, "add"); });
  CLI::App* const revoke = AddCommand(
      *role, context, "revoke", "take a role back", options,
      [](CommandContext& c, const GroupOptions& o) { return ChangeRoles(c, o, "remove"); });
  CLI::App* const list =
      AddCommand(*role, context, "list", "who has which role on it", options, ListRoles);
  list->add_flag("--inherited", options->inherited, "with the roles given further up");
  for (CLI::App* const command : {grant, revoke, list}) {
    command->add_option("resource", options->resource, "PROJECT, PROJECT/PATH or a RID")
        ->required();
  }
  for (CLI::App* const command : {grant, revoke}) {
    command->add_option("role", options->role, "discoverer, viewer, editor or owner")->required();
    AddPrincipalOptions(*command, *options);
    command->add_flag("--everyone", options->everyone, "all users");
  }
}

}  // namespace

void AddGroupCommands(CLI::App& app, CommandContext& context) {
  AddGroupCommand(app, context);
  AddRoleCommand(app, context);
}

}  // namespace tarn::cli
