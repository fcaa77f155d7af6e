#include "tarn/landing/source_keys.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tarn::landing {

namespace {

constexpr size_t kTablesMax = 1000;
// With an empty key it stands for the tables beyond kTablesMax; with a key it is the table of
// records that name none.
constexpr std::string_view kMany;

bool HasMembers(const std::vector<std::string>& known, format::JsonValue key) {
  if (key.size() != known.size()) {
    return false;
  }
  size_t at = 0;
  for (const format::JsonMember member : key.members()) {
    if (known[at++] != member.name) {
      return false;
    }
  }
  return true;
}

}  // namespace

void SourceKeys::Note(std::string_view table, format::JsonValue key) {
  const bool has_key = key && key.is_object() && key.size() > 0;
  const auto known = tables_.find(table);
  if (known != tables_.end() && (!has_key || HasMembers(known->second, key))) [[likely]] {
    return;
  }
  if (known == tables_.end() && tables_.size() >= kTablesMax) {
    many_ = true;
    return;
  }
  std::vector<std::string> members;
  if (has_key) {
    for (const format::JsonMember member : key.members()) {
      members.emplace_back(member.name);
    }
  }
  if (known == tables_.end()) {
    tables_.emplace(table, std::move(members));
    return;
  }
  // The order of an object's members says nothing.
  if (!std::is_permutation(members.begin(), members.end(), known->second.begin(),
                           known->second.end())) {
    known->second = std::move(members);
  }
}

Result<std::vector<std::string>> SourceKeys::Common() const {
  if (tables_.empty()) {
    return Status::FailedPrecondition(
        "the records landed so far name no key: give key: [column, …]");
  }
  const auto& [first_table, first] = *tables_.begin();
  for (const auto& [table, key] : tables_) {
    if (key.empty()) {
      return Status::FailedPrecondition(fmt::format(
          "the records of the source's table {} have no key: give key: [column, …]", table));
    }
    if (key != first) {
      return Status::FailedPrecondition(
          fmt::format("the source's tables have different keys ({}: {}; {}: {}): give key: "
                      "[column, …], or land each in a dataset of its own with tables:",
                      first_table, fmt::join(first, ", "), table, fmt::join(key, ", ")));
    }
  }
  if (many_) {
    return Status::FailedPrecondition(
        fmt::format("the source has more than {} tables, whose keys are not kept: give key: "
                    "[column, …]",
                    kTablesMax));
  }
  return first;
}

std::string SourceKeys::Encode() const {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [table, key] : tables_) {
    json[table] = key;
  }
  if (many_) {
    json[std::string(kMany)] = nlohmann::json::array();
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<SourceKeys> SourceKeys::Decode(std::string_view json) {
  const nlohmann::json read = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto is_key = [](const nlohmann::json& key) {
    return key.is_array() &&
           std::all_of(key.begin(), key.end(), [](const auto& name) { return name.is_string(); });
  };
  if (!read.is_object() || !std::all_of(read.begin(), read.end(), is_key)) {
    return Status::Corruption(
        fmt::format("the keys of a source's tables are unreadable: {}", json));
  }
  SourceKeys keys;
  for (const auto& [table, key] : read.items()) {
    if (table == kMany && key.empty()) {
      keys.many_ = true;
    } else {
      keys.tables_[table] = key.get<std::vector<std::string>>();
    }
  }
  return keys;
}

}  // namespace tarn::landing
