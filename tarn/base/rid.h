// Resource identifiers: "ri.<service>.<instance>.<type>.<locator>", never changed, never reused.
#pragma once

#include <compare>
#include <functional>
#include <string>
#include <string_view>

#include "tarn/base/status.h"
#include "tarn/base/uuid.h"

namespace tarn {

/// A resource identifier, always well-formed. Value.
class Rid {
 public:
  Rid() = default;  // Empty: only as "not set yet".

  /// Errors: kInvalidArgument unless five parts that keep to the alphabet of their place.
  static Result<Rid> Parse(std::string_view text);
  /// "ri.<service>.main.<type>.<uuid>".
  static Rid Make(std::string_view service, std::string_view type, const Uuid& locator);

  [[nodiscard]] const std::string& ToString() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  [[nodiscard]] std::string_view service() const;
  /// E.g. "dataset", "transaction", "folder".
  [[nodiscard]] std::string_view type() const;
  [[nodiscard]] std::string_view locator() const;

  friend auto operator<=>(const Rid&, const Rid&) = default;

 private:
  explicit Rid(std::string text) : text_(std::move(text)) {}
  [[nodiscard]] std::string_view Part(int index) const;

  std::string text_;
};

/// True where `text` would pass Rid::Parse.
bool IsRid(std::string_view text);

}  // namespace tarn

template <>
struct std::hash<tarn::Rid> {
  size_t operator()(const tarn::Rid& rid) const noexcept {
    return std::hash<std::string>{}(rid.ToString());
  }
};
