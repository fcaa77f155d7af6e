#include "tarn/dataset/retention/policy.h"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"
#include "tarn/base/quantity.h"
#include "tarn/base/rid.h"

namespace tarn::dataset::retention {

namespace {

using nlohmann::json;

constexpr size_t kNameBytesMax = 256;
constexpr int64_t kKeepMax = 10'000;

Status Invalid(std::string_view member, const std::string& fault) {
  return Status::InvalidArgument("retention policy: " + std::string(member) + ": " + fault)
      .WithReason("InvalidRetentionPolicy", JsonObject({{"member", member}}));
}

Status CheckMembers(const json& object, std::string_view where,
                    std::initializer_list<std::string_view> known) {
  if (!object.is_object()) {
    return Invalid(where, std::string("must be an object, found ") + object.type_name());
  }
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Invalid(where, "has no member " + JsonString(name));
    }
  }
  return Status::Ok();
}

Status ReadTexts(const json& object, const char* name, std::vector<std::string>& texts) {
  const auto found = object.find(name);
  if (found == object.end()) {
    return Status::Ok();
  }
  if (!found->is_array() || found->empty()) {
    return Invalid(name, "must be a list that is not empty");
  }
  for (const json& text : *found) {
    if (!text.is_string()) {
      return Invalid(name, std::string("must hold texts, found ") + text.type_name());
    }
    texts.push_back(text.get<std::string>());
  }
  return Status::Ok();
}

Status ReadRids(const json& object, const char* name, std::vector<std::string>& rids) {
  TARN_RETURN_IF_ERROR(ReadTexts(object, name, rids));
  for (const std::string& rid : rids) {
    if (!IsRid(rid)) {
      return Invalid(name, "holds " + JsonString(rid) + ", which is no resource identifier");
    }
  }
  return Status::Ok();
}

Status ReadFlag(const json& object, const char* name, std::optional<bool>& flag) {
  const auto found = object.find(name);
  if (found == object.end()) {
    return Status::Ok();
  }
  if (!found->is_boolean()) {
    return Invalid(name, std::string("must be true or false, found ") + found->type_name());
  }
  flag = found->get<bool>();
  return Status::Ok();
}

Status ReadDuration(const json& object, const char* name,
                    std::optional<std::chrono::milliseconds>& duration) {
  const auto found = object.find(name);
  if (found == object.end()) {
    return Status::Ok();
  }
  const Result<std::chrono::milliseconds> parsed =
      found->is_string() ? ParseDuration(found->get<std::string>())
                         : Status::InvalidArgument(std::string("found ") + found->type_name());
  if (!parsed.ok()) {
    return Invalid(name, "must be a duration such as \"30d\"; " + parsed.status().message());
  }
  duration = *parsed;
  return Status::Ok();
}

Status ReadCount(const json& object, const char* name, std::optional<int64_t>& count) {
  const auto found = object.find(name);
  if (found == object.end()) {
    return Status::Ok();
  }
  const bool fits =
      found->is_number_integer() && found->get<int64_t>() >= 1 && found->get<int64_t>() <= kKeepMax;
  if (!fits) {
    return Invalid(name, "must be 1 to " + std::to_string(kKeepMax) + ", found " + found->dump());
  }
  count = found->get<int64_t>();
  return Status::Ok();
}

Status ReadDatasets(const json& object, DatasetSelector& selector) {
  TARN_RETURN_IF_ERROR(CheckMembers(object, "datasets",
                                    {"all", "rids", "folders", "projects", "derived", "inTrash"}));
  std::optional<bool> all;
  TARN_RETURN_IF_ERROR(ReadFlag(object, "all", all));
  selector.all = all.value_or(false);
  TARN_RETURN_IF_ERROR(ReadRids(object, "rids", selector.datasets));
  TARN_RETURN_IF_ERROR(ReadRids(object, "folders", selector.folders));
  TARN_RETURN_IF_ERROR(ReadRids(object, "projects", selector.projects));
  TARN_RETURN_IF_ERROR(ReadFlag(object, "derived", selector.derived));
  TARN_RETURN_IF_ERROR(ReadFlag(object, "inTrash", selector.in_trash));
  const bool named =
      !selector.datasets.empty() || !selector.folders.empty() || !selector.projects.empty();
  if (named == selector.all) {
    return Invalid("datasets", named ? R"(has "all" and names as well; choose one)"
                                     : R"(selects nothing: give rids, folders, projects or "all")");
  }
  return Status::Ok();
}

Status ReadTransactions(const json& object, TransactionSelector& selector) {
  TARN_RETURN_IF_ERROR(
      CheckMembers(object, "transactions",
                   {"branchIn", "branchNotIn", "keepNewest", "keepViews", "olderThan",
                    "viewOlderThan", "noFileInActiveView", "aborted"}));
  TARN_RETURN_IF_ERROR(ReadTexts(object, "branchIn", selector.branch_in));
  TARN_RETURN_IF_ERROR(ReadTexts(object, "branchNotIn", selector.branch_not_in));
  TARN_RETURN_IF_ERROR(ReadCount(object, "keepNewest", selector.keep_newest));
  TARN_RETURN_IF_ERROR(ReadCount(object, "keepViews", selector.keep_views));
  TARN_RETURN_IF_ERROR(ReadDuration(object, "olderThan", selector.older_than));
  TARN_RETURN_IF_ERROR(ReadDuration(object, "viewOlderThan", selector.view_older_than));
  std::optional<bool> flag;
  TARN_RETURN_IF_ERROR(ReadFlag(object, "noFileInActiveView", flag));
  selector.no_file_in_active_view = flag.value_or(false);
  flag.reset();
  TARN_RETURN_IF_ERROR(ReadFlag(object, "aborted", flag));
  selector.aborted = flag.value_or(false);
  const bool limited = selector.keep_newest || selector.keep_views || selector.older_than ||
                       selector.view_older_than || selector.no_file_in_active_view ||
                       selector.aborted;
  if (!limited) {
    return Invalid("transactions",
                   "selects every transaction: give keepNewest, keepViews, olderThan, "
                   "viewOlderThan, noFileInActiveView or aborted");
  }
  return Status::Ok();
}

