// MappingSpec: what a pipeline file says about turning landed rows into rows of one table. Values
// only; the meaning of each key is in the guide of the pipeline file.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace tarn::transform {

enum class Mode { kMerge, kAppend };
enum class Nesting { kExpand, kKeep };    // Structs: one column per leaf, or as they are.
enum class EmptyArrays { kKeep, kDrop };  // One row with NULLs, or none.
enum class OnCastError { kReject, kNull };
enum class NullKeys { kReject, kAllow };
enum class ExpectAction { kWarn, kDrop, kReject, kStop };

/// `name: "expression"` or `name: {expr, type, hash}`.
struct ColumnMapping {
  std::string name;
  std::string expression;             // Empty = the landed column of this name.
  std::optional<std::string> type{};  // Declared type name (format::ParseTypeName).
  bool hash = false;                  // SHA-1 of the canonical text, lower-case hexadecimal.
  friend bool operator==(const ColumnMapping&, const ColumnMapping&) = default;
};

struct ColumnRename {
  std::string from;
  std::string to;
  friend bool operator==(const ColumnRename&, const ColumnRename&) = default;
};

struct Expectation {
  std::string name;
  std::string check;
  ExpectAction action = ExpectAction::kReject;
  friend bool operator==(const Expectation&, const Expectation&) = default;
};

struct DeduplicateSpec {
  std::vector<std::string> by;
  std::chrono::microseconds window{};
  friend bool operator==(const DeduplicateSpec&, const DeduplicateSpec&) = default;
};

struct MappingSpec {
  std::string target;  // Name for messages.
  Mode mode = Mode::kMerge;
  std::vector<ColumnMapping> columns{};
  bool only = false;                // Only `columns`; else they add to or replace landed ones.
  std::vector<std::string> drop{};  // Names, or patterns with %.
  std::vector<ColumnRename> rename{};
  Nesting nested = Nesting::kExpand;
  EmptyArrays empty_arrays = EmptyArrays::kKeep;
  bool zip = false;
  std::string where{};
  std::vector<Expectation> expect{};
  OnCastError on_cast_error = OnCastError::kReject;
  std::optional<DeduplicateSpec> deduplicate{};
  std::vector<std::string> key{};
  NullKeys null_keys = NullKeys::kReject;
  std::string delete_when{};
  std::string sequence_by{};
  std::string event_time{};
  // What the pipeline file does not say: found when the mapping meets its input and its table.
  // Landed columns and members, as paths of names, that have no type yet because they only ever
  // were NULL: no column comes of them, unless the key names it.
  std::vector<std::vector<std::string>> untyped{};
  std::vector<std::string> left_out{};  // Columns, by final name, that the table does not take.
  friend bool operator==(const MappingSpec&, const MappingSpec&) = default;
};

}  // namespace tarn::transform
