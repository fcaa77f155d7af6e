// Names in SQL and what they mean: tables, views and datasets of the tree.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/access/authorizer.h"
#include "tarn/access/principal.h"
#include "tarn/base/status.h"
#include "tarn/metastore/database.h"
#include "tarn/tree/lookup.h"

namespace tarn::query {

/// The project of a name ("default"), of a path ("/Space/project" or "Space/project"), or of a RID.
/// Errors: kNotFound; kInvalidArgument when several spaces have a project of that name.
Result<tree::Node> FindProject(metastore::SqlTransaction& sql, std::string_view name);

/// Who asks, and from where.
struct NameScope {
  const access::Principal& principal;
  access::Authorizer& authorizer;
  Rid project;                         // Of the request, or of the view that has the name.
  std::vector<std::string> folders{};  // Looked at first for short names; of a stored view.
  access::Scope needed = access::Scope::kSqlQueriesExecute;
};

/// The dataset, table or view behind the parts of a name, which the principal may view:
/// project.folder.name, folder.name (nested folders: one part each), a RID,
/// "/Space/project/…/name", or a name that only one resource of the project has.
///
/// Errors: kNotFound saying what is missing, the same for what the principal may not see;
/// kInvalidArgument when a short name fits several, naming them; kPermissionDenied when the token
/// lacks the scope or the role is too low.
/// Cost: one look-up per part; a short name reads the folders of the project.
Result<tree::Node> FindResource(metastore::SqlTransaction& sql, const NameScope& scope,
                                const std::vector<std::string>& parts);

/// Where a new table goes. Value.
struct TablePlace {
  Rid folder;
  std::string name;
  std::string folder_name;  // As written.
};
Status NoSuchFolder(const std::string& name);
/// The folder, which is there and not in the trash, and the last part of a name of two parts or
/// more, or of a path. Whether the name is free and who may use it is the caller's matter.
/// Errors: kInvalidArgument for a name without a folder; kNotFound naming the folder.
Result<TablePlace> FindTablePlace(metastore::SqlTransaction& sql, const NameScope& scope,
                                  const std::vector<std::string>& parts);

/// A folder that is there or is to be made. Value.
struct FolderPlace {
  Rid parent;  // Folder or project around it.
  std::string parent_name;
  std::string name;
  std::optional<Rid> folder{};  // When there is one.
};
/// The place of a folder by its name: folder, folder.folder, project.folder, "/Space/project/…" or
/// the RID of one that is there.
/// Who may use it is the caller's matter. Errors: kNotFound naming what is missing around it;
/// kInvalidArgument when something else has the name.
Result<FolderPlace> FindFolderPlace(metastore::SqlTransaction& sql, const NameScope& scope,
                                    const std::vector<std::string>& parts);

/// Folders that a short name is looked for in; beyond it the name has to be qualified.
inline constexpr size_t kFoldersSearchedMax = 10'000;

}  // namespace tarn::query
