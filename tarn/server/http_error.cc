#include "tarn/server/http_error.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"

namespace tarn::server {

namespace {

using nlohmann::json;

struct ReasonStatus {
  std::string_view reason;
  int status;
};

// Names whose status is fixed by the wire, whatever code the room gave them. Sorted.
constexpr ReasonStatus kFoundryStatuses[] = {
    {"BranchAlreadyExists", 409},
    {"FileAlreadyExists", 404},
    {"GroupNameAlreadyExists", 400},
    {"OpenTransactionAlreadyExists", 409},
    {"OrganizationNameAlreadyExists", 400},
    {"ProfileServiceNotPresent", 500},
    {"ProjectNameAlreadyExists", 409},
    {"ReadTableError", 500},
    {"ReadTableTimeout", 500},
    {"ResourceNameAlreadyExists", 409},
    {"ResourceNotDirectlyTrashed", 400},
    {"ResourceNotTrashed", 400},
    {"SpaceInternalError", 500},
    {"SpaceNotEmpty", 500},
    {"TransactionNotCommitted", 400},
    {"TransactionNotOpen", 400},
    {"UsageAccountServiceIsNotPresent", 500},
    {"ViewDatasetCleanupFailed", 500},
    {"ViewPrimaryKeyCannotBeModified", 409},
};

constexpr ReasonStatus kIcebergStatuses[] = {
    {"AuthenticationTimeoutException", 419},
    {"NamespaceNotEmptyException", 409},
    {"UnprocessableEntityException", 422},
    {"UnsupportedOperationException", 406},
};

// Of every family: what the HTTP side itself refuses.
constexpr ReasonStatus kTransportStatuses[] = {
    {"ExpectationFailed", 417},     {"FileContentGone", 410},
    {"MethodNotAllowed", 405},      {"NotAcceptable", 406},
    {"RangeNotSatisfiable", 416},   {"RequestBodyTimedOut", 408},
    {"RequestEntityTooLarge", 413}, {"RequestHeaderFieldsTooLarge", 431},
    {"UnsupportedMediaType", 415},
};

template <size_t kSize>
int FindStatus(const ReasonStatus (&table)[kSize], std::string_view reason) {
  const auto* found = std::ranges::find(table, reason, &ReasonStatus::reason);
  return found == std::end(table) ? 0 : found->status;
}

int StatusOfCode(ErrorCode code, Family family) {
  switch (code) {
    case ErrorCode::kOk:
      return 200;
    case ErrorCode::kInvalidArgument:
      return 400;
    case ErrorCode::kUnauthenticated:
      return 401;
    case ErrorCode::kPermissionDenied:
      return 403;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kAlreadyExists:
    case ErrorCode::kConflict:
      return 409;
    case ErrorCode::kFailedPrecondition:
      // Foundry and Iceberg have no 412: the request does not fit the state it found.
      return family == Family::kNative ? 412 : 400;
    case ErrorCode::kUnimplemented:
      return family == Family::kIceberg ? 406 : 501;
    case ErrorCode::kResourceExhausted:
      return 429;
    case ErrorCode::kUnavailable:
      return 503;
    case ErrorCode::kDeadlineExceeded:
      // For Iceberg 504 would say that the commit may have happened.
      return family == Family::kIceberg ? 503 : 504;
    case ErrorCode::kCancelled:
      return 499;
    case ErrorCode::kCommitStateUnknown:
    case ErrorCode::kCorruption:
    case ErrorCode::kInternal:
      return 500;
  }
  return 500;
}

std::string_view FoundryCode(int status) {
  switch (status) {
    case 401:
      return "UNAUTHORIZED";
    case 403:
      return "PERMISSION_DENIED";
    case 404:
      return "NOT_FOUND";
    case 409:
      return "CONFLICT";
    case 413:
      return "REQUEST_ENTITY_TOO_LARGE";
    case 504:
    case 408:
      return "TIMEOUT";
    default:
      return status >= 500 ? "INTERNAL" : "INVALID_ARGUMENT";
  }
}

std::string_view IcebergType(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnauthenticated:
      return "NotAuthorizedException";
    case ErrorCode::kPermissionDenied:
      return "ForbiddenException";
    case ErrorCode::kNotFound:
      return "NotFoundException";
    case ErrorCode::kAlreadyExists:
      return "AlreadyExistsException";
    case ErrorCode::kConflict:
      return "CommitFailedException";
    case ErrorCode::kUnimplemented:
      return "UnsupportedOperationException";
    case ErrorCode::kResourceExhausted:
      return "TooManyRequestsException";
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadlineExceeded:
      return "ServiceUnavailableException";
    case ErrorCode::kCommitStateUnknown:
      return "CommitStateUnknownException";
    case ErrorCode::kCorruption:
    case ErrorCode::kInternal:
    case ErrorCode::kCancelled:
      return "InternalServerErrorException";
    default:
      return "BadRequestException";
  }
}

json ParametersOf(const Status& failure) {
  json parameters = json::parse(failure.details(), nullptr, false);
  return parameters.is_object() ? parameters : json::object();
}

json FoundryBody(const Status& failure, int status, std::string_view instance_id) {
  json parameters = ParametersOf(failure);
  // People read parameters in the clients' exceptions; declared "message" parameters stay.
  parameters.emplace("message", failure.message());
  return {{"errorCode", FoundryCode(status)},
          {"errorName", ErrorNameOf(failure, Family::kFoundry)},
          {"errorInstanceId", instance_id},
          {"parameters", std::move(parameters)}};
}

json IcebergBody(const Status& failure, int status) {
  return {{"error",
           {{"message", failure.message()},
            {"type", ErrorNameOf(failure, Family::kIceberg)},
            {"code", status}}}};
}

json NativeBody(const Status& failure, std::string_view instance_id) {
  json error = ParametersOf(failure);
  error["name"] = ErrorNameOf(failure, Family::kNative);
  error["message"] = failure.message();
  error["requestId"] = instance_id;
  return {{"error", std::move(error)}};
}

}  // namespace

