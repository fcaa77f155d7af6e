#include "tarn/query/resource_name.h"

#include <deque>

#include <fmt/format.h>

#include "tarn/tree/permission.h"

namespace tarn::query {

namespace {

using metastore::SqlTransaction;
using tree::Node;
using tree::NodeType;

bool IsReadable(NodeType type) {
  return type == NodeType::kDataset || type == NodeType::kTable || type == NodeType::kView;
}

std::string Joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, "."));
}

// Calls `visit` for the children of a folder, all pages.
template <typename Visit>
Status VisitChildren(SqlTransaction& sql, const Rid& folder, const Visit& visit) {
  tree::ChildrenRequest request{.parent = folder, .page_token = {}};
  while (true) {
    TARN_ASSIGN_OR_RETURN(const tree::ChildrenPage page, tree::ListChildren(sql, request));
    for (const Node& node : page.nodes) {
      TARN_RETURN_IF_ERROR(visit(node));
    }
    if (page.next_page_token.empty()) {
      return Status::Ok();
    }
    request.page_token = page.next_page_token;
  }
}

// The node below `root` at the end of `levels`, all but the last of them folders.
Result<std::optional<Node>> FindBelow(SqlTransaction& sql, const Rid& root,
                                      std::span<const std::string> levels) {
  std::optional<Node> node;
  Rid folder = root;
  for (const std::string& level : levels) {
    TARN_ASSIGN_OR_RETURN(node, tree::FindChild(sql, folder, level));
    if (!node) {
      return node;
    }
    folder = node->rid;
  }
  return node;
}

// Everything readable in the project that has this name and that the principal may view.
Result<std::vector<Node>> FindByShortName(SqlTransaction& sql, const NameScope& scope,
                                          const std::string& name) {
  std::vector<Node> found;
  std::deque<Rid> folders = {scope.project};
  size_t visited = 0;
  while (!folders.empty()) {
    const Rid folder = folders.front();
    folders.pop_front();
    if (++visited > kFoldersSearchedMax) {
      return Status::InvalidArgument(
          fmt::format("the project has more than {} folders: write folder.{} instead of {}",
                      kFoldersSearchedMax, name, name));
    }
    TARN_RETURN_IF_ERROR(VisitChildren(sql, folder, [&](const Node& node) -> Status {
      if (tree::IsFolderLike(node.type)) {
        folders.push_back(node.rid);
      } else if (IsReadable(node.type) && node.name == name) {
        TARN_ASSIGN_OR_RETURN(const access::Role role,
                              tree::RoleOn(sql, scope.authorizer, scope.principal, node.rid));
        if (role >= access::Role::kViewer) {
          found.push_back(node);
        }
      }
      return Status::Ok();
    }));
  }
  return found;
}

Result<Node> GetByShortName(SqlTransaction& sql, const NameScope& scope, const std::string& name) {
  if (!scope.folders.empty()) {
    std::vector<std::string> levels = scope.folders;
    levels.push_back(name);
    TARN_ASSIGN_OR_RETURN(const std::optional<Node> beside, FindBelow(sql, scope.project, levels));
    if (beside) {
      return *beside;
    }
  }
  TARN_ASSIGN_OR_RETURN(const std::vector<Node> found, FindByShortName(sql, scope, name));
  if (found.size() == 1) {
    return found.front();
  }
  if (found.empty()) {
    return Status::NotFound(fmt::format(
        "\"{}\" does not exist: the project has no table, view or dataset of that name", name));
  }
  std::vector<std::string> paths;
  for (const Node& node : found) {
    TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, node.rid));
    paths.push_back(fmt::format("{} ({})", located.path, tree::NodeTypeName(node.type)));
  }
  return Status::InvalidArgument(fmt::format("\"{}\" is not unique, write folder.{}: there are {}",
                                             name, name, fmt::join(paths, ", ")));
}