Status ReadLatestView(const json& object, LatestView& latest_view) {
  const auto found = object.find("latestView");
  if (found == object.end() || *found == "keep") {
    return Status::Ok();
  }
  if (*found != "delete") {
    return Invalid("latestView", R"(must be "keep" or "delete", found )" + found->dump());
  }
  latest_view = LatestView::kDelete;
  return Status::Ok();
}

void PutTexts(json& object, const char* name, const std::vector<std::string>& texts) {
  if (!texts.empty()) {
    object[name] = texts;
  }
}

void PutDuration(json& object, const char* name,
                 const std::optional<std::chrono::milliseconds>& duration) {
  if (duration) {
    object[name] = FormatDuration(*duration);
  }
}

json DatasetsToJson(const DatasetSelector& selector) {
  json object = json::object();
  if (selector.all) {
    object["all"] = true;
  }
  PutTexts(object, "rids", selector.datasets);
  PutTexts(object, "folders", selector.folders);
  PutTexts(object, "projects", selector.projects);
  if (selector.derived) {
    object["derived"] = *selector.derived;
  }
  if (selector.in_trash) {
    object["inTrash"] = *selector.in_trash;
  }
  return object;
}

json TransactionsToJson(const TransactionSelector& selector) {
  json object = json::object();
  PutTexts(object, "branchIn", selector.branch_in);
  PutTexts(object, "branchNotIn", selector.branch_not_in);
  if (selector.keep_newest) {
    object["keepNewest"] = *selector.keep_newest;
  }
  if (selector.keep_views) {
    object["keepViews"] = *selector.keep_views;
  }
  PutDuration(object, "olderThan", selector.older_than);
  PutDuration(object, "viewOlderThan", selector.view_older_than);
  if (selector.no_file_in_active_view) {
    object["noFileInActiveView"] = true;
  }
  if (selector.aborted) {
    object["aborted"] = true;
  }
  return object;
}

}  // namespace

bool TransactionSelector::SelectsBranch(const std::optional<std::string>& name) const {
  const auto holds = [&](const std::vector<std::string>& names) {
    return name && std::find(names.begin(), names.end(), *name) != names.end();
  };
  return (branch_in.empty() || holds(branch_in)) && !holds(branch_not_in);
}

Result<RetentionPolicy> ParsePolicy(std::string_view text) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) {
    return Invalid("policy", "is no JSON");
  }
  TARN_RETURN_IF_ERROR(CheckMembers(document, "policy",
                                    {"name", "datasets", "transactions", "grace", "latestView"}));
  RetentionPolicy policy;
  const auto name = document.find("name");
  if (name == document.end() || !name->is_string()) {
    return Invalid("name", "is missing or no text");
  }
  policy.name = name->get<std::string>();
  if (policy.name.empty() || policy.name.size() > kNameBytesMax ||
      policy.name.find('/') != std::string::npos) {
    return Invalid("name", "must have 1 to 256 characters and no '/', found " +
                               JsonString(policy.name.substr(0, 300)));
  }
  for (const char* const member : {"datasets", "transactions"}) {
    if (!document.contains(member)) {
      return Invalid(member, "is missing");
    }
  }
  TARN_RETURN_IF_ERROR(ReadDatasets(document["datasets"], policy.datasets));
  TARN_RETURN_IF_ERROR(ReadTransactions(document["transactions"], policy.transactions));
  std::optional<std::chrono::milliseconds> grace;
  TARN_RETURN_IF_ERROR(ReadDuration(document, "grace", grace));
  policy.grace = grace.value_or(policy.grace);
  TARN_RETURN_IF_ERROR(ReadLatestView(document, policy.latest_view));
  if (policy.transactions.aborted && policy.latest_view == LatestView::kDelete) {
    return Invalid("latestView", "aborted transactions have no files in any view");
  }
  return policy;
}

std::string FormatPolicy(const RetentionPolicy& policy) {
  return json{{"name", policy.name},
              {"datasets", DatasetsToJson(policy.datasets)},
              {"transactions", TransactionsToJson(policy.transactions)},
              {"grace", FormatDuration(policy.grace)},
              {"latestView", policy.latest_view == LatestView::kDelete ? "delete" : "keep"}}
      .dump();
}

bool Selects(const TransactionSelector& selector, const TransactionFacts& facts, Timestamp now) {
  if (facts.aborted != selector.aborted || !selector.SelectsBranch(facts.branch)) {
    return false;
  }
  if (selector.older_than && facts.closed_at + *selector.older_than > now) {
    return false;
  }
  if (facts.aborted) {
    return true;  // It never was in a view.
  }
  if (selector.view_older_than && facts.view_closed_at + *selector.view_older_than > now) {
    return false;
  }
  return !(selector.keep_newest && facts.among_newest) &&
         !(selector.keep_views && facts.in_kept_view) &&
         !(selector.no_file_in_active_view && facts.in_active_view);
}

}  // namespace tarn::dataset::retention
