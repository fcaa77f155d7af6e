#include "tarn/storage/aws/sigv4.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "tarn/base/hash.h"
#include "tarn/base/url.h"

namespace tarn::storage::aws {

namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

std::string Hmac(std::string_view key, std::string_view text) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  const unsigned char* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                   reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                                   reinterpret_cast<unsigned char*>(digest.data()), &size);
  TARN_CHECK(done != nullptr);
  digest.resize(size);
  return digest;
}

std::string Lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// Without blanks at the ends, and runs of blanks as one.
std::string TrimAll(std::string_view value) {
  std::string out;
  for (const char c : value) {
    const bool blank = c == ' ' || c == '\t';
    if (!blank) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  if (!out.empty() && out.back() == ' ') {
    out.pop_back();
  }
  return out;
}

struct CanonicalHeaders {
  std::string lines;
  std::string names;
};

CanonicalHeaders Canonical(const NamedValues& headers) {
  std::map<std::string, std::string> sorted;
  for (const auto& [name, value] : headers) {
    const auto [place, first] = sorted.try_emplace(Lower(name), TrimAll(value));
    if (!first) {
      place->second += "," + TrimAll(value);
    }
  }
  CanonicalHeaders canonical;
  for (const auto& [name, value] : sorted) {
    canonical.lines += fmt::format("{}:{}\n", name, value);
    canonical.names += (canonical.names.empty() ? "" : ";") + name;
  }
  return canonical;
}

std::string ScopeText(const SigningScope& scope, std::string_view day) {
  return fmt::format("{}/{}/{}/aws4_request", day, scope.region, scope.service);
}

std::string Signature(const SigningInput& input, const std::string& query,
                      const CanonicalHeaders& headers, const SigningScope& scope,
                      const Credentials& credentials, const std::string& amz_date) {
  const std::string path = scope.service == "s3" ? input.path : EncodeUrl(input.path, "/");
  const std::string canonical = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", input.method, path, query,
                                            headers.lines, headers.names, input.payload_hash);
  const std::string day = amz_date.substr(0, 8);
  const std::string to_sign = fmt::format("{}\n{}\n{}\n{}", kAlgorithm, amz_date,
                                          ScopeText(scope, day), PayloadHash(canonical));
  const std::string day_key = Hmac("AWS4" + credentials.secret_access_key, day);
  const std::string service_key = Hmac(Hmac(day_key, scope.region), scope.service);
  return EncodeHex(Hmac(Hmac(service_key, "aws4_request"), to_sign));
}

}  // namespace

std::string PayloadHash(std::string_view body) { return EncodeHex(Sha256(body)); }

std::string FormatAmzDate(Timestamp time) {
  const std::string text = FormatTimestamp(time);  // 2015-08-30T12:36:00.000000Z
  std::string out;
  for (const char c : std::string_view(text).substr(0, 19)) {
    if (c != '-' && c != ':') {
      out += c;
    }
  }
  return out + "Z";
}

std::string CanonicalQuery(const NamedValues& query) {
  std::vector<std::pair<std::string, std::string>> encoded;
  encoded.reserve(query.size());
  for (const auto& [name, value] : query) {
    encoded.emplace_back(EncodeUrl(name), EncodeUrl(value));
  }
  std::ranges::sort(encoded);
  std::string text;
  for (const auto& [name, value] : encoded) {
    text += (text.empty() ? "" : "&") + name + "=" + value;
  }
  return text;
}

NamedValues SignHeaders(const SigningInput& input, const SigningScope& scope,
                        const Credentials& credentials, Timestamp now) {
  const std::string amz_date = FormatAmzDate(now);
  NamedValues added = {{"x-amz-date", amz_date}};
  if (!credentials.session_token.empty()) {
    added.emplace_back("x-amz-security-token", credentials.session_token);
  }
  if (scope.service == "s3") {
    added.emplace_back("x-amz-content-sha256", input.payload_hash);
  }
  NamedValues all = input.headers;
  all.insert(all.end(), added.begin(), added.end());
  all.emplace_back("host", input.host);
  const CanonicalHeaders headers = Canonical(all);
  added.emplace_back(
      "authorization",
      fmt::format(
          "{} Credential={}/{}, SignedHeaders={}, Signature={}", kAlgorithm,
          credentials.access_key_id, ScopeText(scope, amz_date.substr(0, 8)), headers.names,
          Signature(input, CanonicalQuery(input.query), headers, scope, credentials, amz_date)));
  return added;
}

std::string PresignQuery(const SigningInput& input, const SigningScope& scope,
                         const Credentials& credentials, Timestamp now,
                         std::chrono::seconds valid_for) {
  const std::string amz_date = FormatAmzDate(now);
  NamedValues signed_headers = input.headers;
  signed_headers.emplace_back("host", input.host);
  const CanonicalHeaders headers = Canonical(signed_headers);
  NamedValues query = input.query;
  query.emplace_back("X-Amz-Algorithm", kAlgorithm);
  query.emplace_back("X-Amz-Credential",
                     credentials.access_key_id + "/" + ScopeText(scope, amz_date.substr(0, 8)));
  query.emplace_back("X-Amz-Date", amz_date);
  query.emplace_back("X-Amz-Expires", std::to_string(valid_for.count()));
  query.emplace_back("X-Amz-SignedHeaders", headers.names);
  if (!credentials.session_token.empty()) {
    query.emplace_back("X-Amz-Security-Token", credentials.session_token);
  }
  const std::string text = CanonicalQuery(query);
  return text + "&X-Amz-Signature=" + Signature(input, text, headers, scope, credentials, amz_date);
}

}  // namespace tarn::storage::aws