// A name of two parts or more: folders of the project, or a project before them.
Result<Node> GetByQualifiedName(SqlTransaction& sql, const NameScope& scope,
                                const std::vector<std::string>& parts) {
  TARN_ASSIGN_OR_RETURN(std::optional<Node> node, FindBelow(sql, scope.project, parts));
  if (!node && parts.size() > 2) {
    Result<Node> project = FindProject(sql, parts.front());
    if (project.ok()) {
      TARN_ASSIGN_OR_RETURN(node, FindBelow(sql, project->rid, std::span(parts).subspan(1)));
    } else if (project.status().code() != ErrorCode::kNotFound) {
      return project.status();
    }
  }
  if (!node) {
    return Status::NotFound(fmt::format("table, view or dataset {} does not exist", Joined(parts)));
  }
  return *std::move(node);
}

Result<Node> GetByParts(SqlTransaction& sql, const NameScope& scope,
                        const std::vector<std::string>& parts) {
  if (parts.size() != 1) {
    return GetByQualifiedName(sql, scope, parts);
  }
  const std::string& name = parts.front();
  if (IsRid(name)) {
    TARN_ASSIGN_OR_RETURN(const Rid rid, Rid::Parse(name));
    return tree::GetNode(sql, rid);
  }
  if (name.starts_with('/')) {
    return tree::GetByPath(sql, name);
  }
  return GetByShortName(sql, scope, name);
}

}  // namespace

Result<Node> FindProject(SqlTransaction& sql, std::string_view name) {
  std::vector<Node> found;
  if (IsRid(name)) {
    TARN_ASSIGN_OR_RETURN(const Rid rid, Rid::Parse(name));
    TARN_ASSIGN_OR_RETURN(Node node, tree::GetNode(sql, rid));
    found.push_back(std::move(node));
  } else if (name.find('/') != std::string_view::npos) {
    TARN_ASSIGN_OR_RETURN(Node node, tree::GetByPath(sql, name));
    found.push_back(std::move(node));
  } else {
    TARN_RETURN_IF_ERROR(VisitChildren(sql, tree::RootRid(), [&](const Node& space) -> Status {
      TARN_ASSIGN_OR_RETURN(std::optional<Node> node, tree::FindChild(sql, space.rid, name));
      if (node) {
        found.push_back(*std::move(node));
      }
      return Status::Ok();
    }));
  }
  if (found.size() > 1) {
    return Status::InvalidArgument(fmt::format(
        "{} spaces have a project \"{}\": name it as Space/{}", found.size(), name, name));
  }
  if (found.empty() || found.front().type != NodeType::kProject) {
    return Status::NotFound(fmt::format("project \"{}\" does not exist", name));
  }
  return std::move(found.front());
}

Result<Node> FindResource(SqlTransaction& sql, const NameScope& scope,
                          const std::vector<std::string>& parts) {
  TARN_ASSIGN_OR_RETURN(Node node, GetByParts(sql, scope, parts));
  const Status allowed = tree::Require(sql, scope.authorizer, scope.principal, node.rid,
                                       {.role = access::Role::kViewer, .scope = scope.needed});
  if (allowed.code() == ErrorCode::kNotFound && !IsRid(parts.front())) {
    return Status::NotFound(fmt::format("table, view or dataset {} does not exist", Joined(parts)));
  }
  TARN_RETURN_IF_ERROR(allowed);
  if (!IsReadable(node.type)) {
    return Status::InvalidArgument(
        fmt::format("{} is a {}: only tables, views and datasets can be "
                    "read",
                    Joined(parts), tree::NodeTypeName(node.type)));
  }
  TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, node.rid));
  if (located.trash_status != tree::TrashStatus::kNotTrashed) {
    return Status::NotFound(fmt::format("{} is in the trash", Joined(parts)));
  }
  return node;
}

Status NoSuchFolder(const std::string& name) {
  return Status::NotFound(fmt::format("there is no folder {} to create a table in", name));
}

