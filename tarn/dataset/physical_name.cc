#include "tarn/dataset/physical_name.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "tarn/base/clock.h"
#include "tarn/base/hash.h"

namespace tarn::dataset {

namespace {

constexpr size_t kExtensionBytesMax = 16;
constexpr size_t kUuidBytes = 16;
constexpr size_t kUuidText = 36;
constexpr size_t kFileAt = kUuidText + 12;  // Behind "/yyyy/mm/dd/".
constexpr size_t kShortText = 43;           // Two uuids in base 64, without padding.

// ".csv" of "a/b.csv"; empty where the end of the path is no plain short extension.
std::string_view ExtensionOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || dot + 1 == name.size()) {
    return {};
  }
  const std::string_view extension = name.substr(dot);
  const bool plain =
      extension.size() <= kExtensionBytesMax &&
      std::all_of(extension.begin() + 1, extension.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      });
  return plain ? extension : std::string_view{};
}

// Time of a v7 identifier: its first 48 bits are milliseconds.
Timestamp TimeOf(const Uuid& uuid) {
  int64_t millis = 0;
  for (size_t i = 0; i < 6; ++i) {
    millis = millis << 8 | uuid.bytes[i];
  }
  return FromMillis(millis);
}

void AppendUuid(const Uuid& uuid, std::string& text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (size_t i = 0; i < uuid.bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      text += '-';
    }
    text += kDigits[uuid.bytes[i] >> 4U];
    text += kDigits[uuid.bytes[i] & 0xFU];
  }
}

void AppendNumber(unsigned value, unsigned digits, std::string& text) {
  unsigned divisor = 1;
  for (unsigned i = 1; i < digits; ++i) {
    divisor *= 10;
  }
  for (; divisor > 0; divisor /= 10) {
    text += static_cast<char>('0' + value / divisor % 10);
  }
}

// Written out by hand: listings make one per file.
void AppendName(const DatasetRid& dataset, const Uuid& file, std::string& text) {
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(TimeOf(file)));
  AppendUuid(dataset.uuid, text);
  text += '/';
  AppendNumber(static_cast<unsigned>(static_cast<int>(day.year())), 4, text);
  text += '/';
  AppendNumber(static_cast<unsigned>(day.month()), 2, text);
  text += '/';
  AppendNumber(static_cast<unsigned>(day.day()), 2, text);
  text += '/';
  AppendUuid(file, text);
}

std::string NameOf(const DatasetRid& dataset, const Uuid& file) {
  std::string name;
  AppendName(dataset, file, name);
  return name;
}

// The value of a digit of base 64, 64 for another character.
constexpr std::array<uint8_t, 256> kBase64Values = [] {
  std::array<uint8_t, 256> values{};
  values.fill(64);
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<uint8_t>(i);
  }
  return values;
}();

// 43 digits of base 64 are 32 bytes and two bits that are 0. False for any other text.
bool DecodeShort(std::string_view text, std::array<uint8_t, 2 * kUuidBytes>& bytes) {
  uint32_t bits = 0;
  unsigned bit_count = 0;
  size_t next = 0;
  for (const char digit : text) {
    const uint8_t value = kBase64Values[static_cast<unsigned char>(digit)];
    if (value == 64) {
      return false;
    }
    bits = bits << 6U | value;
    bit_count += 6;
    if (bit_count >= 8) {
      bit_count -= 8;
      bytes[next++] = static_cast<uint8_t>(bits >> bit_count);
    }
  }
  return next == bytes.size() && (bits & 0x3U) == 0;
}

}  // namespace

std::string PhysicalName(const DatasetRid& dataset, const Uuid& file, std::string_view path) {
  return NameOf(dataset, file).append(ExtensionOf(path));
}

std::optional<Timestamp> PhysicalNameTime(const DatasetRid& dataset, std::string_view location) {
  if (location.size() < kFileAt + kUuidText) {
    return std::nullopt;
  }
  const Result<Uuid> file = Uuid::Parse(location.substr(kFileAt, kUuidText));
  if (!file.ok()) {
    return std::nullopt;
  }
  const std::string_view extension = location.substr(kFileAt + kUuidText);
  const std::string with_stem = "x" + std::string(extension);
  const bool whole = location.substr(0, kFileAt + kUuidText) == NameOf(dataset, *file) &&
                     ExtensionOf(with_stem) == extension;
  return whole ? std::optional<Timestamp>(TimeOf(*file)) : std::nullopt;
}

std::string ShortenLocation(std::string_view location) {
  if (location.starts_with('~')) {
    return "~" + std::string(location);
  }
  const Result<Uuid> dataset = Uuid::Parse(location.substr(0, kUuidText));
  if (!dataset.ok() || !PhysicalNameTime({.uuid = *dataset}, location)) {
    return std::string(location);
  }
  const Uuid file = Uuid::Parse(location.substr(kFileAt, kUuidText)).value();
  std::string bytes(reinterpret_cast<const char*>(dataset->bytes.data()), kUuidBytes);
  bytes.append(reinterpret_cast<const char*>(file.bytes.data()), kUuidBytes);
  std::string text = "~" + EncodeBase64(bytes);
  text.pop_back();  // 32 bytes always end in one '='.
  return text.append(location.substr(kFileAt + kUuidText));
}

void AssignLocation(std::string_view stored, std::string& location) {
  if (!stored.starts_with('~')) {
    location.assign(stored);
    return;
  }
  std::array<uint8_t, 2 * kUuidBytes> bytes{};
  if (stored.size() <= kShortText || !DecodeShort(stored.substr(1, kShortText), bytes)) {
    location.assign(stored.substr(1));
    return;
  }
  DatasetRid dataset;
  Uuid file;
  std::copy_n(bytes.begin(), kUuidBytes, dataset.uuid.bytes.begin());
  std::copy_n(bytes.begin() + kUuidBytes, kUuidBytes, file.bytes.begin());
  location.clear();
  AppendName(dataset, file, location);
  location.append(stored.substr(1 + kShortText));
}

}  // namespace tarn::dataset
