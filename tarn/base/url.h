// Percent-encoding and query strings of URLs (RFC 3986; forms as browsers and the clients send).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tarn/base/status.h"

namespace tarn {

/// Percent-encodes every byte but A-Z a-z 0-9 - . _ ~ and those in `keep` ("/" for whole paths).
/// Upper-case hexadecimal, a space is %20: the form that AWS signs.
std::string EncodeUrl(std::string_view text, std::string_view keep = {});

/// Decodes %XX exactly once; '+' stays a plus. Errors: kInvalidArgument on '%' without two
/// hexadecimal digits, showing the text.
Result<std::string> DecodeUrl(std::string_view text);

/// The parameters of a query string in order, decoded once ('+' is a space). Value.
class UrlQuery {
 public:
  UrlQuery() = default;

  /// Reads "a=1&b=%2F&b=x+y"; "a" alone has an empty value. Errors: as DecodeUrl.
  static Result<UrlQuery> Parse(std::string_view text);

  /// The first value of `name`.
  [[nodiscard]] std::optional<std::string> Find(std::string_view name) const;
  /// All values of a repeated key, in order.
  [[nodiscard]] std::vector<std::string> FindAll(std::string_view name) const;
  void Add(std::string name, std::string value);
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& parameters() const {
    return parameters_;
  }
  /// "a=1&b=%2F": with EncodeUrl, so it parses back to the same.
  [[nodiscard]] std::string ToString() const;

  friend bool operator==(const UrlQuery&, const UrlQuery&) = default;

 private:
  std::vector<std::pair<std::string, std::string>> parameters_;
};

}  // namespace tarn
