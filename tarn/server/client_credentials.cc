#include "tarn/server/client_credentials.h"

#include "tarn/base/hash.h"

namespace tarn::server {

access::ClientSecret ReadClientCredentials(const RequestContext& context, const UrlQuery& form) {
  access::ClientSecret client{.client_id = form.Find("client_id").value_or(""),
                              .secret = form.Find("client_secret").value_or("")};
  const auto field = context.http.headers.Find("Authorization");
  constexpr std::string_view kBasic = "Basic ";
  if (!field || field->size() <= kBasic.size() ||
      !http::EqualsIgnoringCase(field->substr(0, kBasic.size()), kBasic)) {
    return client;
  }
  const Result<std::string> pair = DecodeBase64(std::string(field->substr(kBasic.size())));
  const size_t colon = pair.ok() ? pair->find(':') : std::string::npos;
  if (colon == std::string::npos) {
    return client;
  }
  const Result<std::string> id = DecodeUrl(pair->substr(0, colon));
  const Result<std::string> secret = DecodeUrl(pair->substr(colon + 1));
  return {.client_id = id.ok() ? *id : "", .secret = secret.ok() ? *secret : ""};
}

}  // namespace tarn::server
