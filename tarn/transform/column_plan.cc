#include "tarn/transform/column_plan.h"

#include <algorithm>
#include <map>

#include <arrow/api.h>

#include "tarn/engine/quoting.h"

namespace tarn::transform {
namespace {

using engine::LowerCase;
using engine::QuoteName;

bool IsHeader(std::string_view name) { return LowerCase(name).starts_with("hdr__"); }

bool IsReserved(std::string_view name) {
  const std::string lower = LowerCase(name);
  return IsHeader(name) || lower.starts_with("tarn_") || lower.starts_with("tarn:");
}

std::string JoinNames(const std::set<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    out += (out.empty() ? "" : ", ") + name;
  }
  return out;
}

/// True when the elements of exactly this landed column become rows.
bool IsUnnested(const std::vector<ArrayLevel>& levels, const std::string& path) {
  return std::any_of(levels.begin(), levels.end(), [&](const ArrayLevel& level) {
    return level.parent.empty() && level.path == path + "[]";
  });
}

/// Follows what drop and rename have matched, to report what they have not.
class LeafRules {
 public:
  explicit LeafRules(const MappingSpec& spec) : spec_(spec) {}

  bool IsDropped(const std::string& name) {
    bool dropped = false;
    for (const std::string& pattern : spec_.drop) {
      if (MatchesPattern(pattern, name)) {
        used_.insert("drop " + pattern);
        dropped = true;
      }
    }
    return dropped;
  }

  std::string Renamed(const std::string& name) {
    for (const ColumnRename& rename : spec_.rename) {
      if (LowerCase(rename.from) == LowerCase(name)) {
        used_.insert("rename " + rename.from);
        return rename.to;
      }
    }
    return name;
  }

  Status CheckAllUsed() const {
    for (const std::string& pattern : spec_.drop) {
      // A pattern may well match nothing today.
      if (pattern.find('%') == std::string::npos && !used_.contains("drop " + pattern)) {
        return Status::InvalidArgument("drop: there is no column \"" + pattern + "\" to leave out");
      }
    }
    for (const ColumnRename& rename : spec_.rename) {
      if (!used_.contains("rename " + rename.from)) {
        return Status::InvalidArgument("rename: there is no column \"" + rename.from + "\"");
      }
    }
    return Status::Ok();
  }

 private:
  const MappingSpec& spec_;
  std::set<std::string> used_;
};

struct LeafContext {
  const MappingSpec& spec;
  const ColumnItem& item;
  size_t item_index;
  const std::vector<ArrayLevel>& levels;
  LeafRules& rules;
  std::vector<ColumnLeaf>& leaves;
  std::vector<std::string> names{};  // From the landed column to the value looked at.

