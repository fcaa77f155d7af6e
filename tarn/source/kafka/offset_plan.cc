#include "tarn/source/kafka/offset_plan.h"

#include <algorithm>
#include <string>

namespace tarn::source::kafka {

namespace {

int64_t FreshStart(const PartitionFacts& facts, const OffsetPlanRequest& request) {
  switch (request.start.kind) {
    case StartPolicy::Kind::kEarliest:
      return facts.first;
    case StartPolicy::Kind::kNow:
      return request.first_start ? facts.end : facts.first;
    case StartPolicy::Kind::kTime:
      return facts.at_time.value_or(facts.end);
  }
  return facts.first;
}

}  // namespace

Result<StartPolicy> ParseStart(std::string_view text) {
  if (text == "earliest") {
    return StartPolicy{};
  }
  if (text == "now") {
    return StartPolicy{.kind = StartPolicy::Kind::kNow};
  }
  const Result<Timestamp> time = ParseTimestamp(text);
  if (!time.ok()) {
    return Status::InvalidArgument(
        "expected earliest, now or a time such as "
        "2026-01-31T00:00:00Z, found " +
        std::string(text));
  }
  return StartPolicy{.kind = StartPolicy::Kind::kTime, .time = *time};
}

OffsetPlan PlanOffsets(const std::vector<PartitionFacts>& facts, const OffsetPlanRequest& request) {
  OffsetPlan plan;
  plan.starts.reserve(facts.size());
  for (const PartitionFacts& one : facts) {
    PlannedStart start{
        .where = one.where, .offset = 0, .end = one.end, .fresh = false, .first = one.first};
    const auto stored = request.stored->find(one.where);
    if (stored == request.stored->end()) {
      start.fresh = true;
      // A message may have come, or retention may have run, between the answers.
      start.offset = std::max(FreshStart(one, request), one.first);
    } else if (!one.remade && stored->second < one.first) {
      start.offset = one.first;
      plan.lost.push_back({.where = one.where,
                           .from = stored->second,
                           .to = one.first,
                           .cause = LossCause::kRetention});
    } else if (one.remade || stored->second > one.end) {
      start.offset = one.first;
      plan.lost.push_back({.where = one.where,
                           .from = stored->second,
                           .to = one.first,
                           .cause = LossCause::kRemade});
    } else {
      start.offset = stored->second;
    }
    plan.starts.push_back(std::move(start));
  }
  return plan;
}

}  // namespace tarn::source::kafka
