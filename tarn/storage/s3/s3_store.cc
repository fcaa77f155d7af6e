#include "tarn/storage/s3/s3_store.h"

#include <algorithm>

#include <fmt/core.h>

#include "tarn/base/log.h"
#include "tarn/storage/object_key.h"
#include "tarn/storage/s3/s3_reader.h"
#include "tarn/storage/s3/s3_writer.h"

namespace tarn::storage::s3 {

namespace {

constexpr size_t kPageMax = 1000;  // Of one request.

std::string BaseUri(const S3Options& options) {
  return fmt::format("{}://{}{}{}", options.scheme, options.bucket,
                     options.prefix.empty() ? "" : "/", options.prefix);
}

Status Lies(const S3Options& options, std::string_view what) {
  const bool amazon = options.conditional_put == ConditionalPut::kIfNoneMatch;
  return Status::FailedPrecondition(fmt::format(
      "the server of {} ignores {} on {} and overwrites: two writers could replace each other's "
      "files. Use a server that honours conditions of writes",
      BaseUri(options), amazon ? "If-None-Match" : "x-goog-if-generation-match", what));
}

}  // namespace

S3Store::S3Store(std::unique_ptr<S3Client> client, S3Access access, RetryWorld world)
    : client_(std::move(client)),
      access_(access),
      world_(world),
      base_uri_(BaseUri(client_->options())),
      uuids_(world.clock),
      pool_({.name = "s3-upload", .threads = client_->options().upload_threads}) {}

Result<std::unique_ptr<S3Store>> S3Store::Open(const S3Options& options, S3Access access,
                                               RetryWorld world) {
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<S3Client> client, S3Client::Open(options, world));
  const std::string name = "opening " + BaseUri(options);
  std::unique_ptr<S3Store> store(new S3Store(std::move(client), access, world));
  Status status = store->client_->CheckBucket();
  if (status.ok() && access == S3Access::kReadWrite) {
    status = store->Probe();
  }
  if (!status.ok()) {
    return status.WithContext(name);
  }
  if (access == S3Access::kReadWrite) {
    const Result<size_t> removed =
        store->AbortStaleUploads(world.clock.Now() - options.stale_upload_age);
    if (!removed.ok()) {
      Log(LogLevel::kWarning, "storage",
          name + ": unfinished uploads were not removed: " + removed.status().ToString());
    }
  }
  return store;
}

// Writes a key twice under the condition that it is absent: the second must fail, in one piece and
// in parts.
Status S3Store::Probe() {
  if (client_->options().conditional_put == ConditionalPut::kUnavailable) {
    return Status::Ok();
  }
  const std::string key = FullKey(".tarn-probe/" + uuids_.NextV7().ToString());
  Call put{.method = "PUT", .key = key, .body = "probe"};
  put.headers = ConditionOf(client_->options(), WriteMode::kPutIfAbsent);
  Reply reply = client_->Send(put);
  if (reply.ok()) {
    reply = client_->Send(put);
    if (reply.ok()) {
      reply.status = Lies(client_->options(), "PUT");
    } else if (reply.http_status == 412) {
      reply.status = ProbeUpload(key);
    }
  } else if (reply.status.code() == ErrorCode::kUnimplemented) {
    reply.status = Lies(client_->options(), "PUT").WithContext(reply.status.message());
  }
  const Status deleted = client_->Delete(key);
  return reply.status.ok() ? deleted : reply.status;
}

Status S3Store::ProbeUpload(const std::string& key) {
  TARN_ASSIGN_OR_RETURN(const std::string id, client_->StartUpload(key, {}));
  Result<UploadedPart> part = client_->UploadPart(key, id, 1, "probe in parts");
  Reply reply;
  reply.status = part.ok() ? Status::Ok() : part.status();
  if (part.ok()) {
    reply = client_->CompleteUpload(key, id, {*part},
                                    ConditionOf(client_->options(), WriteMode::kPutIfAbsent));
    if (reply.ok()) {
      return Lies(client_->options(), "the completion of an upload in parts");
    }
  }
  const Status aborted = client_->AbortUpload(key, id);
  return reply.http_status == 412 ? aborted : reply.status;
}

std::string S3Store::FullKey(std::string_view key) const { return Root() + std::string(key); }

std::string S3Store::Root() const {
  const std::string& prefix = client_->options().prefix;
  return prefix.empty() ? std::string() : prefix + "/";
}

Status S3Store::CheckWritable(std::string_view key) const {
  TARN_RETURN_IF_ERROR(CheckKey(key));
  return access_ == S3Access::kReadWrite
             ? Status::Ok()
             : Status::PermissionDenied(base_uri_ + " is opened for reading only");
}

Capabilities S3Store::capabilities() const {
  return {.put_if_absent = access_ == S3Access::kReadWrite &&
                           client_->options().conditional_put != ConditionalPut::kUnavailable,
          .etag = true,
          .start_after = client_->options().list_order == ListOrder::kKeys,
          .presign = true};
}

Result<ObjectMeta> S3Store::Head(std::string_view key) {
  TARN_RETURN_IF_ERROR(CheckKey(key));
  const Result<http::Headers> headers = client_->Head(FullKey(key));
  if (headers.status().code() == ErrorCode::kNotFound) {
    return Status::NotFound("no object " + QuoteKey(key));
  }
  TARN_RETURN_IF_ERROR(headers);
  return MetaOfHeaders(std::string(key), *headers);
}

