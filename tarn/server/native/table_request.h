// The table that a request names, with the permission of its caller. Only for this folder.
#pragma once

#include <string>
#include <string_view>

#include "tarn/catalog/object.h"
#include "tarn/server/native/native_api.h"

namespace tarn::server::native {

struct FoundTable {
  std::string name;  // Dotted, with its project.
  catalog::CatalogObject object;
};

/// "/Space/project/folder/name" as "project.folder.name".
std::string DottedName(std::string_view path);

enum class ViewRule : uint8_t {
  kRefuse,         // A view is no table; the error names the table behind it.
  kTableBehindIt,  // A view of a pipeline stands for its internal table.
};

/// The table of the path parameter "name", looked up in the project of the query parameter.
/// Errors: kNotFound; kPermissionDenied unless the caller has `role` on the table itself;
/// kInvalidArgument for what is no table.
Result<FoundTable> FindTable(NativeApi& api, const RequestContext& context, access::Role role,
                             ViewRule rule = ViewRule::kRefuse);

}  // namespace tarn::server::native
