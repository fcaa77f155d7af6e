// JSON inside the table format: one alias, and readers whose errors name the object and the member.
//
// Members keep their order, so that what is written is stable byte by byte.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tarn/base/status.h"

namespace tarn::iceberg {

using Json = nlohmann::ordered_json;

/// Members of an object that this code does not know, as JSON text: written back unchanged.
using UnknownMembers = std::map<std::string, std::string>;

/// Parses a document; `what` names it in the error. Errors: kInvalidArgument, also beyond 200
/// levels.
Result<Json> ParseJson(std::string_view text, std::string_view what);
/// Compact text; bytes that are not UTF-8 become U+FFFD.
std::string DumpJson(const Json& json);

/// Reads members of one JSON object. Errors: kInvalidArgument naming `what`, the member and what
/// was found. Lifetime: borrows both arguments.
class JsonObject {
 public:
  /// Errors: kInvalidArgument unless `json` is an object.
  static Result<JsonObject> Of(const Json& json, std::string_view what);

  /// The member, or null when absent or JSON null.
  [[nodiscard]] const Json* Find(std::string_view key) const;
  [[nodiscard]] Result<const Json*> Get(std::string_view key) const;
  [[nodiscard]] Result<int64_t> GetLong(std::string_view key) const;
  [[nodiscard]] Result<int32_t> GetInt(std::string_view key) const;
  [[nodiscard]] Result<bool> GetBool(std::string_view key) const;
  [[nodiscard]] Result<std::string> GetString(std::string_view key) const;
  [[nodiscard]] Result<std::optional<int64_t>> FindLong(std::string_view key) const;
  [[nodiscard]] Result<std::optional<int32_t>> FindInt(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::string>> FindString(std::string_view key) const;
  /// Absent or null gives an empty map.
  [[nodiscard]] Result<std::map<std::string, std::string>> FindStringMap(
      std::string_view key) const;
  /// Absent or null gives an empty vector.
  [[nodiscard]] Result<std::vector<int64_t>> FindLongs(std::string_view key) const;
  [[nodiscard]] Result<std::vector<int32_t>> FindInts(std::string_view key) const;
  [[nodiscard]] Result<std::vector<std::string>> FindStrings(std::string_view key) const;
  /// The elements of an array member; absent or null gives none.
  [[nodiscard]] Result<std::vector<const Json*>> FindArray(std::string_view key) const;
  /// Every member whose name is not in `known`.
  [[nodiscard]] UnknownMembers Unknown(const std::vector<std::string_view>& known) const;
  [[nodiscard]] Status Error(std::string_view key, std::string_view expected,
                             const Json& found) const;

 private:
  JsonObject(const Json& json, std::string_view what) : json_(&json), what_(what) {}
  const Json* json_;
  std::string_view what_;
};

/// Adds unknown members at the end of an object.
void AppendUnknown(Json& object, const UnknownMembers& unknown);

}  // namespace tarn::iceberg
