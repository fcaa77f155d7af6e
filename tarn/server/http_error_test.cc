#include "tarn/server/http_error.h"

#include <nlohmann/json.hpp>

#include "test/support/matchers.h"

namespace tarn::server {
namespace {

using nlohmann::json;

json Body(Family family, const Status& failure) {
  return json::parse(RenderError(family, failure, "id-1").body);
}

TEST(HttpErrorTest, FamiliesByPrefix) {
  EXPECT_EQ(FamilyOf("/api/v2/datasets"), Family::kFoundry);
  EXPECT_EQ(FamilyOf("/multipass/api/oauth2/token"), Family::kFoundry);
  EXPECT_EQ(FamilyOf("/iceberg/v1/config?warehouse=x"), Family::kIceberg);
  EXPECT_EQ(FamilyOf("/tarn/v1/sql"), Family::kNative);
  EXPECT_EQ(FamilyOf("/apiary"), Family::kNative);
  EXPECT_EQ(FamilyOf("/icebergs/v1"), Family::kNative);
  EXPECT_EQ(FamilyOf(""), Family::kNative);
}

TEST(HttpErrorTest, FoundryEnvelope) {
  const Status failure =
      Status::NotFound("no such dataset").WithReason("DatasetNotFound", R"({"datasetRid":"ri.x"})");
  const http::Response response = RenderError(Family::kFoundry, failure, "id-1");
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.headers.Find("content-type"), "application/json");
  EXPECT_EQ(json::parse(response.body),
            json::parse(R"({"errorCode":"NOT_FOUND","errorName":"DatasetNotFound",
              "errorInstanceId":"id-1",
              "parameters":{"datasetRid":"ri.x","message":"no such dataset"}})"));
}

TEST(HttpErrorTest, DeclaredMessageParametersStay) {
  const Status failure = Status::InvalidArgument("long text")
                             .WithReason("InvalidSchema", R"({"errorType":"a","message":"b"})");
  EXPECT_EQ(Body(Family::kFoundry, failure)["parameters"]["message"], "b");
}

TEST(HttpErrorTest, SurprisingStatusesOfFoundry) {
  const std::vector<std::pair<std::string, int>> expected = {
      {"TransactionNotOpen", 400},
      {"TransactionNotCommitted", 400},
      {"GroupNameAlreadyExists", 400},
      {"ResourceNotTrashed", 400},
      {"FileAlreadyExists", 404},
      {"SpaceNotEmpty", 500},
      {"OpenTransactionAlreadyExists", 409},
      {"BranchAlreadyExists", 409},
      {"ResourceNameAlreadyExists", 409},
      {"ProjectNameAlreadyExists", 409},
      {"ViewPrimaryKeyCannotBeModified", 409}};
  for (const auto& [reason, status] : expected) {
    // Whatever code the room gave it.
    for (const Status& failure :
         {Status::FailedPrecondition("x"), Status::Conflict("x"), Status::AlreadyExists("x")}) {
      EXPECT_EQ(HttpStatusOf(failure.WithReason(reason), Family::kFoundry), status) << reason;
    }
  }
  EXPECT_EQ(
      Body(Family::kFoundry, Status::Conflict("x").WithReason("FileAlreadyExists"))["errorCode"],
      "NOT_FOUND");
}

TEST(HttpErrorTest, IcebergEnvelope) {
  const Status failure =
      Status::NotFound("Table does not exist: a.b").WithReason("NoSuchTableException");
  EXPECT_EQ(Body(Family::kIceberg, failure),
            json::parse(R"({"error":{"message":"Table does not exist: a.b",
              "type":"NoSuchTableException","code":404}})"));
  EXPECT_EQ(
      Body(Family::kIceberg, Status::Conflict("moved").WithReason("BranchMoved"))["error"]["type"],
      "CommitFailedException");
  EXPECT_EQ(HttpStatusOf(Status(ErrorCode::kCommitStateUnknown, "x"), Family::kIceberg), 500);
  // Never 502 or 504: they would say that a commit may have happened.
  EXPECT_EQ(HttpStatusOf(Status(ErrorCode::kDeadlineExceeded, "x"), Family::kIceberg), 503);
  EXPECT_EQ(HttpStatusOf(Status::Unimplemented("x"), Family::kIceberg), 406);
}

TEST(HttpErrorTest, NativeEnvelopeSpreadsParameters) {
  const Status failure =
      Status::FailedPrecondition("wrong state").WithReason("TaskRunning", R"({"found":"RUNNING"})");
  EXPECT_EQ(RenderError(Family::kNative, failure, "id-1").status, 412);
  EXPECT_EQ(Body(Family::kNative, failure),
            json::parse(R"({"error":{"name":"TaskRunning","message":"wrong state",
              "found":"RUNNING","requestId":"id-1"}})"));
}

TEST(HttpErrorTest, EveryCodeHasAStatusInEveryFamily) {
  for (int code = 1; code <= static_cast<int>(ErrorCode::kInternal); ++code) {
    for (const Family family : {Family::kFoundry, Family::kIceberg, Family::kNative}) {
      const Status failure(static_cast<ErrorCode>(code), "x");
      const http::Response response = RenderError(family, failure, "id-1");
      EXPECT_GE(response.status, 400);
      EXPECT_LE(response.status, 599);
      EXPECT_TRUE(json::parse(response.body).is_object());
    }
  }
}

TEST(HttpErrorTest, TransportFailuresAreTheSameEverywhere) {
  for (const Family family : {Family::kFoundry, Family::kIceberg, Family::kNative}) {
    const auto status_of = [family](const std::string& reason) {
      return HttpStatusOf(Status::InvalidArgument("x").WithReason(reason), family);
    };
    EXPECT_EQ(status_of("RequestEntityTooLarge"), 413);
    EXPECT_EQ(status_of("RequestHeaderFieldsTooLarge"), 431);
    EXPECT_EQ(status_of("MethodNotAllowed"), 405);
    EXPECT_EQ(status_of("RangeNotSatisfiable"), 416);
    EXPECT_EQ(HttpStatusOf(MissingCredentials("nothing"), family), 401);
  }
  EXPECT_EQ(
      RenderError(Family::kNative, MissingCredentials("x"), "").headers.Find("WWW-Authenticate"),
      "Bearer");
  EXPECT_EQ(RenderError(Family::kNative, MethodNotAllowed("PUT", "/x", "GET, POST"), "")
                .headers.Find("Allow"),
            "GET, POST");
}

TEST(HttpErrorTest, BytesThatAreNoUtf8StillGiveJson) {
  const Status failure = Status::NotFound("path \xff\xfe").WithReason("X", "not json");
  EXPECT_TRUE(Body(Family::kFoundry, failure)["parameters"].contains("message"));
}

}  // namespace
}  // namespace tarn::server
