#include "tarn/lakehouse/view_origin.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tarn::lakehouse {

namespace {

using Properties = std::map<std::string, std::string>;

constexpr std::string_view kView = "tarn.view";
constexpr std::string_view kMode = "tarn.mode";
constexpr std::string_view kInternalSchema = "tarn.internal-schema";
constexpr std::string_view kInternalTable = "tarn.internal-table";
constexpr std::string_view kHistoryView = "tarn.history-view";
constexpr std::string_view kKey = "tarn.key";
constexpr std::string_view kViewHeaders = "tarn.view-headers";
constexpr std::string_view kNullKeys = "tarn.null-keys";
constexpr std::string_view kHistory = "tarn.history";
constexpr std::string_view kSoftDelete = "tarn.soft-delete";

std::string ListText(const std::vector<std::string>& names) {
  return nlohmann::json(names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Status Broken(std::string_view property, std::string_view found) {
  return Status::Corruption(fmt::format("view property {} is \"{}\"", property, found));
}

Result<std::string> Get(const Properties& properties, std::string_view name) {
  const auto found = properties.find(std::string(name));
  if (found == properties.end()) {
    return Status::Corruption(fmt::format("the view lacks the property {}", name));
  }
  return found->second;
}

Result<std::vector<std::string>> GetList(const Properties& properties, std::string_view name) {
  TARN_ASSIGN_OR_RETURN(const std::string text, Get(properties, name));
  const nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
  std::vector<std::string> names;
  if (!list.is_array()) {
    return Broken(name, text);
  }
  for (const nlohmann::json& item : list) {
    if (!item.is_string()) {
      return Broken(name, text);
    }
    names.push_back(item.get<std::string>());
  }
  return names;
}

// True for `yes`, false for `no`, an error for anything else.
Result<bool> GetChoice(const Properties& properties, std::string_view name, std::string_view yes,
                       std::string_view no) {
  TARN_ASSIGN_OR_RETURN(const std::string text, Get(properties, name));
  if (text != yes && text != no) {
    return Broken(name, text);
  }
  return text == yes;
}

}  // namespace

ViewOrigin OriginOf(const TableSpec& spec, TableView view) {
  return {.view = view,
          .mode = spec.mode,
          .internal_schema = spec.internal_schema,
          .internal_name = spec.internal_name(),
          .history_name = spec.fold.history ? spec.history_name() : std::string(),
          .key = spec.key,
          .view_headers = spec.view_headers,
          .null_keys = spec.null_keys,
          .fold = spec.fold};
}

std::map<std::string, std::string> FormatOrigin(const ViewOrigin& origin) {
  const auto truth = [](bool value) { return std::string(value ? "true" : "false"); };
  return {
      {std::string(kView), origin.view == TableView::kCurrent ? "current" : "history"},
      {std::string(kMode), origin.mode == Mode::kMerge ? "merge" : "append"},
      {std::string(kInternalSchema), origin.internal_schema},
      {std::string(kInternalTable), origin.internal_name},
      {std::string(kHistoryView), origin.history_name},
      {std::string(kKey), ListText(origin.key)},
      {std::string(kViewHeaders), ListText(origin.view_headers)},
      {std::string(kNullKeys), origin.null_keys == NullKeys::kAllowed ? "allow" : "reject"},
      {std::string(kHistory), truth(origin.fold.history)},
      {std::string(kSoftDelete), truth(origin.fold.soft_delete)},
  };
}

Result<std::optional<ViewOrigin>> ParseOrigin(const Properties& properties) {
  if (!properties.contains(std::string(kView))) {
    return std::optional<ViewOrigin>();
  }
  ViewOrigin origin;
  TARN_ASSIGN_OR_RETURN(const bool current, GetChoice(properties, kView, "current", "history"));
  origin.view = current ? TableView::kCurrent : TableView::kHistory;
  TARN_ASSIGN_OR_RETURN(const bool merge, GetChoice(properties, kMode, "merge", "append"));
  origin.mode = merge ? Mode::kMerge : Mode::kAppend;
  TARN_ASSIGN_OR_RETURN(origin.internal_schema, Get(properties, kInternalSchema));
  TARN_ASSIGN_OR_RETURN(origin.internal_name, Get(properties, kInternalTable));
  TARN_ASSIGN_OR_RETURN(origin.history_name, Get(properties, kHistoryView));
  TARN_ASSIGN_OR_RETURN(origin.key, GetList(properties, kKey));
  TARN_ASSIGN_OR_RETURN(origin.view_headers, GetList(properties, kViewHeaders));
  TARN_ASSIGN_OR_RETURN(const bool nulls, GetChoice(properties, kNullKeys, "allow", "reject"));
  origin.null_keys = nulls ? NullKeys::kAllowed : NullKeys::kRejected;
  TARN_ASSIGN_OR_RETURN(origin.fold.history, GetChoice(properties, kHistory, "true", "false"));
  TARN_ASSIGN_OR_RETURN(origin.fold.soft_delete,
                        GetChoice(properties, kSoftDelete, "true", "false"));
  return std::optional<ViewOrigin>(std::move(origin));
}

}  // namespace tarn::lakehouse
