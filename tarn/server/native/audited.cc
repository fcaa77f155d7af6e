#include "tarn/server/native/audited.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "tarn/base/log.h"

namespace tarn::server::native {

namespace {

using access::AuditOutcome;
using metastore::SqlTransaction;
using nlohmann::json;

// What is recorded of a call that ended so; nothing when it changed nothing and was not denied.
std::optional<AuditOutcome> OutcomeOf(const Status& status) {
  switch (status.code()) {
    case ErrorCode::kOk:
      return AuditOutcome::kDone;
    case ErrorCode::kPermissionDenied:
      return AuditOutcome::kDenied;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotFound:
    case ErrorCode::kUnauthenticated:
    case ErrorCode::kUnimplemented:
      return std::nullopt;
    default:
      return AuditOutcome::kFailed;
  }
}

std::string ResourceOf(const RequestContext& context, const Result<http::Response>& answer) {
  for (const char* name : {"pipeline", "task"}) {
    const auto found = std::find_if(context.path.begin(), context.path.end(),
                                    [&](const auto& part) { return part.first == name; });
    if (found != context.path.end()) {
      return found->second;
    }
  }
  if (!answer.ok()) {
    return {};
  }
  const json body = json::parse(answer->body, nullptr, /*allow_exceptions=*/false);
  return body.is_object() ? body.value("name", "") : std::string();
}

}  // namespace

access::AuditRecord AuditOf(NativeApi& api, const RequestContext& context,
                            const AuditedAction& action, AuditOutcome outcome) {
  access::AuditRecord record;
  record.time = api.clock().Now();
  record.user_id = context.principal.user_id;
  record.token_id = context.principal.token_id;
  record.action = std::string(action.action);
  record.resource = action.resource;
  record.outcome = outcome;
  record.details = json{{"requestId", context.request_id}}.dump();
  return record;
}

Status WriteAudited(NativeApi& api, const RequestContext& context, const AuditedAction& action,
                    const std::function<Result<std::string>(SqlTransaction&)>& change) {
  const Status status = api.database().Write([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(std::string resource, change(sql));
    return access::AppendAudit(
        sql, AuditOf(api, context, {.action = action.action, .resource = std::move(resource)},
                     AuditOutcome::kDone));
  });
  if (status.code() == ErrorCode::kPermissionDenied) {
    TARN_RETURN_IF_ERROR(
        access::AppendAudit(api.database(), AuditOf(api, context, action, AuditOutcome::kDenied)));
  }
  return status;
}

Result<http::Response> CallAudited(NativeApi& api, RequestContext& context,
                                   const NativeRoute& route) {
  Result<http::Response> answer = route.handler(api, context);
  const Status status = StatusOf(answer);
  const std::optional<AuditOutcome> outcome = OutcomeOf(status);
  if (!outcome) {
    return answer;
  }
  access::AuditRecord record = AuditOf(
      api, context, {.action = route.audit, .resource = ResourceOf(context, answer)}, *outcome);
  if (!status.ok()) {
    json details = json::parse(record.details);
    details["error"] = ErrorCodeName(status.code());
    record.details = details.dump();
  }
  // The change is made: that its record was not written must not look like a failed change.
  const Status recorded = access::AppendAudit(api.database(), record);
  if (!recorded.ok()) {
    Log(LogLevel::kError, "server",
        record.action + " of " + record.resource +
            " is not in the audit log: " + recorded.ToString());
  }
  return answer;
}

}  // namespace tarn::server::native
