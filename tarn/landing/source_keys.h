// SourceKeys: which members the keys of a source's records have, by table of the source.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/format/json_tape.h"

namespace tarn::landing {

/// Value; one owner thread.
class SourceKeys {
 public:
  /// Notes the key of a record of `table` ("schema.table"); false or no object: it has none. The
  /// newest members count; a record without key leaves those of earlier ones. Cost: a comparison
  /// with the record before.
  void Note(std::string_view table, format::JsonValue key);

  [[nodiscard]] bool empty() const { return tables_.empty(); }
  /// The key that all tables have, in the order of its members. Errors: kFailedPrecondition when
  /// nothing is known, a table has no key, or two have different ones: names them.
  [[nodiscard]] Result<std::vector<std::string>> Common() const;

  /// JSON {"schema.table": ["id", …], …}, and back. Errors: kCorruption.
  [[nodiscard]] std::string Encode() const;
  static Result<SourceKeys> Decode(std::string_view json);

  friend bool operator==(const SourceKeys& a, const SourceKeys& b) {
    return a.tables_ == b.tables_ && a.many_ == b.many_;
  }

 private:
  using Tables = std::map<std::string, std::vector<std::string>, std::less<>>;

  Tables tables_;      // Empty members: no key.
  bool many_ = false;  // There were tables that are not kept.
};

}  // namespace tarn::landing
