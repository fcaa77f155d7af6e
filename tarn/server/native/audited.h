// Records of the audit log for what the routes of this folder change.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tarn/access/audit.h"
#include "tarn/server/native/native_api.h"

namespace tarn::server::native {

/// Something that a request does to a resource (a RID, an id or a name).
struct AuditedAction {
  std::string_view action;  // E.g. "pipeline.apply".
  std::string resource;
};

/// The record of an action of this request.
access::AuditRecord AuditOf(NativeApi& api, const RequestContext& context,
                            const AuditedAction& action, access::AuditOutcome outcome);

/// Runs `change` and writes its record in one durable write. It gives the resource, which may be
/// new. A denial is recorded, too, with `action.resource`.
Status WriteAudited(NativeApi& api, const RequestContext& context, const AuditedAction& action,
                    const std::function<Result<std::string>(metastore::SqlTransaction&)>& change);

/// Calls the handler of a route with an `audit` action, whose change is several writes, and writes
/// the record right behind it: done, denied, or failed when it was tried. The resource is the
/// pipeline or task of the path, else the "name" of the answer. What fails because the request is
/// wrong or its object is not there is no change and leaves no record.
Result<http::Response> CallAudited(NativeApi& api, RequestContext& context,
                                   const NativeRoute& route);

}  // namespace tarn::server::native
