#include "tarn/landing/landing_offsets.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace tarn::landing {

namespace {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;
using metastore::SqlValue;
using nlohmann::json;
using source::kafka::LossCause;
using source::kafka::LostRange;

std::string_view CauseName(LossCause cause) {
  return cause == LossCause::kRetention ? "retention" : "remade";
}

bool AreNumbers(const json& object, std::initializer_list<const char*> names) {
  return object.is_object() && std::all_of(names.begin(), names.end(), [&](const char* name) {
           return object.contains(name) && object[name].is_number_integer();
         });
}

bool HasPlace(const json& object) {
  return AreNumbers(object, {"partition", "from", "to"}) && object.contains("topic") &&
         object["topic"].is_string();
}

source::kafka::TopicPartition PlaceOf(const json& object) {
  return {.topic = object["topic"].get<std::string>(),
          .partition = object["partition"].get<int32_t>()};
}

json PlaceJson(const source::kafka::TopicPartition& where, int64_t from, int64_t to) {
  return {{"topic", where.topic}, {"partition", where.partition}, {"from", from}, {"to", to}};
}

}  // namespace

std::string EncodeTopics(const LandedTopics& topics) {
  json ranges = json::array();
  for (const LandedRange& range : topics.ranges) {
    json one = PlaceJson(range.where, range.from, range.to);
    one["holes"] = range.to - range.from - range.messages;
    ranges.push_back(std::move(one));
  }
  json out{{"ranges", std::move(ranges)}};
  for (const LostRange& lost : topics.gaps) {
    json one = PlaceJson(lost.where, lost.from, lost.to);
    one["cause"] = CauseName(lost.cause);
    out["gaps"].push_back(std::move(one));
  }
  return out.dump();
}

Result<std::optional<LandedTopics>> DecodeTopics(std::string_view record_json) {
  const json record = json::parse(record_json, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object() || !record.contains("positions") || !record["positions"].is_object() ||
      !record["positions"].contains("kafka")) {
    return std::optional<LandedTopics>();
  }
  const json& stored = record["positions"]["kafka"];
  const auto unreadable = [&] {
    return Status::Corruption("offsets of a transaction are unreadable: " + stored.dump());
  };
  if (!stored.is_object() || !stored.contains("ranges") || !stored["ranges"].is_array()) {
    return unreadable();
  }
  LandedTopics topics;
  for (const json& one : stored["ranges"]) {
    if (!HasPlace(one) || !AreNumbers(one, {"holes"})) {
      return unreadable();
    }
    LandedRange range{.where = PlaceOf(one),
                      .from = one["from"].get<int64_t>(),
                      .to = one["to"].get<int64_t>(),
                      .messages = 0};
    range.messages = range.to - range.from - one["holes"].get<int64_t>();
    topics.ranges.push_back(std::move(range));
  }
  for (const json& one : stored.value("gaps", json::array())) {
    if (!HasPlace(one) || !one.contains("cause") || !one["cause"].is_string()) {
      return unreadable();
    }
    topics.gaps.push_back(
        {.where = PlaceOf(one),
         .from = one["from"].get<int64_t>(),
         .to = one["to"].get<int64_t>(),
         .cause = one["cause"] == "retention" ? LossCause::kRetention : LossCause::kRemade});
  }
  return std::optional(std::move(topics));
}

Result<StoredOffsets> ReadOffsets(SqlTransaction& sql, std::string_view dataset) {
  StoredOffsets offsets;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT topic, partition_number, first_offset, next_offset, seen_offset, "
      "seen_digest, recorded_offset FROM landing_offset WHERE dataset = ?1",
      {std::string(dataset)}, [&](const SqlRow& row) -> Result<RowAction> {
        StoredOffset& offset = offsets[{.topic = std::string(row.Text(0)),
                                        .partition = static_cast<int32_t>(row.Int(1))}];
        offset = {.first = row.Int(2), .next = row.Int(3)};
        if (!row.IsNull(4) && !row.IsNull(5)) {
          offset.seen = {.offset = row.Int(4), .digest = static_cast<uint64_t>(row.Int(5))};
        }
        if (!row.IsNull(6)) {
          offset.recorded = row.Int(6);
        }
        return RowAction::kContinue;
      }));
  return offsets;
}

Status WriteOffsets(SqlTransaction& sql, std::string_view dataset, const StoredOffsets& offsets) {
  for (const auto& [where, offset] : offsets) {
    SqlValue seen_offset;
    SqlValue seen_digest;
    if (offset.seen) {
      seen_offset = offset.seen->offset;
      seen_digest = static_cast<int64_t>(offset.seen->digest);
    }
    SqlValue recorded;
    if (offset.recorded) {
      recorded = *offset.recorded;
    }
    TARN_RETURN_IF_ERROR(sql.Execute(
        "INSERT INTO landing_offset (dataset, topic, partition_number, first_offset, next_offset, "
        "seen_offset, seen_digest, recorded_offset) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON "
        "CONFLICT (dataset, topic, partition_number) DO UPDATE SET first_offset = "
        "excluded.first_offset, next_offset = excluded.next_offset, seen_offset = "
        "excluded.seen_offset, seen_digest = excluded.seen_digest, recorded_offset = "
        "excluded.recorded_offset",
        {std::string(dataset), where.topic, int64_t{where.partition}, offset.first, offset.next,
         seen_offset, seen_digest, recorded}));
  }
  return Status::Ok();
}

}  // namespace tarn::landing
