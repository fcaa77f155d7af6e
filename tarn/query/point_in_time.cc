#include "tarn/query/point_in_time.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace tarn::query {

Result<PointInTime> ParsePointInTime(std::string_view text) {
  if (text.empty()) {
    return PointInTime(Newest{});
  }
  if (text.starts_with("ri.")) {
    TARN_ASSIGN_OR_RETURN(const dataset::TransactionRid rid, dataset::TransactionRid::Parse(text));
    return PointInTime(rid);
  }
  if (std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    SnapshotId id;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), id.value);
    if (error == std::errc() && stop == text.data() + text.size()) {
      return PointInTime(id);
    }
  } else if (Result<Timestamp> time = ParseTimestamp(text); time.ok()) {
    return PointInTime(*time);
  }
  return Status::InvalidArgument(
      fmt::format("\"{}\" is no point in time: give an ISO-8601 time with a zone "
                  "(2026-01-31T12:00:00Z), a snapshot id (digits) or a transaction RID",
                  text));
}

std::string FormatPointInTime(const PointInTime& point) {
  if (const auto* time = std::get_if<Timestamp>(&point)) {
    return FormatTimestamp(*time);
  }
  if (const auto* id = std::get_if<SnapshotId>(&point)) {
    return fmt::format("snapshot {}", id->value);
  }
  if (const auto* transaction = std::get_if<dataset::TransactionRid>(&point)) {
    return transaction->ToString();
  }
  return "now";
}

}  // namespace tarn::query
