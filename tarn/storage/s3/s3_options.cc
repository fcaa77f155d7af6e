#include "tarn/storage/s3/s3_options.h"

#include <algorithm>

#include <fmt/core.h>

#include "tarn/storage/object_key.h"

namespace tarn::storage::s3 {

namespace {

bool IsBucketName(std::string_view name) {
  return name.size() >= 3 && name.size() <= 222 && std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                  c == '_';
         });
}

bool IsHost(std::string_view host) {
  return !host.empty() && std::ranges::all_of(host, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-._:[]").find(c) != std::string_view::npos;
  });
}

}  // namespace

Result<Endpoint> ParseEndpoint(std::string_view text) {
  Endpoint endpoint;
  const size_t colon = text.find("://");
  endpoint.scheme = std::string(text.substr(0, colon));
  if (colon == std::string_view::npos ||
      (endpoint.scheme != "http" && endpoint.scheme != "https")) {
    return Status::InvalidArgument(
        fmt::format("an endpoint is http://host:port or https://host, found {}", QuoteKey(text)));
  }
  const std::string_view rest = text.substr(colon + 3);
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view host = rest.substr(0, slash);
  const std::string_view port = endpoint.scheme == "http" ? ":80" : ":443";
  if (host.ends_with(port)) {
    host.remove_suffix(port.size());  // As it will stand in the Host header.
  }
  endpoint.host = std::string(host);
  endpoint.path = std::string(rest.substr(slash));
  while (endpoint.path.ends_with('/')) {
    endpoint.path.pop_back();
  }
  if (!IsHost(host) || endpoint.path.find_first_of("?#") != std::string::npos) {
    return Status::InvalidArgument(fmt::format("not an endpoint: {}", QuoteKey(text)));
  }
  return endpoint;
}

bool IsPathStyle(const S3Options& options) {
  const bool dots = options.bucket.find('.') != std::string::npos;
  return options.addressing == Addressing::kPath ||
         (options.addressing == Addressing::kAuto && (dots || !options.endpoint.empty()));
}

Result<S3Options> WithUri(S3Options options, std::string_view uri) {
  const size_t colon = uri.find("://");
  const std::string_view scheme = uri.substr(0, colon);
  if (colon == std::string_view::npos ||
      (scheme != "s3" && scheme != "s3a" && scheme != "s3n" && scheme != "gs")) {
    return Status::InvalidArgument("not a URI of a bucket such as s3://bucket/prefix: " +
                                   QuoteKey(uri));
  }
  options.scheme = scheme == "gs" ? "gs" : "s3";
  const std::string_view rest = uri.substr(colon + 3);
  const size_t slash = std::min(rest.find('/'), rest.size());
  options.bucket = std::string(rest.substr(0, slash));
  if (!IsBucketName(options.bucket)) {
    return Status::InvalidArgument(
        fmt::format("{} is no bucket name, in {}", QuoteKey(options.bucket), QuoteKey(uri)));
  }
  options.prefix = slash < rest.size() ? std::string(rest.substr(slash + 1)) : std::string();
  if (options.prefix.ends_with('/')) {
    options.prefix.pop_back();
  }
  if (!options.prefix.empty()) {
    TARN_RETURN_IF_ERROR(CheckKey(options.prefix));
  }
  return options;
}

}  // namespace tarn::storage::s3