Result<std::unique_ptr<ObjectReader>> S3Store::OpenReader(std::string_view key) {
  TARN_RETURN_IF_ERROR(CheckKey(key));
  return OpenS3Reader({*client_, pool_}, FullKey(key), key);
}

Result<std::unique_ptr<ObjectWriter>> S3Store::OpenWriter(std::string_view key, WriteMode mode) {
  TARN_RETURN_IF_ERROR(CheckWritable(key));
  if (mode == WriteMode::kPutIfAbsent && !capabilities().put_if_absent) {
    return Status::Unimplemented(base_uri_ + " has no conditional writes, needed for " +
                                 QuoteKey(key));
  }
  return MakeS3Writer({*client_, pool_}, {.key = std::string(key),
                                          .full_key = FullKey(key),
                                          .mode = mode,
                                          .write_id = uuids_.NextV4().ToString()});
}

Result<ListPage> S3Store::List(const ListRequest& request) {
  TARN_RETURN_IF_ERROR(CheckListRequest(request));
  return client_->options().list_order == ListOrder::kKeys ? ListKeys(request)
                                                           : ListFolders(request);
}

Result<ListPage> S3Store::ListKeys(const ListRequest& request) {
  const std::string root = Root();
  std::string after = request.start_after.empty() ? "" : root + request.start_after;
  ListPage page;
  for (bool more = true; more;) {
    const size_t room = request.limit - page.objects.size();
    TARN_ASSIGN_OR_RETURN(KeyPage part, client_->List({.prefix = root + request.prefix,
                                                       .start_after = after,
                                                       .token = {},
                                                       .limit = std::min(room, kPageMax)}));
    more = part.truncated && !part.objects.empty();
    for (ObjectMeta& object : part.objects) {
      if (!object.key.starts_with(root + request.prefix) ||
          (!after.empty() && object.key <= after)) {
        return Status::FailedPrecondition(
            fmt::format("the server of {} lists {} after {}: pages out of byte order would skip "
                        "objects. Set list_order = \"folders\" for this store",
                        base_uri_, QuoteKey(object.key), QuoteKey(after)));
      }
      after = object.key;
      object.key.erase(0, root.size());
      if (CheckKey(object.key).ok()) {
        page.objects.push_back(std::move(object));
      }
    }
    if (page.objects.size() == request.limit) {
      page.truncated = more;
      return page;
    }
  }
  return page;
}

Result<ListPage> S3Store::ListFolders(const ListRequest& request) {
  const std::string root = Root();
  const size_t keys_max = client_->options().folder_list_max;
  KeyRange range{.prefix = root + request.prefix, .start_after = {}, .token = {}};
  ListPage page;
  size_t seen = 0;
  for (bool more = true; more;) {
    TARN_ASSIGN_OR_RETURN(KeyPage part, client_->List(range));
    more = part.truncated;
    if (more && (part.token.empty() || part.token == range.token)) {
      return Status::Corruption("the server of " + base_uri_ + " gave no way to the next page");
    }
    range.token = part.token;
    seen += part.objects.size();
    if (seen > keys_max) {
      return Status(ErrorCode::kResourceExhausted,
                    fmt::format("more than {} objects below {} would have to be sorted, since its "
                                "server lists them folder by folder",
                                keys_max, QuoteKey(range.prefix)));
    }
    for (ObjectMeta& object : part.objects) {
      if (object.key.starts_with(range.prefix)) {
        object.key.erase(0, root.size());
        if (object.key > request.start_after && CheckKey(object.key).ok()) {
          page.objects.push_back(std::move(object));
        }
      }
    }
  }
  std::ranges::sort(page.objects, {}, &ObjectMeta::key);
  page.truncated = page.objects.size() > request.limit;
  page.objects.resize(std::min(page.objects.size(), request.limit));
  return page;
}

Status S3Store::Delete(std::string_view key) {
  TARN_RETURN_IF_ERROR(CheckWritable(key));
  return client_->Delete(FullKey(key));
}

Result<std::string> S3Store::Presign(std::string_view key, std::chrono::seconds valid_for) {
  TARN_RETURN_IF_ERROR(CheckKey(key));
  return client_->Presign(FullKey(key), valid_for);
}

Status S3Store::DeleteMany(const std::vector<std::string>& keys) {
  for (size_t begin = 0; begin < keys.size(); begin += kPageMax) {
    std::vector<std::string> full;
    for (size_t i = begin; i < std::min(keys.size(), begin + kPageMax); ++i) {
      TARN_RETURN_IF_ERROR(CheckWritable(keys[i]));
      full.push_back(FullKey(keys[i]));
    }
    TARN_RETURN_IF_ERROR(client_->DeleteMany(full));
  }
  return Status::Ok();
}

Status S3Store::Copy(std::string_view from, std::string_view to) {
  TARN_RETURN_IF_ERROR(CheckKey(from));
  TARN_RETURN_IF_ERROR(CheckWritable(to));
  return StatusOf(client_->Copy(FullKey(from), FullKey(to)));
}

Result<size_t> S3Store::AbortStaleUploads(Timestamp begun_before) {
  TARN_ASSIGN_OR_RETURN(const std::vector<ListedUpload> uploads, client_->ListUploads(FullKey("")));
  size_t removed = 0;
  for (const ListedUpload& upload : uploads) {
    if (upload.initiated < begun_before) {
      TARN_RETURN_IF_ERROR(client_->AbortUpload(upload.key, upload.upload_id));
      ++removed;
    }
  }
  return removed;
}

}  // namespace tarn::storage::s3