  // True when no column comes of the value under the name `shown`.
  [[nodiscard]] bool IsLeftOut(const std::string& shown) const {
    const auto is_shown = [&](const std::string& name) {
      return LowerCase(name) == LowerCase(shown);
    };
    const bool untyped = item.landed && std::find(spec.untyped.begin(), spec.untyped.end(),
                                                  names) != spec.untyped.end();
    return (untyped && std::none_of(spec.key.begin(), spec.key.end(), is_shown)) ||
           std::any_of(spec.left_out.begin(), spec.left_out.end(), is_shown);
  }
};

/// Appends the leaves below one value. `path` is its landed path, lower-case, for arrays.
void AppendLeaves(LeafContext& context, const std::string& name, const std::string& origin,
                  const std::string& suffix, const std::string& path,
                  const std::shared_ptr<arrow::DataType>& type) {
  if (context.item.landed && IsUnnested(context.levels, path)) {
    return;
  }
  const bool expands = context.spec.nested == Nesting::kExpand &&
                       type->id() == arrow::Type::STRUCT && !context.item.type.has_value() &&
                       type->num_fields() > 0;
  std::string shown = name;
  if (context.item.landed) {
    if (context.rules.IsDropped(name)) {
      return;
    }
    shown = context.rules.Renamed(name);
  }
  if (!expands && context.IsLeftOut(shown)) {
    return;
  }
  if (!expands) {
    context.leaves.push_back({.name = shown,
                              .origin = origin,
                              .item = context.item_index,
                              .suffix = suffix,
                              .source_type = type});
    return;
  }
  for (const auto& field : type->fields()) {
    // Members come with the data: their name must not stop the task. Landing does the same.
    const std::string member = shown + "_" + field->name();
    context.names.push_back(field->name());
    AppendLeaves(context, IsReserved(member) ? "_" + member : member, origin + "." + field->name(),
                 suffix + "." + QuoteName(field->name()), path + "." + LowerCase(field->name()),
                 field->type());
    context.names.pop_back();
  }
}

Status CheckLeafNames(const std::vector<ColumnLeaf>& leaves) {
  std::map<std::string, const ColumnLeaf*> seen;
  for (const ColumnLeaf& leaf : leaves) {
    if (leaf.name.empty()) {
      return Status::InvalidArgument(leaf.origin + " gives a column without a name");
    }
    if (IsReserved(leaf.name)) {
      return Status::InvalidArgument(leaf.origin + " gives the column \"" + leaf.name +
                                     "\"; names that begin with hdr__ or tarn_ are reserved");
    }
    const auto [entry, inserted] = seen.emplace(LowerCase(leaf.name), &leaf);
    if (!inserted) {
      return Status::InvalidArgument("two columns have the name \"" + leaf.name +
                                     "\": " + entry->second->origin + " and " + leaf.origin);
    }
  }
  return leaves.empty() ? Status::InvalidArgument("the mapping gives no column") : Status::Ok();
}

const ColumnMapping* FindMapping(const MappingSpec& spec, const std::string& name) {
  for (const ColumnMapping& mapping : spec.columns) {
    if (LowerCase(mapping.name) == LowerCase(name)) {
      return &mapping;
    }
  }
  return nullptr;
}

Result<ColumnItem> MakeItem(engine::Session& session, const ColumnMapping& mapping,
                            const NameScope& scope, ArrayPaths& arrays) {
  ColumnItem item{.name = mapping.name,
                  .origin = "columns." + mapping.name,
                  .sql = {},
                  .type = mapping.type,
                  .hash = mapping.hash};
  std::string text = arrays.Replace(mapping.expression);
  if (text.empty()) {
    if (!scope.IsLanded(mapping.name)) {
      return Status::InvalidArgument(item.origin + ": there is no landed column \"" + mapping.name +
                                     "\" and no expression");
    }
    text = QuoteName(mapping.name);
  }
  Result<engine::ScalarExpression> expression = scope.Check(session, text);
  if (!expression.ok()) {
    return expression.status().WithContext(item.origin);
  }
  item.sql = expression->sql;
  item.direct = expression->is_column;
  item.reads = scope.Reads(*expression);
  return item;
}

}  // namespace

NameScope::NameScope(const arrow::Schema& landed) {
  for (const auto& field : landed.fields()) {
    landed_.insert(LowerCase(field->name()));
  }
}

void NameScope::AddElements(const std::vector<ArrayLevel>& levels) { levels_ = levels; }

void NameScope::AddMapped(const std::string& name) { mapped_.insert(LowerCase(name)); }

bool NameScope::IsLanded(const std::string& name) const {
  return landed_.contains(LowerCase(name));
}

Result<engine::ScalarExpression> NameScope::Check(engine::Session& session,
                                                  std::string_view text) const {
  TARN_ASSIGN_OR_RETURN(engine::ScalarExpression expression,
                        engine::CheckExpression(session, text));
  for (const std::vector<std::string>& column : expression.columns) {
    const std::string name = LowerCase(column.front());
    const bool element = std::any_of(levels_.begin(), levels_.end(),
                                     [&](const ArrayLevel& level) { return level.column == name; });
    if (!element && !mapped_.contains(name) && !landed_.contains(name)) {
      std::set<std::string> known = landed_;
      known.insert(mapped_.begin(), mapped_.end());
      return Status::InvalidArgument("there is no column \"" + column.front() +
                                     "\"; there are: " + JoinNames(known));
    }
  }
  return expression;
}

