#include "tarn/tree/lookup.h"

#include <algorithm>
#include <utility>

#include "tarn/access/authorizer.h"
#include "tarn/base/hash.h"
#include "tarn/base/json_text.h"
#include "tarn/tree/rows.h"
#include "tarn/tree/tree.h"

namespace tarn::tree {

namespace {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

constexpr int64_t kPageSizeMax = 2000;
constexpr std::string_view kTokenVersion = "1";

std::optional<Node> FirstOf(std::vector<Node> nodes) {
  return nodes.empty() ? std::optional<Node>() : std::optional<Node>(std::move(nodes.front()));
}

Status PathNotFound(std::string_view path) {
  return Status::NotFound("nothing at path " + JsonString(path))
      .WithReason("PathNotFound", JsonObject({{"path", path}}));
}

// Where a page ended: the last node listed, of which parent. Lines of the token: version, parent,
// rid, name; the name is last because it may hold line breaks.
struct PageEnd {
  std::string rid;
  std::string name;
};

std::string FormatToken(const Node& last) {
  return EncodeBase64(std::string(kTokenVersion) + "\n" + last.parent.ToString() + "\n" +
                      last.rid.ToString() + "\n" + last.name);
}

Result<PageEnd> ParseToken(const std::string& token, const Rid& parent) {
  const Status invalid =
      Status::InvalidArgument("this page token does not belong to the children of " +
                              parent.ToString())
          .WithReason("InvalidPageToken", JsonObject({{"pageToken", token}}));
  const Result<std::string> decoded = DecodeBase64(token);
  if (!decoded.ok()) {
    return invalid;
  }
  const std::string start = std::string(kTokenVersion) + "\n" + parent.ToString() + "\n";
  const size_t rid_end = decoded->find('\n', start.size());
  if (!decoded->starts_with(start) || rid_end == std::string::npos) {
    return invalid;
  }
  PageEnd end{.rid = decoded->substr(start.size(), rid_end - start.size()),
              .name = decoded->substr(rid_end + 1)};
  if (!IsRid(end.rid) || !CheckDisplayName(end.name).ok()) {
    return invalid;
  }
  return end;
}

}  // namespace

Result<std::optional<Node>> FindNode(SqlTransaction& sql, const Rid& rid) {
  TARN_ASSIGN_OR_RETURN(std::vector<Node> nodes,
                        ReadNodes(sql, "WHERE rid = ?1", {rid.ToString()}));
  return FirstOf(std::move(nodes));
}

Result<Node> GetNode(SqlTransaction& sql, const Rid& rid) {
  TARN_ASSIGN_OR_RETURN(std::optional<Node> node, FindNode(sql, rid));
  if (!node.has_value()) {
    return access::ResourceNotFound(rid);
  }
  return *std::move(node);
}

Result<LocatedNode> LocateNode(SqlTransaction& sql, const Rid& rid) {
  TARN_ASSIGN_OR_RETURN(const std::vector<Node> chain, ReadChain(sql, rid));
  if (chain.empty()) {
    return access::ResourceNotFound(rid);
  }
  LocatedNode located{.node = chain.front()};
  for (const Node& node : chain) {
    if (node.type == NodeType::kRoot) {
      break;
    }
    located.path.insert(0, "/" + node.name);
    if (node.type == NodeType::kSpace) {
      located.space = node.rid;
    } else if (node.type == NodeType::kProject) {
      located.project = node.rid;
    }
    if (node.trashed.has_value()) {
      located.trash_status = TrashStatus::kAncestorTrashed;
    }
  }
  if (located.node.trashed.has_value()) {
    located.trash_status = TrashStatus::kDirectlyTrashed;
  }
  if (located.path.empty()) {
    located.path = "/";
  }
  return located;
}

Result<std::vector<Rid>> AncestorChain(SqlTransaction& sql, const Rid& rid) {
  std::vector<Rid> chain;
  std::string next = rid.ToString();
  while (!next.empty()) {
    std::optional<std::string> parent;
    TARN_RETURN_IF_ERROR(
        sql.Query("SELECT parent FROM tree_nodes WHERE rid = ?1", {next}, [&](const SqlRow& row) {
          parent = std::string(row.Text(0));
          return Result<RowAction>(RowAction::kStop);
        }));
    if (!parent.has_value() && chain.empty()) {
      return chain;
    }
    if (!parent.has_value() || chain.size() > static_cast<size_t>(kDepthMax)) {
      return Status::Corruption("table tree_nodes: the ancestors of " + rid.ToString() +
                                " do not end at the root: found " + next);
    }
    TARN_ASSIGN_OR_RETURN(Rid found, Rid::Parse(next));
    chain.push_back(std::move(found));
    next = *std::move(parent);
  }
  return chain;
}

Result<std::optional<Node>> FindChild(SqlTransaction& sql, const Rid& parent,
                                      std::string_view name) {
  TARN_ASSIGN_OR_RETURN(std::vector<Node> nodes,
                        ReadNodes(sql, "WHERE parent = ?1 AND name = ?2 AND trashed IS NULL",
                                  {parent.ToString(), std::string(name)}));
  return FirstOf(std::move(nodes));
}

Result<Node> GetByPath(SqlTransaction& sql, std::string_view path) {
  std::string_view rest = path;
  if (rest.starts_with('/')) {
    rest.remove_prefix(1);
  }
  if (path == "/") {
    return GetNode(sql, RootRid());
  }
  Rid parent = RootRid();
  while (true) {
    const size_t slash = rest.find('/');
    const std::string_view name = rest.substr(0, slash);
    if (name.empty()) {
      return Status::InvalidArgument("path " + JsonString(path) + " has an empty part")
          .WithReason("InvalidPath", JsonObject({{"path", path}}));
    }
    TARN_ASSIGN_OR_RETURN(std::optional<Node> child, FindChild(sql, parent, name));
    if (slash == std::string_view::npos) {
      return child.has_value() ? Result<Node>(*std::move(child)) : PathNotFound(path);
    }
    // A missing name is not reported before the rest was looked at for empty parts.
    parent = child.has_value() ? child->rid : Rid();
    rest.remove_prefix(slash + 1);
  }
}

Result<ChildrenPage> ListChildren(SqlTransaction& sql, const ChildrenRequest& request) {
  if (request.page_size <= 0) {
    return Status::InvalidArgument("page size " + std::to_string(request.page_size) +
                                   " is not above zero")
        .WithReason("InvalidPageSize", "{\"pageSize\":" + std::to_string(request.page_size) + "}");
  }
  PageEnd after;
  if (!request.page_token.empty()) {
    TARN_ASSIGN_OR_RETURN(after, ParseToken(request.page_token, request.parent));
  }
  TARN_ASSIGN_OR_RETURN(const std::optional<Node> parent, FindNode(sql, request.parent));
  if (!parent.has_value()) {
    return Status::NotFound("no folder " + request.parent.ToString())
        .WithReason("FolderNotFound", JsonObject({{"folderRid", request.parent.ToString()}}));
  }
  if (!IsFolderLike(parent->type)) {
    return Status::InvalidArgument(request.parent.ToString() + " is a " +
                                   std::string(NodeTypeName(parent->type)) + ", not a folder")
        .WithReason("InvalidFolder", JsonObject({{"resourceRid", request.parent.ToString()}}));
  }
  const int64_t limit = std::min(request.page_size, kPageSizeMax);
  std::string rest = "WHERE parent = ?1 AND (name, rid) > (?2, ?3) ";
  rest += request.trashed == Trashed::kLeaveOut ? "AND trashed IS NULL " : "";
  rest += "ORDER BY name, rid LIMIT ?4";
  ChildrenPage page;
  TARN_ASSIGN_OR_RETURN(
      page.nodes,
      ReadNodes(sql, rest, {request.parent.ToString(), after.name, after.rid, limit + 1}));
  if (static_cast<int64_t>(page.nodes.size()) > limit) {
    page.nodes.pop_back();
    page.next_page_token = FormatToken(page.nodes.back());
  }
  return page;
}

}  // namespace tarn::tree