Family FamilyOf(std::string_view target) {
  const auto is_below = [target](std::string_view prefix) {
    return target.starts_with(prefix) &&
           (target.size() == prefix.size() || target[prefix.size()] == '/' ||
            target[prefix.size()] == '?');
  };
  for (const std::string_view prefix :
       {"/api", "/multipass", "/compass", "/foundry-catalog", "/foundry-data-proxy",
        "/foundry-metadata", "/foundry-schema-inference", "/foundry-sql-server"}) {
    if (is_below(prefix)) {
      return Family::kFoundry;
    }
  }
  return is_below("/iceberg") ? Family::kIceberg : Family::kNative;
}

int HttpStatusOf(const Status& failure, Family family) {
  int status = FindStatus(kTransportStatuses, failure.reason());
  if (status == 0 && family == Family::kFoundry) {
    status = FindStatus(kFoundryStatuses, failure.reason());
  }
  if (status == 0 && family == Family::kIceberg) {
    status = FindStatus(kIcebergStatuses, failure.reason());
  }
  return status != 0 ? status : StatusOfCode(failure.code(), family);
}

std::string ErrorNameOf(const Status& failure, Family family) {
  if (family == Family::kIceberg) {
    // Reasons of other families (a dataset behind a table) are no Iceberg types.
    return failure.reason().ends_with("Exception") ? failure.reason()
                                                   : std::string(IcebergType(failure.code()));
  }
  return failure.reason().empty() ? std::string(ErrorCodeName(failure.code())) : failure.reason();
}

http::Response RenderError(Family family, const Status& failure, std::string_view instance_id) {
  http::Response response;
  response.status = HttpStatusOf(failure, family);
  json body;
  switch (family) {
    case Family::kFoundry:
      body = FoundryBody(failure, response.status, instance_id);
      break;
    case Family::kIceberg:
      body = IcebergBody(failure, response.status);
      break;
    case Family::kNative:
      body = NativeBody(failure, instance_id);
      break;
  }
  // Messages may quote bytes that are no UTF-8.
  response.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  response.headers.Set("Content-Type", "application/json");
  if (response.status == 401) {
    response.headers.Set("WWW-Authenticate", "Bearer");
  }
  if (response.status == 429 || response.status == 503) {
    response.headers.Set("Retry-After", "1");
  }
  if (response.status == 405) {
    const json parameters = ParametersOf(failure);
    response.headers.Set("Allow", parameters.value("allowed", ""));
  }
  return response;
}

Status RouteNotFound(std::string_view method, std::string_view target) {
  return Status::NotFound(fmt::format("{} {}: no such route", method, target))
      .WithReason("RouteNotFound", JsonObject({{"method", method}, {"target", target}}));
}

Status MethodNotAllowed(std::string_view method, std::string_view target,
                        std::string_view allowed) {
  return Status::InvalidArgument(
             fmt::format("{} {}: the route takes {} only", method, target, allowed))
      .WithReason("MethodNotAllowed", JsonObject({{"method", method}, {"allowed", allowed}}));
}

Status MissingCredentials(std::string_view found) {
  return Status(ErrorCode::kUnauthenticated,
                fmt::format("authenticate: \"Authorization: Bearer <token>\" is needed, found {}",
                            found))
      .WithReason("MissingCredentials");
}

}  // namespace tarn::server