std::set<std::string> NameScope::Reads(const engine::ScalarExpression& expression) const {
  std::set<std::string> reads;
  for (const std::vector<std::string>& column : expression.columns) {
    const std::string name = LowerCase(column.front());
    if (!mapped_.contains(name) && landed_.contains(name)) {
      reads.insert(name);
    }
  }
  return reads;
}

Result<std::vector<ColumnItem>> PlanItems(engine::Session& session, const MappingSpec& spec,
                                          const arrow::Schema& landed, const NameScope& scope,
                                          ArrayPaths& arrays,
                                          const std::vector<ArrayLevel>& levels) {
  std::set<std::string> done;
  for (const ColumnMapping& mapping : spec.columns) {
    if (!done.insert(LowerCase(mapping.name)).second) {
      return Status::InvalidArgument("columns." + mapping.name + " is there twice");
    }
  }
  done.clear();
  std::vector<ColumnItem> items;
  const auto add = [&](const ColumnMapping& mapping) -> Status {
    TARN_ASSIGN_OR_RETURN(ColumnItem item, MakeItem(session, mapping, scope, arrays));
    items.push_back(std::move(item));
    done.insert(LowerCase(mapping.name));
    return Status::Ok();
  };
  for (const auto& field : landed.fields()) {
    const ColumnMapping* mapping = FindMapping(spec, field->name());
    if (mapping != nullptr) {
      if (!spec.only) {
        TARN_RETURN_IF_ERROR(add(*mapping));
      }
    } else if (!spec.only && !IsHeader(field->name()) &&
               !IsUnnested(levels, LowerCase(field->name()))) {
      items.push_back({.name = field->name(),
                       .origin = "landed column " + field->name(),
                       .sql = QuoteName(field->name()),
                       .direct = true,
                       .landed = true,
                       .reads = {LowerCase(field->name())}});
    }
  }
  for (const ColumnMapping& mapping : spec.columns) {
    if (!done.contains(LowerCase(mapping.name))) {
      TARN_RETURN_IF_ERROR(add(mapping));
    }
  }
  return items;
}

Result<std::vector<ColumnLeaf>> PlanLeaves(const MappingSpec& spec,
                                           const std::vector<ColumnItem>& items,
                                           const arrow::FieldVector& types,
                                           const std::vector<ArrayLevel>& levels) {
  std::vector<ColumnLeaf> leaves;
  LeafRules rules(spec);
  for (size_t i = 0; i < items.size(); ++i) {
    LeafContext context{.spec = spec,
                        .item = items[i],
                        .item_index = i,
                        .levels = levels,
                        .rules = rules,
                        .leaves = leaves,
                        .names = {items[i].name}};
    AppendLeaves(context, items[i].name, items[i].origin, "", LowerCase(items[i].name),
                 types[i]->type());
  }
  TARN_RETURN_IF_ERROR(rules.CheckAllUsed());
  TARN_RETURN_IF_ERROR(CheckLeafNames(leaves));
  return leaves;
}

bool MatchesPattern(std::string_view pattern, std::string_view name) {
  const std::string p = LowerCase(pattern);
  const std::string n = LowerCase(name);
  size_t at = 0;
  size_t star = std::string::npos;
  size_t resume = 0;
  size_t i = 0;
  while (i < n.size()) {
    if (at < p.size() && p[at] == '%') {
      star = at++;
      resume = i;
    } else if (at < p.size() && p[at] == n[i]) {
      ++at;
      ++i;
    } else if (star != std::string::npos) {
      at = star + 1;
      i = ++resume;
    } else {
      return false;
    }
  }
  while (at < p.size() && p[at] == '%') {
    ++at;
  }
  return at == p.size();
}

}  // namespace tarn::transform
