#include "tarn/source/files/path_pattern.h"

#include <array>
#include <cstdint>

#include <fmt/core.h>

#include "tarn/storage/object_key.h"

namespace tarn::source::files {

namespace {

struct Placeholder {
  std::string_view text;
  DateUnit unit;
  size_t digits;
};

constexpr std::array<Placeholder, 5> kPlaceholders = {{{"<yyyy>", DateUnit::kYear, 4},
                                                       {"<MM>", DateUnit::kMonth, 2},
                                                       {"<dd>", DateUnit::kDay, 2},
                                                       {"<HH>", DateUnit::kHour, 2},
                                                       {"<mm>", DateUnit::kMinute, 2}}};

size_t IndexOf(DateUnit unit) { return static_cast<size_t>(unit); }

// The fields of a date by unit; -1 = not seen.
using Fields = std::array<int, 5>;
constexpr Fields kNoFields = {-1, -1, -1, -1, -1};

Fields FieldsOf(Timestamp time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{time - day};
  return {static_cast<int>(date.year()), static_cast<int>(static_cast<unsigned>(date.month())),
          static_cast<int>(static_cast<unsigned>(date.day())),
          static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count())};
}

// The instant where the period with these fields begins; missing ones count as the lowest.
std::optional<Timestamp> TimeOf(const Fields& fields) {
  const std::chrono::year_month_day date{
      std::chrono::year{fields[0]},
      std::chrono::month{static_cast<unsigned>(fields[1] < 0 ? 1 : fields[1])},
      std::chrono::day{static_cast<unsigned>(fields[2] < 0 ? 1 : fields[2])}};
  const int hour = fields[3] < 0 ? 0 : fields[3];
  const int minute = fields[4] < 0 ? 0 : fields[4];
  if (!date.ok() || hour > 23 || minute > 59) {
    return std::nullopt;
  }
  return Timestamp{std::chrono::sys_days{date}} + std::chrono::hours{hour} +
         std::chrono::minutes{minute};
}

std::string Digits(const Fields& fields, DateUnit unit) {
  return unit == DateUnit::kYear ? fmt::format("{:04}", fields[0])
                                 : fmt::format("{:02}", fields.at(IndexOf(unit)));
}

Status Malformed(std::string_view text, std::string_view fault) {
  return Status::InvalidArgument(fmt::format("bad path pattern \"{}\": {}", text, fault));
}

bool LooksLikePlaceholder(std::string_view rest) {
  const size_t end = rest.find('>');
  if (end == std::string_view::npos || end < 2) {
    return false;
  }
  for (const char c : rest.substr(1, end - 1)) {
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z')) {
      return false;
    }
  }
  return true;
}

}  // namespace

DatePeriod PeriodOf(Timestamp time, DateUnit unit) {
  Fields fields = FieldsOf(time);
  for (size_t i = IndexOf(unit) + 1; i < fields.size(); ++i) {
    fields.at(i) = -1;
  }
  const Timestamp begin = TimeOf(fields).value();
  switch (unit) {
    case DateUnit::kYear:
      ++fields[0];
      return {begin, TimeOf(fields).value()};
    case DateUnit::kMonth:
      fields[0] += fields[1] == 12 ? 1 : 0;
      fields[1] = fields[1] == 12 ? 1 : fields[1] + 1;
      return {begin, TimeOf(fields).value()};
    case DateUnit::kDay:
      return {begin, begin + std::chrono::hours{24}};
    case DateUnit::kHour:
      return {begin, begin + std::chrono::hours{1}};
    case DateUnit::kMinute:
      break;
  }
  return {begin, begin + std::chrono::minutes{1}};
}

Result<PathPattern> PathPattern::Parse(std::string_view text) {
  const Status key = storage::CheckKey(text);
  if (!key.ok()) {
    return Malformed(text, "it is no relative path (" + key.message() + ")");
  }
  PathPattern pattern;
  pattern.text_ = text;
  TARN_ASSIGN_OR_RETURN(pattern.pieces_, ParsePieces(text));
  bool star_seen = false;
  pattern.dates_in_byte_order_ = true;
  for (const Piece& piece : pattern.pieces_) {
    star_seen = star_seen || piece.kind == Piece::Kind::kStar;
    if (piece.kind == Piece::Kind::kDate) {
      const bool in_order = !star_seen && (!pattern.unit_ || *pattern.unit_ <= piece.unit);
      pattern.dates_in_byte_order_ = pattern.dates_in_byte_order_ && in_order;
      pattern.unit_ = pattern.unit_ ? std::max(*pattern.unit_, piece.unit) : piece.unit;
    }
  }
  pattern.dates_in_byte_order_ = pattern.dates_in_byte_order_ && pattern.unit_.has_value();
  TARN_RETURN_IF_ERROR(pattern.CheckDates());
  return pattern;
}

