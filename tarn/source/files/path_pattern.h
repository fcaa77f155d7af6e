// PathPattern: which keys a landing task reads, and the date that stands in a key.
//
// "orders/<yyyy>/<MM>/<dd>/*.json": '*' is any characters but '/', placeholders are digits of a
// date in UTC, everything else stands for itself ('?', '[', ']', '{', '}' too).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"

namespace tarn::source::files {

/// From coarse to fine.
enum class DateUnit { kYear, kMonth, kDay, kHour, kMinute };

/// The period of time that a date in a key names: [begin, end).
struct DatePeriod {
  Timestamp begin{};
  Timestamp end{};
  friend bool operator==(const DatePeriod&, const DatePeriod&) = default;
};

/// The period of `unit` that holds `time`.
DatePeriod PeriodOf(Timestamp time, DateUnit unit);

struct PathMatch {
  std::optional<DatePeriod> period;  // Empty when the pattern has no placeholders.
  friend bool operator==(const PathMatch&, const PathMatch&) = default;
};

/// A parsed pattern. Value.
class PathPattern {
 public:
  /// Errors: kInvalidArgument on an empty text, a leading or trailing slash, ".." and the like,
  /// "**", an unknown placeholder, one without those coarser than it (a day without a month).
  static Result<PathPattern> Parse(std::string_view text);

  [[nodiscard]] const std::string& text() const { return text_; }
  /// Nothing when `key` does not fit: also when its digits are no date (month 13) or two
  /// placeholders of a kind disagree. Cost: O(key length) per '*'.
  [[nodiscard]] std::optional<PathMatch> Match(std::string_view key) const;

  /// The finest placeholder; empty = no date in this pattern.
  [[nodiscard]] std::optional<DateUnit> unit() const { return unit_; }
  /// What every matching key begins with, up to the first '*' or placeholder.
  [[nodiscard]] std::string LiteralPrefix() const;
  /// As LiteralPrefix, going on through placeholders not finer than `unit` with the digits of
  /// `time`.
  [[nodiscard]] std::string PrefixFor(Timestamp time, DateUnit unit) const;
  /// True when byte order of matching keys is date order: all placeholders stand before the first
  /// '*', from coarse to fine.
  [[nodiscard]] bool dates_in_byte_order() const { return dates_in_byte_order_; }

  friend bool operator==(const PathPattern&, const PathPattern&) = default;

 private:
  struct Piece {
    enum class Kind { kLiteral, kStar, kDate };
    Kind kind = Kind::kLiteral;
    std::string literal;
    DateUnit unit = DateUnit::kYear;
    friend bool operator==(const Piece&, const Piece&) = default;
  };

  static Result<std::vector<Piece>> ParsePieces(std::string_view text);
  [[nodiscard]] Status CheckDates() const;

  std::string text_;
  std::vector<Piece> pieces_;
  std::optional<DateUnit> unit_;
  bool dates_in_byte_order_ = false;
};

}  // namespace tarn::source::files
