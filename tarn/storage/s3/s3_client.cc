#include "tarn/storage/s3/s3_client.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "tarn/base/hash.h"
#include "tarn/base/url.h"
#include "tarn/base/uuid.h"
#include "tarn/storage/object_key.h"
#include "tarn/storage/s3/s3_error.h"

namespace tarn::storage::s3 {

namespace {

constexpr int kLessonsMax = 4;  // Corrections of one call that the server teaches.
constexpr std::chrono::minutes kSkewMin{5};

Result<Endpoint> EndpointOf(const S3Options& options) {
  if (!options.endpoint.empty()) {
    return ParseEndpoint(options.endpoint);
  }
  if (options.scheme == "gs") {
    return Endpoint{.scheme = "https", .host = "storage.googleapis.com", .path = {}};
  }
  const std::string_view top =
      options.region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com";
  return Endpoint{
      .scheme = "https", .host = fmt::format("s3.{}{}", options.region, top), .path = {}};
}

Status CheckOptions(const S3Options& options) {
  if (options.bucket.empty() || options.region.empty()) {
    return Status::InvalidArgument("a bucket and a region are needed");
  }
  if (options.part_bytes < (5ULL << 20) || options.part_bytes > (1ULL << 30) ||
      options.parts_parallel == 0 || options.upload_threads == 0) {
    return Status::InvalidArgument("parts have 5 MiB to 1 GiB, and at least one moves at a time");
  }
  return Status::Ok();
}

// How long the server asked to be left alone, within the limits of our waits.
std::chrono::milliseconds AskedWait(const http::Answer& answer, const RetryOptions& retry) {
  const std::string text = http::FindHeader(answer.headers, "retry-after").value_or("0");
  const std::chrono::milliseconds asked{1000 * std::strtol(text.c_str(), nullptr, 10)};
  return std::clamp(asked, std::chrono::milliseconds(0), retry.wait_max);
}

}  // namespace

// What the attempts of one call carry from one to the next.
struct S3Client::Attempt {
  std::string payload_hash;
  int lessons = 0;
  std::optional<Endpoint> place;  // Where a redirect pointed.
};

S3Client::S3Client(S3Options options, Endpoint endpoint, RetryWorld world)
    : options_(std::move(options)),
      endpoint_(std::move(endpoint)),
      world_(world),
      http_(options_.http),
      seed_(static_cast<uint64_t>(ToMicros(world.clock.Now())) ^ reinterpret_cast<uintptr_t>(this)),
      region_(options_.region) {}

Result<std::unique_ptr<S3Client>> S3Client::Open(const S3Options& options, RetryWorld world) {
  TARN_RETURN_IF_ERROR(CheckOptions(options));
  TARN_ASSIGN_OR_RETURN(Endpoint endpoint, EndpointOf(options));
  std::unique_ptr<S3Client> client(new S3Client(options, std::move(endpoint), world));
  TARN_ASSIGN_OR_RETURN(client->credentials_,
                        aws::OpenCredentials(options.credentials, client->http_, world.clock));
  return client;
}

S3Client::Target S3Client::TargetOf(const std::string& key) const {
  Target target{.scheme = endpoint_.scheme, .host = endpoint_.host, .path = endpoint_.path};
  if (IsPathStyle(options_)) {
    target.path += "/" + options_.bucket;
  } else {
    target.host = options_.bucket + "." + target.host;
  }
  if (!key.empty()) {
    target.path += "/" + EncodeUrl(key, "/");
  }
  target.path += target.path.empty() ? "/" : "";
  return target;
}

aws::SigningScope S3Client::Scope() const {
  const std::lock_guard lock(mutex_);
  return {.region = region_, .service = "s3"};
}

std::string S3Client::Name(const Call& call) const {
  const std::string what =
      call.key.empty() ? "bucket " + options_.bucket
                       : fmt::format("{} in bucket {}", QuoteKey(call.key), options_.bucket);
  return fmt::format("{} of {} at {}", call.method, what, endpoint_.host);
}

Result<http::Request> S3Client::BuildRequest(const Call& call, Attempt& attempt) {
  Target target = TargetOf(call.key);
  if (attempt.place) {
    target.scheme = attempt.place->scheme;
    target.host = attempt.place->host;
  }
  const bool is_signed =
      options_.payload_signing == PayloadSigning::kSigned ||
      (options_.payload_signing == PayloadSigning::kAuto && target.scheme == "http");
  if (attempt.payload_hash.empty()) {
    attempt.payload_hash =
        is_signed ? aws::PayloadHash(call.body) : std::string(aws::kUnsignedPayload);
  }
  http::Request request{.method = call.method, .headers = call.headers, .body = call.body};
  request.sink = call.sink;
  request.answer_timeout = call.answer_timeout;
  if (call.on_attempt) {
    call.on_attempt(request.headers);
  }
  TARN_ASSIGN_OR_RETURN(const std::optional<aws::Credentials> credentials, credentials_->Get());
  if (credentials) {
    const aws::SigningInput input{.method = call.method,
                                  .host = target.host,
                                  .path = target.path,
                                  .query = call.query,
                                  .headers = request.headers,
                                  .payload_hash = attempt.payload_hash};
    const Timestamp now = world_.clock.Now() + std::chrono::seconds(skew_seconds_.load());
    for (auto& header : aws::SignHeaders(input, Scope(), *credentials, now)) {
      request.headers.push_back(std::move(header));
    }
  }
  request.url = target.scheme + "://" + target.host + target.path;
  if (!call.query.empty()) {
    request.url += "?" + aws::CanonicalQuery(call.query);
  }
  return request;
}

bool S3Client::LearnPlace(const http::Answer& answer, Attempt& attempt) {
  const std::string location = http::FindHeader(answer.headers, "location").value_or("");
  const size_t colon = location.find("://");
  const size_t end = colon == std::string::npos ? 0 : location.find('/', colon + 3);
  const Result<Endpoint> place = ParseEndpoint(location.substr(0, end));
  // Bodies that were encrypted stay so.
  if (!place.ok() || (endpoint_.scheme == "https" && place->scheme != "https")) {
    return false;
  }
  attempt.place = *place;
  return true;
}

bool S3Client::Learn(const http::Answer& answer, const std::string& code,
                     const std::string& body_region, Attempt& attempt) {
  if (!answer.transport.ok() || attempt.lessons >= kLessonsMax) {
    return false;
  }
  ++attempt.lessons;
  std::string region = http::FindHeader(answer.headers, "x-amz-bucket-region").value_or("");
  region = region.empty() ? body_region : region;
  if (!region.empty() && (answer.status == 301 || answer.status == 400 || answer.status == 403)) {
    const std::lock_guard lock(mutex_);
    if (region != region_ && (!options_.endpoint.empty() || answer.status != 301)) {
      region_ = region;
      return true;
    }
  }
  if (answer.status == 307 || answer.status == 308) {
    return LearnPlace(answer, attempt);
  }
  if (answer.status == 403) {
    const auto date = http::ParseHttpDate(http::FindHeader(answer.headers, "date").value_or(""));
    const int64_t ours = ToMillis(world_.clock.Now()) / 1000;
    if (date &&
        std::abs(*date - ours - skew_seconds_.load()) > std::chrono::seconds(kSkewMin).count()) {
      skew_seconds_ = *date - ours;
      return true;
    }
  }
  if (code == "ExpiredToken" || code == "InvalidToken" || code == "TokenRefreshRequired") {
    credentials_->Forget();
    return attempt.lessons == 1;
  }
  return false;
}

Status S3Client::Judge(const Call& call, const http::Answer& answer, Reply& reply) const {
  if (!answer.transport.ok()) {
    return answer.transport.WithContext(Name(call));
  }
  // Completing and copying may fail after "200 OK" was sent.
  const bool late_error = answer.ok() && answer.body.find("<Error>") != std::string::npos &&
                          (call.method == "POST" || call.method == "PUT");
  if (answer.ok() && !late_error) {
    return Status::Ok();
  }
  const ErrorBody body = ParseErrorBody(answer.body);
  reply.code = body.code;
  const ErrorCode code = CodeOf(late_error ? 500 : answer.status, body.code);
  std::string said = body.code.empty() ? fmt::format("HTTP status {}", answer.status)
                                       : fmt::format("{} ({})", body.code, body.message);
  if (answer.status == 301 && answer.transport.ok()) {
    const std::string region =
        http::FindHeader(answer.headers, "x-amz-bucket-region").value_or(body.region);
    said += region.empty() ? "; the bucket is elsewhere: set endpoint or region"
                           : "; the bucket is in region " + region + ": set region to it";
  }
  return {code, Name(call) + ": " + said};
}

Reply S3Client::Send(const Call& call) {
  Attempt attempt;
  RetryOptions retry = options_.retry;
  retry.jitter_seed = seed_.fetch_add(0x9E3779B97F4A7C15ULL);
  RetrySchedule schedule(retry, world_.clock.Now());
  Reply reply;
  for (;;) {
    Result<http::Request> request = BuildRequest(call, attempt);
    if (!request.ok()) {
      reply.status = request.status().WithContext(Name(call));
      return reply;
    }
    http::Answer answer = http_.Send(*request);
    reply.code.clear();
    reply.status = Judge(call, answer, reply);
    reply.http_status = answer.status;
    if (reply.status.ok()) {
      reply.headers = std::move(answer.headers);
      reply.body = std::move(answer.body);
      return reply;
    }
    reply.unknown =
        reply.unknown || (answer.transport.ok() ? MayHaveActed(answer.status) : answer.sent);
    if (Learn(answer, reply.code, ParseErrorBody(answer.body).region, attempt)) {
      continue;
    }
    auto wait = schedule.Next(reply.status.code(), world_.clock.Now());
    if (!wait) {
      reply.status = internal::AfterAttempts(reply.status, schedule.attempts());
      reply.headers = std::move(answer.headers);
      return reply;
    }
    *wait = std::max<std::chrono::microseconds>(*wait, AskedWait(answer, options_.retry));
    const Status slept = world_.sleeper.Sleep(*wait);
    if (!slept.ok()) {
      reply.status = slept.WithContext("stopped while retrying after " + reply.status.ToString());
      return reply;
    }
  }
}

Result<http::Headers> S3Client::Head(const std::string& key) {
  Reply reply = Send({.method = "HEAD", .key = key});
  if (!reply.ok()) {
    return reply.status;
  }
  return std::move(reply.headers);
}

Status S3Client::Read(const std::string& key, const std::string& etag, uint64_t offset_bytes,
                      size_t size, char* out) {
  size_t done = 0;
  Call call{.method = "GET", .key = key};
  if (!etag.empty()) {
    call.headers = {{"If-Match", "\"" + etag + "\""}};
  }
  call.on_attempt = [&](aws::NamedValues& headers) {
    done = std::min(done, size - 1);  // A transfer that broke at its very end.
    headers.emplace_back("Range",
                         fmt::format("bytes={}-{}", offset_bytes + done, offset_bytes + size - 1));
  };
  call.sink = [&](std::string_view bytes) {
    if (bytes.size() > size - done) {
      return Status::Corruption("the server sent more than the range that was asked for");
    }
    std::memcpy(out + done, bytes.data(), bytes.size());
    done += bytes.size();
    return Status::Ok();
  };
  const Reply reply = Send(call);
  if (reply.http_status == 412 || reply.http_status == 416) {
    return Status::Conflict(fmt::format("{} was replaced while it was read", QuoteKey(key)));
  }
  if (!reply.ok()) {
    return reply.status;
  }
  if (reply.http_status != 206 && offset_bytes != 0) {
    return Status::Corruption(Name(call) + ": the server ignored the range of the request");
  }
  if (done != size) {
    return Status::Corruption(fmt::format("{}: {} of {} bytes came", Name(call), done, size));
  }
  return Status::Ok();
}

Status S3Client::Delete(const std::string& key) {
  const Reply reply = Send({.method = "DELETE", .key = key});
  return reply.status.code() == ErrorCode::kNotFound ? Status::Ok() : reply.status;
}

Status S3Client::CreateBucket() {
  std::string body;
  if (options_.region != "us-east-1" && options_.endpoint.empty()) {
    body = "<CreateBucketConfiguration><LocationConstraint>" + EscapeXml(options_.region) +
           "</LocationConstraint></CreateBucketConfiguration>";
  }
  return Send({.method = "PUT", .body = body}).status;
}

Status S3Client::CheckBucket() {
  const Reply reply = Send({.query = {{"list-type", "2"}, {"max-keys", "1"}}});
  return reply.code == "NoSuchBucket" || reply.http_status == 404
             ? Status::NotFound(
                   fmt::format("there is no bucket {} at {}", options_.bucket, endpoint_.host))
             : reply.status;
}

Result<std::string> S3Client::Presign(const std::string& key, std::chrono::seconds valid_for) {
  if (valid_for < std::chrono::seconds(1) || valid_for > std::chrono::hours(24 * 7)) {
    return Status::InvalidArgument("a link is good for 1 second to 7 days, not " +
                                   std::to_string(valid_for.count()) + " seconds");
  }
  const Target target = TargetOf(key);
  const std::string url = target.scheme + "://" + target.host + target.path;
  TARN_ASSIGN_OR_RETURN(const std::optional<aws::Credentials> credentials, credentials_->Get());
  if (!credentials) {
    return url;
  }
  const aws::SigningInput input{.method = "GET",
                                .host = target.host,
                                .path = target.path,
                                .query = {},
                                .headers = {},
                                .payload_hash = std::string(aws::kUnsignedPayload)};
  const Timestamp now = world_.clock.Now() + std::chrono::seconds(skew_seconds_.load());
  return url + "?" + aws::PresignQuery(input, Scope(), *credentials, now, valid_for);
}

std::string PlainEtag(std::string_view etag) {
  if (etag.starts_with("W/")) {
    etag.remove_prefix(2);
  }
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  return std::string(etag);
}

ObjectMeta MetaOfHeaders(std::string key, const http::Headers& headers) {
  ObjectMeta meta;
  meta.key = std::move(key);
  meta.etag = PlainEtag(http::FindHeader(headers, "etag").value_or(""));
  const std::string size = http::FindHeader(headers, "content-length").value_or("0");
  meta.size_bytes = std::strtoull(size.c_str(), nullptr, 10);
  const auto modified =
      http::ParseHttpDate(http::FindHeader(headers, "last-modified")
                              .value_or(http::FindHeader(headers, "date").value_or("")));
  meta.modified = FromMillis(modified.value_or(0) * 1000);
  return meta;
}

}  // namespace tarn::storage::s3
