#include "tarn/dataset/physical_name.h"

#include <algorithm>

#include "tarn/base/clock.h"

namespace tarn::dataset {

namespace {

constexpr size_t kExtensionBytesMax = 16;

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

std::string NameOf(const DatasetRid& dataset, const Uuid& file) {
  std::string day = FormatTimestamp(TimeOf(file)).substr(0, 10);
  std::replace(day.begin(), day.end(), '-', '/');
  return dataset.uuid.ToString() + "/" + day + "/" + file.ToString();
}

}  // namespace

std::string PhysicalName(const DatasetRid& dataset, const Uuid& file, std::string_view path) {
  return NameOf(dataset, file).append(ExtensionOf(path));
}

std::optional<Timestamp> PhysicalNameTime(const DatasetRid& dataset, std::string_view location) {
  constexpr size_t kDatasetBytes = 36;
  constexpr size_t kFileAt = kDatasetBytes + 12;  // Behind "/yyyy/mm/dd/".
  constexpr size_t kFileBytes = 36;
  if (location.size() < kFileAt + kFileBytes) {
    return std::nullopt;
  }
  const Result<Uuid> file = Uuid::Parse(location.substr(kFileAt, kFileBytes));
  if (!file.ok()) {
    return std::nullopt;
  }
  const std::string_view extension = location.substr(kFileAt + kFileBytes);
  const std::string with_stem = "x" + std::string(extension);
  const bool whole = location.substr(0, kFileAt + kFileBytes) == NameOf(dataset, *file) &&
                     ExtensionOf(with_stem) == extension;
  return whole ? std::optional<Timestamp>(TimeOf(*file)) : std::nullopt;
}

}  // namespace tarn::dataset
