// What the routes of users and groups share.
#pragma once

#include <string>
#include <string_view>

#include "tarn/server/request_context.h"

namespace tarn::server::foundry {

/// Where users and groups come from: this server keeps them itself.
inline constexpr std::string_view kRealm = "tarn";

/// Which users or groups a request wants.
struct DirectoryQuery {
  std::string prefix;  // Of a name; empty = all.
  int page_size = 0;
  std::string page_token;
};

/// The body of a search: {"where":{"type":"queryString","value"},"pageSize"?,"pageToken"?}. The
/// page travels in it, not in the query. Errors: InvalidBody, InvalidPageSize.
Result<DirectoryQuery> ReadSearch(RequestContext& context);

}  // namespace tarn::server::foundry
