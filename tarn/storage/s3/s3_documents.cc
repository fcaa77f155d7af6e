// The calls of S3Client whose bodies are documents: lists, uploads in parts, deletion of many.
#include <algorithm>
#include <charconv>

#include <fmt/core.h>
#include <openssl/evp.h>

#include "tarn/base/hash.h"
#include "tarn/base/url.h"
#include "tarn/storage/object_key.h"
#include "tarn/storage/s3/s3_client.h"

namespace tarn::storage::s3 {

namespace {

// Completing joins the parts on some servers.
constexpr std::chrono::milliseconds kCompleteTimeout{600'000};

std::string Md5Base64(std::string_view bytes) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
             EVP_md5(), nullptr);
  digest.resize(size);
  return EncodeBase64(digest);
}

// A key of a list that was asked for with encoding-type=url.
Result<std::string> KeyText(const XmlElement& root, const XmlElement& entry) {
  std::string text = entry.TextOf("Key");
  if (root.TextOf("EncodingType") != "url") {
    return text;
  }
  std::ranges::replace(text, '+', ' ');
  return DecodeUrl(text);
}

Result<ObjectMeta> ListedObject(const XmlElement& root, const XmlElement& entry) {
  ObjectMeta meta;
  TARN_ASSIGN_OR_RETURN(meta.key, KeyText(root, entry));
  const std::string size = entry.TextOf("Size");
  const auto [end, error] =
      std::from_chars(size.data(), size.data() + size.size(), meta.size_bytes);
  if (error != std::errc() || end != size.data() + size.size()) {
    return Status::Corruption("the list has no size of " + QuoteKey(meta.key));
  }
  meta.etag = PlainEtag(entry.TextOf("ETag"));
  TARN_ASSIGN_OR_RETURN(meta.modified, ParseTimestamp(entry.TextOf("LastModified")));
  return meta;
}

Result<XmlElement> Document(const Reply& reply, std::string_view root_name) {
  TARN_ASSIGN_OR_RETURN(XmlElement root, ParseXml(reply.body));
  if (root.name != root_name) {
    return Status::Corruption(fmt::format("expected an answer {}, found {}", root_name, root.name));
  }
  return root;
}

}  // namespace

Result<KeyPage> S3Client::List(const KeyRange& range) {
  Call call;
  call.query = {{"list-type", "2"},
                {"encoding-type", "url"},
                {"max-keys", std::to_string(range.limit)},
                {"prefix", range.prefix}};
  if (!range.token.empty()) {
    call.query.emplace_back("continuation-token", range.token);
  } else if (!range.start_after.empty()) {
    call.query.emplace_back("start-after", range.start_after);
  }
  const Reply reply = Send(call);
  if (!reply.ok()) {
    return reply.status;
  }
  TARN_ASSIGN_OR_RETURN(const XmlElement root, Document(reply, "ListBucketResult"));
  KeyPage page;
  for (const XmlElement& entry : root.children) {
    if (entry.name == "Contents") {
      TARN_ASSIGN_OR_RETURN(ObjectMeta meta, ListedObject(root, entry));
      page.objects.push_back(std::move(meta));
    }
  }
  page.truncated = root.TextOf("IsTruncated") == "true";
  page.token = root.TextOf("NextContinuationToken");
  return page;
}

Status S3Client::DeleteMany(const std::vector<std::string>& keys) {
  if (keys.size() > 1000) {
    return Status::InvalidArgument("at most 1000 keys are deleted in one call");
  }
  std::string body = "<Delete><Quiet>true</Quiet>";
  for (const std::string& key : keys) {
    body += "<Object><Key>" + EscapeXml(key) + "</Key></Object>";
  }
  body += "</Delete>";
  Call call{.method = "POST", .query = {{"delete", ""}}, .body = body};
  call.headers = {{"Content-MD5", Md5Base64(body)}, {"Content-Type", "application/xml"}};
  const Reply reply = Send(call);
  if (!reply.ok()) {
    return reply.status;
  }
  TARN_ASSIGN_OR_RETURN(const XmlElement root, Document(reply, "DeleteResult"));
  for (const XmlElement& entry : root.children) {
    if (entry.name == "Error" && entry.TextOf("Code") != "NoSuchKey") {
      const bool denied = entry.TextOf("Code") == "AccessDenied";
      return {denied ? ErrorCode::kPermissionDenied : ErrorCode::kUnavailable,
              fmt::format("deleting {}: {} ({})", QuoteKey(entry.TextOf("Key")),
                          entry.TextOf("Code"), entry.TextOf("Message"))};
    }
  }
  return Status::Ok();
}

