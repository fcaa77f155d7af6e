// The hdr__ columns of an internal table and the partitions its rows live in.
//
// Names, types and field ids are fixed: docs/formats/internal_table.md lists them. User columns
// get the field ids after the last one here.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tarn::lakehouse {

/// Values of hdr__partition: what a row of the internal table is for.
inline constexpr std::string_view kChangesPartition = "Changes";
inline constexpr std::string_view kAssetStatePartition = "Asset_state";
inline constexpr std::string_view kCurrentPartition = "Current";
inline constexpr std::string_view kPriorPartition = "Prior";
inline constexpr std::string_view kReloadPartition = "Reload";

/// Header columns of the internal table, in table order.
enum class HeaderColumn : uint8_t {
  kPartition,
  kKeyHash,
  kOperation,
  kTimestamp,
  kFromTimestamp,
  kToTimestamp,
  kInsertedTimestamp,
  kModifiedTimestamp,
  kWasCurrentFromTimestamp,
  kWasCurrentToTimestamp,
  kChangeIdentifier,
  kApplyChangeIdentifier,
  kCopyChangeIdentifier,
};
inline constexpr size_t kHeaderColumnCount = 13;

enum class HeaderType : uint8_t { kString, kFixed20, kTimestampTz };

/// Name, field id (also the position in the schema plus one) and type of a header column.
struct HeaderColumnSpec {
  std::string_view name;
  int32_t field_id;
  HeaderType type;
};

inline constexpr std::array<HeaderColumnSpec, kHeaderColumnCount> kHeaderColumns = {{
    {"hdr__partition", 1, HeaderType::kString},
    {"hdr__key_hash", 2, HeaderType::kFixed20},
    {"hdr__operation", 3, HeaderType::kString},
    {"hdr__timestamp", 4, HeaderType::kTimestampTz},
    {"hdr__from_timestamp", 5, HeaderType::kTimestampTz},
    {"hdr__to_timestamp", 6, HeaderType::kTimestampTz},
    {"hdr__inserted_timestamp", 7, HeaderType::kTimestampTz},
    {"hdr__modified_timestamp", 8, HeaderType::kTimestampTz},
    {"hdr__was_current_from_timestamp", 9, HeaderType::kTimestampTz},
    {"hdr__was_current_to_timestamp", 10, HeaderType::kTimestampTz},
    {"hdr__change_identifier", 11, HeaderType::kString},
    {"hdr__apply_change_identifier", 12, HeaderType::kString},
    {"hdr__copy_change_identifier", 13, HeaderType::kString},
}};

/// First field id that a user column can have.
inline constexpr int32_t kFirstUserFieldId = 14;

constexpr const HeaderColumnSpec& Spec(HeaderColumn column) {
  return kHeaderColumns[static_cast<size_t>(column)];
}
constexpr std::string_view Name(HeaderColumn column) { return Spec(column).name; }

/// True for names that the product keeps for itself.
constexpr bool IsHeaderName(std::string_view name) { return name.starts_with("hdr__"); }

}  // namespace tarn::lakehouse