Result<TablePlace> FindTablePlace(SqlTransaction& sql, const NameScope& scope,
                                  const std::vector<std::string>& parts) {
  TablePlace found{
      .folder = {}, .name = parts.back(), .folder_name = Joined({parts.begin(), parts.end() - 1})};
  std::optional<Node> node;
  if (parts.size() == 1) {
    const size_t slash = found.name.rfind('/');
    if (!found.name.starts_with('/') || slash == 0) {
      return Status::InvalidArgument(
          fmt::format("\"{}\" names no folder: write folder.{}", found.name, found.name));
    }
    found.folder_name = found.name.substr(0, slash);
    found.name = found.name.substr(slash + 1);
    TARN_ASSIGN_OR_RETURN(node, tree::GetByPath(sql, found.folder_name));
  } else {
    const std::span<const std::string> levels(parts.data(), parts.size() - 1);
    TARN_ASSIGN_OR_RETURN(node, FindBelow(sql, scope.project, levels));
    if (!node && levels.size() > 1) {
      const Result<Node> project = FindProject(sql, levels.front());
      if (project.ok()) {
        TARN_ASSIGN_OR_RETURN(node, FindBelow(sql, project->rid, levels.subspan(1)));
      } else if (project.status().code() != ErrorCode::kNotFound) {
        return project.status();
      }
    }
  }
  if (!node || node->type != NodeType::kFolder) {
    return NoSuchFolder(found.folder_name);
  }
  TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, node->rid));
  if (located.trash_status != tree::TrashStatus::kNotTrashed) {
    return Status::NotFound(fmt::format("folder {} is in the trash", found.folder_name));
  }
  found.folder = node->rid;
  return found;
}

Result<FolderPlace> FindFolderPlace(SqlTransaction& sql, const NameScope& scope,
                                    const std::vector<std::string>& parts) {
  FolderPlace place{.parent = scope.project,
                    .parent_name = Joined({parts.begin(), parts.end() - 1}),
                    .name = parts.back()};
  std::optional<Node> parent;
  if (IsRid(place.name)) {
    TARN_ASSIGN_OR_RETURN(const Rid rid, Rid::Parse(place.name));
    TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, rid));
    if (located.trash_status != tree::TrashStatus::kNotTrashed) {
      return Status::NotFound(fmt::format("folder {} is in the trash", place.name));
    }
    place.name = located.node.name;
    TARN_ASSIGN_OR_RETURN(parent, tree::FindNode(sql, located.node.parent));
  } else if (parts.size() == 1 && place.name.starts_with('/')) {
    const size_t slash = place.name.rfind('/');
    place.parent_name = place.name.substr(0, slash);
    place.name = place.name.substr(slash + 1);
    TARN_ASSIGN_OR_RETURN(parent, tree::GetByPath(sql, place.parent_name));
  } else if (parts.size() > 1) {
    const std::span<const std::string> levels(parts.data(), parts.size() - 1);
    TARN_ASSIGN_OR_RETURN(parent, FindBelow(sql, scope.project, levels));
    if (!parent) {
      Result<Node> project = FindProject(sql, levels.front());
      if (project.ok() && levels.size() == 1) {
        parent = *std::move(project);
      } else if (project.ok()) {
        TARN_ASSIGN_OR_RETURN(parent, FindBelow(sql, project->rid, levels.subspan(1)));
      } else if (project.status().code() != ErrorCode::kNotFound) {
        return project.status();
      }
    }
  } else {
    TARN_ASSIGN_OR_RETURN(parent, tree::FindNode(sql, scope.project));
    place.parent_name = parent ? parent->name : "";
  }
  if (!parent || (parent->type != NodeType::kFolder && parent->type != NodeType::kProject)) {
    if (IsRid(parts.back())) {
      return Status::InvalidArgument(parts.back() + " is no folder of a project");
    }
    return Status::NotFound(
        fmt::format("there is no folder or project {} to create one in", place.parent_name));
  }
  place.parent = parent->rid;
  TARN_ASSIGN_OR_RETURN(const std::optional<Node> there,
                        tree::FindChild(sql, place.parent, place.name));
  if (there && there->type != NodeType::kFolder) {
    return Status::InvalidArgument(
        fmt::format("{} is a {}, not a folder", Joined(parts), tree::NodeTypeName(there->type)));
  }
  if (there) {
    place.folder = there->rid;
  }
  return place;
}

}  // namespace tarn::query
