#include "tarn/server/foundry/principals.h"

#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"
#include "tarn/server/foundry/foundry_api.h"

namespace tarn::server::foundry {

using nlohmann::json;

namespace {
constexpr int kPageSizeMax = 1000;
}  // namespace

Result<DirectoryQuery> ReadSearch(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  const auto where = body.is_object() ? body.find("where") : body.end();
  if (!body.is_object() || where == body.end() || !where->is_object()) {
    return Status::InvalidArgument("read the request body: \"where\" must be an object")
        .WithReason("InvalidBody", JsonObject({{"member", "where"}}));
  }
  TARN_ASSIGN_OR_RETURN(const std::string type, RequiredText(*where, "type"));
  if (type != "queryString") {
    return Status::InvalidArgument("read the request body: where.type must be queryString")
        .WithReason("InvalidBody", JsonObject({{"member", "where"}, {"found", type}}));
  }
  DirectoryQuery query;
  TARN_ASSIGN_OR_RETURN(query.prefix, RequiredText(*where, "value"));
  TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> asked, OptionalInt(body, "pageSize"));
  TARN_ASSIGN_OR_RETURN(query.page_size, CheckedPageSize(asked, kPageSizeMax, kPageSizeMax));
  TARN_ASSIGN_OR_RETURN(const auto token, OptionalText(body, "pageToken"));
  query.page_token = token.value_or("");
  return query;
}

}  // namespace tarn::server::foundry