Result<std::string> S3Client::Copy(const std::string& from, const std::string& to) {
  Call call{.method = "PUT", .key = to};
  call.headers = {{"x-amz-copy-source", "/" + options_.bucket + "/" + EncodeUrl(from, "/")}};
  call.answer_timeout = kCompleteTimeout;
  const Reply reply = Send(call);
  if (!reply.ok()) {
    return reply.status;
  }
  TARN_ASSIGN_OR_RETURN(const XmlElement root, Document(reply, "CopyObjectResult"));
  return PlainEtag(root.TextOf("ETag"));
}

Result<std::string> S3Client::StartUpload(const std::string& key, const aws::NamedValues& headers) {
  const Reply reply =
      Send({.method = "POST", .key = key, .query = {{"uploads", ""}}, .headers = headers});
  if (!reply.ok()) {
    return reply.status;
  }
  TARN_ASSIGN_OR_RETURN(const XmlElement root, Document(reply, "InitiateMultipartUploadResult"));
  std::string id = root.TextOf("UploadId");
  if (id.empty()) {
    return Status::Corruption("the server gave no upload id for " + QuoteKey(key));
  }
  return id;
}

Result<UploadedPart> S3Client::UploadPart(const std::string& key, const std::string& upload_id,
                                          int number, std::string_view bytes) {
  const Reply reply =
      Send({.method = "PUT",
            .key = key,
            .query = {{"partNumber", std::to_string(number)}, {"uploadId", upload_id}},
            .body = bytes});
  if (!reply.ok()) {
    return reply.status.WithContext(fmt::format("part {}", number));
  }
  const std::string etag = http::FindHeader(reply.headers, "etag").value_or("");
  if (etag.empty()) {
    return Status::Corruption(fmt::format("part {} of {} got no etag", number, QuoteKey(key)));
  }
  return UploadedPart{.number = number, .etag = etag};
}

Reply S3Client::CompleteUpload(const std::string& key, const std::string& upload_id,
                               const std::vector<UploadedPart>& parts,
                               const aws::NamedValues& headers) {
  std::string body = "<CompleteMultipartUpload>";
  for (const UploadedPart& part : parts) {
    body += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", part.number,
                        EscapeXml(part.etag));
  }
  body += "</CompleteMultipartUpload>";
  Call call{.method = "POST", .key = key, .query = {{"uploadId", upload_id}}, .body = body};
  call.headers = headers;
  call.headers.emplace_back("Content-Type", "application/xml");
  call.answer_timeout = kCompleteTimeout;
  Reply reply = Send(call);
  reply.unknown = reply.unknown || (!reply.ok() && reply.code == "NoSuchUpload");
  return reply;
}

Status S3Client::AbortUpload(const std::string& key, const std::string& upload_id) {
  const Reply reply = Send({.method = "DELETE", .key = key, .query = {{"uploadId", upload_id}}});
  return reply.status.code() == ErrorCode::kNotFound ? Status::Ok() : reply.status;
}

Result<std::vector<ListedUpload>> S3Client::ListUploads(const std::string& prefix) {
  Call call;
  call.query = {{"uploads", ""}, {"encoding-type", "url"}, {"prefix", prefix}};
  const Reply reply = Send(call);
  if (!reply.ok()) {
    return reply.status;
  }
  TARN_ASSIGN_OR_RETURN(const XmlElement root, Document(reply, "ListMultipartUploadsResult"));
  std::vector<ListedUpload> uploads;
  for (const XmlElement& entry : root.children) {
    if (entry.name == "Upload") {
      ListedUpload upload{.key = {}, .upload_id = entry.TextOf("UploadId")};
      TARN_ASSIGN_OR_RETURN(upload.key, KeyText(root, entry));
      TARN_ASSIGN_OR_RETURN(upload.initiated, ParseTimestamp(entry.TextOf("Initiated")));
      uploads.push_back(std::move(upload));
    }
  }
  return uploads;
}

}  // namespace tarn::storage::s3
