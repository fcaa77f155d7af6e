#include "tarn/source/files/listing_plan.h"

#include <algorithm>

namespace tarn::source::files {

namespace {

// The last code point: behind every key with a prefix that it is put after.
constexpr std::string_view kLastCharacter = "\xF4\x8F\xBF\xBF";

// The periods of `unit` from `begin` to `end`, both inclusive; nothing when more than `count_max`.
std::optional<std::vector<Timestamp>> PeriodsIn(Timestamp begin, Timestamp end, DateUnit unit,
                                                size_t count_max) {
  std::vector<Timestamp> periods;
  for (DatePeriod period = PeriodOf(begin, unit); period.begin <= end;
       period = PeriodOf(period.end, unit)) {
    if (periods.size() == count_max) {
      return std::nullopt;
    }
    periods.push_back(period.begin);
  }
  return periods;
}

struct Periods {
  DateUnit unit;
  std::vector<Timestamp> begins;
};

// The finest unit of the pattern whose periods are few enough.
std::optional<Periods> ChoosePeriods(DateUnit finest, Timestamp begin, Timestamp end,
                                     size_t count_max) {
  for (int unit = static_cast<int>(finest); unit >= 0; --unit) {
    std::optional<std::vector<Timestamp>> begins =
        PeriodsIn(begin, end, static_cast<DateUnit>(unit), count_max);
    if (begins) {
      return Periods{static_cast<DateUnit>(unit), *std::move(begins)};
    }
  }
  return std::nullopt;
}

ListingPlan Whole(const PathPattern& pattern) {
  return {.steps = {{.prefix = pattern.LiteralPrefix(), .start_after = {}}},
          .window_begin = Timestamp::min(),
          .whole = true};
}

}  // namespace

ListingPlan PlanListing(const PathPattern& pattern, const ListingOptions& options,
                        std::optional<Timestamp> complete_until, std::optional<Timestamp> from,
                        Timestamp now) {
  if (!pattern.unit() || (!complete_until && !from)) {
    return Whole(pattern);
  }
  Timestamp begin = complete_until ? std::min(*complete_until, now) - options.look_back : *from;
  begin = std::min(from ? std::max(begin, *from) : begin, now);
  const std::optional<Periods> periods =
      ChoosePeriods(*pattern.unit(), begin, now, options.prefixes_max);
  if (!periods) {
    ListingPlan plan = Whole(pattern);
    plan.window_begin = begin;
    return plan;
  }
  ListingPlan plan{.window_begin = begin};
  const auto add = [&plan](ListingStep step) {
    if (std::find(plan.steps.begin(), plan.steps.end(), step) == plan.steps.end()) {
      plan.steps.push_back(std::move(step));
    }
  };
  for (const Timestamp period : periods->begins) {
    add({.prefix = pattern.PrefixFor(period, periods->unit), .start_after = {}});
  }
  if (options.future == FuturePolicy::kRead) {
    if (!pattern.dates_in_byte_order()) {
      // Later dates may stand anywhere.
      ListingPlan whole = Whole(pattern);
      whole.window_begin = begin;
      return whole;
    }
    add({.prefix = pattern.LiteralPrefix(),
         .start_after = pattern.PrefixFor(now, periods->unit) + std::string(kLastCharacter)});
  }
  return plan;
}

}  // namespace tarn::source::files