Result<std::vector<PathPattern::Piece>> PathPattern::ParsePieces(std::string_view text) {
  std::vector<Piece> pieces;
  std::string_view rest = text;
  while (!rest.empty()) {
    if (rest.starts_with("**")) {
      return Malformed(text, "\"**\" is not available: name each folder level, as in */*.json");
    }
    if (rest[0] == '*') {
      pieces.push_back({.kind = Piece::Kind::kStar});
      rest.remove_prefix(1);
      continue;
    }
    const Placeholder* found = nullptr;
    for (const Placeholder& placeholder : kPlaceholders) {
      found = rest.starts_with(placeholder.text) ? &placeholder : found;
    }
    if (found != nullptr) {
      pieces.push_back({.kind = Piece::Kind::kDate, .unit = found->unit});
      rest.remove_prefix(found->text.size());
      continue;
    }
    if (rest[0] == '<' && LooksLikePlaceholder(rest)) {
      return Malformed(text, fmt::format("unknown placeholder {} (there are <yyyy>, <MM>, <dd>, "
                                         "<HH>, <mm>)",
                                         rest.substr(0, rest.find('>') + 1)));
    }
    if (pieces.empty() || pieces.back().kind != Piece::Kind::kLiteral) {
      pieces.push_back({.kind = Piece::Kind::kLiteral});
    }
    pieces.back().literal += rest[0];
    rest.remove_prefix(1);
  }
  return pieces;
}

Status PathPattern::CheckDates() const {
  std::array<bool, 5> seen{};
  for (const Piece& piece : pieces_) {
    if (piece.kind == Piece::Kind::kDate) {
      seen.at(IndexOf(piece.unit)) = true;
    }
  }
  for (size_t i = 1; unit_ && i <= IndexOf(*unit_); ++i) {
    if (!seen.at(i - 1)) {
      return Malformed(text_, fmt::format("{} needs {} too", kPlaceholders.at(IndexOf(*unit_)).text,
                                          kPlaceholders.at(i - 1).text));
    }
  }
  return Status::Ok();
}

namespace {

// Reads the digits of a placeholder; false when they are none or disagree with earlier ones.
bool TakeDigits(std::string_view key, size_t* position, const Placeholder& placeholder,
                Fields* fields) {
  if (*position + placeholder.digits > key.size()) {
    return false;
  }
  int value = 0;
  for (size_t i = 0; i < placeholder.digits; ++i) {
    const char c = key[*position + i];
    if (c < '0' || c > '9') {
      return false;
    }
    value = value * 10 + (c - '0');
  }
  *position += placeholder.digits;
  int& field = fields->at(IndexOf(placeholder.unit));
  if (field >= 0 && field != value) {
    return false;
  }
  field = value;
  return true;
}

}  // namespace

std::optional<PathMatch> PathPattern::Match(std::string_view key) const {
  // Where to go on when a later piece does not fit: the last '*' takes one more character. Going
  // back to an earlier one is not needed between slashes, but a date after a later '*' may
  // disagree, so each '*' keeps its place.
  struct Retry {
    size_t piece;
    size_t position;
    Fields fields;
  };
  std::vector<Retry> retries;
  size_t piece = 0;
  size_t position = 0;
  Fields fields = kNoFields;
  int64_t steps_left = 100'000;  // Patterns such as "*a*a*a*a*b" must not take for ever.
  while (--steps_left > 0) {
    bool fits = true;
    if (piece == pieces_.size()) {
      const std::optional<Timestamp> time =
          unit_ ? TimeOf(fields) : std::optional<Timestamp>(Timestamp{});
      if (position == key.size() && time) {
        return PathMatch{unit_ ? std::optional(PeriodOf(*time, *unit_)) : std::nullopt};
      }
      fits = false;
    } else if (const Piece& now = pieces_[piece]; now.kind == Piece::Kind::kStar) {
      retries.push_back({piece, position, fields});
      ++piece;
      continue;
    } else if (now.kind == Piece::Kind::kLiteral) {
      fits = key.substr(position).starts_with(now.literal);
      position += now.literal.size();
    } else {
      fits = TakeDigits(key, &position, kPlaceholders.at(IndexOf(now.unit)), &fields);
    }
    if (fits) {
      ++piece;
      continue;
    }
    while (!retries.empty() &&
           (retries.back().position == key.size() || key[retries.back().position] == '/')) {
      retries.pop_back();
    }
    if (retries.empty()) {
      return std::nullopt;
    }
    Retry& retry = retries.back();
    ++retry.position;
    piece = retry.piece + 1;
    position = retry.position;
    fields = retry.fields;
  }
  return std::nullopt;
}

std::string PathPattern::LiteralPrefix() const {
  return pieces_.front().kind == Piece::Kind::kLiteral ? pieces_.front().literal : std::string();
}

std::string PathPattern::PrefixFor(Timestamp time, DateUnit unit) const {
  const Fields fields = FieldsOf(time);
  std::string prefix;
  for (const Piece& piece : pieces_) {
    if (piece.kind == Piece::Kind::kStar ||
        (piece.kind == Piece::Kind::kDate && piece.unit > unit)) {
      break;
    }
    prefix += piece.kind == Piece::Kind::kLiteral ? piece.literal : Digits(fields, piece.unit);
  }
  return prefix;
}

}  // namespace tarn::source::files
