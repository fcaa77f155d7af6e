#include "tarn/lakehouse/change_identifier.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace tarn::lakehouse {

namespace {

constexpr size_t kMillisDigits = 13;
constexpr size_t kTimeDigits = 16;
constexpr size_t kNumberDigits = 19;
constexpr size_t kPrefixSize = kMillisDigits + kTimeDigits;
constexpr int64_t kMillisMax = 9'999'999'999'999;
// 9999-12-31T23:59:59.99Z, the last time that sixteen digits can say.
constexpr int64_t kHundredthsMax = 253'402'300'799 * 100 + 99;

void WriteDigits(int64_t value, size_t digits, char* out) {
  for (size_t i = digits; i > 0; --i) {
    out[i - 1] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
}

void WritePrefix(const ChangeIdentifier& identifier, char* out) {
  WriteDigits(identifier.landed_millis, kMillisDigits, out);
  const std::chrono::sys_seconds seconds{std::chrono::seconds{identifier.source_hundredths / 100}};
  const auto day = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{seconds - day};
  char* text = out + kMillisDigits;
  WriteDigits(static_cast<int>(date.year()), 4, text);
  WriteDigits(static_cast<unsigned>(date.month()), 2, text + 4);
  WriteDigits(static_cast<unsigned>(date.day()), 2, text + 6);
  WriteDigits(time.hours().count(), 2, text + 8);
  WriteDigits(time.minutes().count(), 2, text + 10);
  WriteDigits(time.seconds().count(), 2, text + 12);
  WriteDigits(identifier.source_hundredths % 100, 2, text + 14);
}

int64_t ReadDigits(std::string_view text) {
  int64_t value = 0;
  for (const char c : text) {
    value = value * 10 + (c - '0');
  }
  return value;
}

ChangeIdentifier Clamped(ChangeIdentifier identifier) {
  identifier.landed_millis = std::clamp<int64_t>(identifier.landed_millis, 0, kMillisMax);
  identifier.source_hundredths =
      std::clamp<int64_t>(identifier.source_hundredths, 0, kHundredthsMax);
  return identifier;
}

}  // namespace

std::string FormatChangeIdentifier(const ChangeIdentifier& identifier) {
  std::string text(kChangeIdentifierSize, '0');
  WritePrefix(Clamped(identifier), text.data());
  WriteDigits(identifier.change_number, kNumberDigits, text.data() + kPrefixSize);
  return text;
}

Result<ChangeIdentifier> ParseChangeIdentifier(std::string_view text) {
  const auto corrupt = [&] {
    return Status::Corruption(fmt::format("not a change identifier of 48 digits: \"{}\"", text));
  };
  if (text.size() != kChangeIdentifierSize ||
      text.find_first_not_of("0123456789") != std::string_view::npos) {
    return corrupt();
  }
  const std::string_view time = text.substr(kMillisDigits, kTimeDigits);
  const std::chrono::year_month_day date{
      std::chrono::year{static_cast<int>(ReadDigits(time.substr(0, 4)))},
      std::chrono::month{static_cast<unsigned>(ReadDigits(time.substr(4, 2)))},
      std::chrono::day{static_cast<unsigned>(ReadDigits(time.substr(6, 2)))}};
  const int64_t hour = ReadDigits(time.substr(8, 2));
  const int64_t minute = ReadDigits(time.substr(10, 2));
  const int64_t second = ReadDigits(time.substr(12, 2));
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) {
    return corrupt();
  }
  const int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
  ChangeIdentifier identifier;
  identifier.landed_millis = ReadDigits(text.substr(0, kMillisDigits));
  identifier.source_hundredths =
      ((days * 24 + hour) * 60 + minute) * 6000 + second * 100 + ReadDigits(time.substr(14, 2));
  identifier.change_number = ReadDigits(text.substr(kPrefixSize));
  return identifier;
}

ChangeNumbering::ChangeNumbering(const ChangeIdentifier& last) : last_(Clamped(last)) {
  WritePrefix(last_, prefix_);
}

void ChangeNumbering::Next(Timestamp landed, Timestamp source, char* out) {
  const int64_t landed_millis =
      std::clamp<int64_t>(ToMillis(landed), last_.landed_millis, kMillisMax);
  const auto hundredths =
      std::chrono::floor<std::chrono::duration<int64_t, std::centi>>(source).time_since_epoch();
  const int64_t source_hundredths =
      std::clamp<int64_t>(hundredths.count(), last_.source_hundredths, kHundredthsMax);
  if (landed_millis != last_.landed_millis || source_hundredths != last_.source_hundredths) {
    last_.landed_millis = landed_millis;
    last_.source_hundredths = source_hundredths;
    WritePrefix(last_, prefix_);
  }
  ++last_.change_number;
  std::memcpy(out, prefix_, kPrefixSize);
  WriteDigits(last_.change_number, kNumberDigits, out + kPrefixSize);
}

}  // namespace tarn::lakehouse
