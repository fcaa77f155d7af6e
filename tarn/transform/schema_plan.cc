#include "tarn/transform/schema_plan.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <arrow/api.h>

#include "tarn/engine/quoting.h"
#include "tarn/format/field_type.h"

namespace tarn::transform {
namespace {

using Type = std::shared_ptr<arrow::DataType>;

/// What it takes to hold the values of two types in one column.
struct MergedType {
  Type type;                     // Holds both, where `possible`.
  bool possible = true;          // In place, by Iceberg's rules.
  bool widened = false;          // A type of the table changes.
  bool has_new_members = false;  // A struct of the table gets members.
};

bool IsInt(const arrow::DataType& type, int width) {
  return arrow::is_signed_integer(type.id()) && type.bit_width() == width;
}

MergedType Merge(const Type& table, const Type& mapped);

/// Members of both, the table's first.
MergedType MergeStructs(const Type& table, const Type& mapped) {
  MergedType merged;
  arrow::FieldVector fields;
  std::set<std::string> seen;
  for (const auto& field : table->fields()) {
    const auto other =
        std::find_if(mapped->fields().begin(), mapped->fields().end(), [&](const auto& candidate) {
          return engine::LowerCase(candidate->name()) == engine::LowerCase(field->name());
        });
    seen.insert(engine::LowerCase(field->name()));
    if (other == mapped->fields().end()) {
      fields.push_back(field);
      continue;
    }
    const MergedType member = Merge(field->type(), (*other)->type());
    merged.possible = merged.possible && member.possible;
    merged.widened = merged.widened || member.widened;
    merged.has_new_members = merged.has_new_members || member.has_new_members;
    fields.push_back(field->WithType(member.type));
  }
  for (const auto& field : mapped->fields()) {
    if (seen.insert(engine::LowerCase(field->name())).second) {
      merged.has_new_members = true;
      fields.push_back(field);
    }
  }
  merged.type = arrow::struct_(fields);
  return merged;
}

MergedType MergeMaps(const arrow::MapType& table, const arrow::MapType& mapped) {
  MergedType merged = Merge(table.item_type(), mapped.item_type());
  const MergedType key = Merge(table.key_type(), mapped.key_type());
  // Keys of a map may not change.
  merged.possible = merged.possible && key.possible && !key.widened && !key.has_new_members;
  merged.type = arrow::map(table.key_type(), table.item_field()->WithType(merged.type));
  return merged;
}

MergedType MergeDecimals(const Type& table, const Type& mapped) {
  const auto& a = static_cast<const arrow::Decimal128Type&>(*table);
  const auto& b = static_cast<const arrow::Decimal128Type&>(*mapped);
  if (b.scale() <= a.scale() && b.precision() - b.scale() <= a.precision() - a.scale()) {
    return {.type = table};
  }
  // Only the precision may grow.
  const bool possible = b.scale() <= a.scale() && b.precision() - b.scale() + a.scale() <= 38;
  if (!possible) {
    return {.type = table, .possible = false};
  }
  return {.type = arrow::decimal128(b.precision() - b.scale() + a.scale(), a.scale()),
          .widened = true};
}

MergedType Merge(const Type& table, const Type& mapped) {
  if (table->Equals(*mapped)) {
    return {.type = table};
  }
  if (table->id() == arrow::Type::STRUCT && mapped->id() == arrow::Type::STRUCT) {
    return MergeStructs(table, mapped);
  }
  if (table->id() == arrow::Type::LIST && mapped->id() == arrow::Type::LIST) {
    const auto& list = static_cast<const arrow::ListType&>(*table);
    MergedType merged =
        Merge(list.value_type(), static_cast<const arrow::ListType&>(*mapped).value_type());
    merged.type = arrow::list(list.value_field()->WithType(merged.type));
    return merged;
  }
  if (table->id() == arrow::Type::MAP && mapped->id() == arrow::Type::MAP) {
    return MergeMaps(static_cast<const arrow::MapType&>(*table),
                     static_cast<const arrow::MapType&>(*mapped));
  }
  if (table->id() == arrow::Type::DECIMAL128 && mapped->id() == arrow::Type::DECIMAL128) {
    return MergeDecimals(table, mapped);
  }
  const bool holds_already =
      (IsInt(*table, 64) && IsInt(*mapped, 32)) ||
      (table->id() == arrow::Type::DOUBLE && mapped->id() == arrow::Type::FLOAT);
  if (holds_already) {
    return {.type = table};
  }
  const bool widens = (IsInt(*table, 32) && IsInt(*mapped, 64)) ||
                      (table->id() == arrow::Type::FLOAT && mapped->id() == arrow::Type::DOUBLE);
  return widens ? MergedType{.type = mapped, .widened = true}
                : MergedType{.type = table, .possible = false};
}

/// "decimal_10_2", "struct": a type's name as part of a column name.
std::string SuffixOf(const arrow::DataType& type) {
  if (arrow::is_nested(type.id())) {
    return type.name();
  }
  const Result<format::FieldType> field = format::FromArrowType(type);
  std::string out;
  for (const char c : field.ok() ? format::FormatTypeName(*field) : type.ToString()) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      out += c;
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
  }
  while (!out.empty() && out.back() == '_') {
    out.pop_back();
  }
  return out;
}

class SchemaPlanner {
 public:
  SchemaPlanner(const arrow::Schema& table, const std::vector<MappedColumn>& mapped,
                const SchemaPolicies& policies, bool case_sensitive)
      : table_(table), mapped_(mapped), policies_(policies), case_sensitive_(case_sensitive) {}

  std::vector<SchemaStep> Plan() {
    std::set<std::string> in_use;
    for (const auto& field : table_.fields()) {
      if (const MappedColumn* column = FindMapped(field->name()); column != nullptr) {
        PlanCommon(*field, *column);
        if (steps_.back().suffixed_exists) {
          in_use.insert(Folded(steps_.back().suffixed_column));
        }
      } else {
        PlanMissing(*field);
      }
    }
    std::erase_if(steps_, [&](const SchemaStep& step) {
      return step.from_type != nullptr && FindMapped(step.column) == nullptr &&
             in_use.contains(Folded(step.column));
    });
    for (const MappedColumn& column : mapped_) {
      if (FindTable(column.name) == nullptr) {
        PlanNew(column);
      }
    }
    return std::move(steps_);
  }

 private:
  std::string Folded(const std::string& name) const {
    return case_sensitive_ ? name : engine::LowerCase(name);
  }

  const MappedColumn* FindMapped(const std::string& name) const {
    for (const MappedColumn& column : mapped_) {
      if (Folded(column.name) == Folded(name)) {
        return &column;
      }
    }
    return nullptr;
  }

  const arrow::Field* FindTable(const std::string& name) const {
    for (const auto& field : table_.fields()) {
      if (Folded(field->name()) == Folded(name)) {
        return field.get();
      }
    }
    return nullptr;
  }

  static SchemaAction Halt(SchemaPolicy policy) {
    return policy == SchemaPolicy::kStopTask ? SchemaAction::kStop : SchemaAction::kSuspend;
  }

  void PlanCommon(const arrow::Field& field, const MappedColumn& column) {
    const MergedType merged = Merge(field.type(), column.type);
    SchemaStep step{.action = SchemaAction::kKeep,
                    .column = field.name(),
                    .type = field.type(),
                    .from_type = field.type()};
    if (!merged.possible || merged.widened) {
      DecideType(merged, column, step);
    } else if (merged.has_new_members) {
      step.reason = "a struct of \"" + field.name() + "\" has new members";
      switch (policies_.add_struct_field) {
        case SchemaPolicy::kApply:
          step.action = SchemaAction::kWiden;
          step.type = merged.type;
          break;
        case SchemaPolicy::kIgnore:
          step.reason.clear();
          break;
        default:
          step.action = Halt(policies_.add_struct_field);
          break;
      }
    }
    steps_.push_back(std::move(step));
  }

  void DecideType(const MergedType& merged, const MappedColumn& column, SchemaStep& step) const {
    step.reason = "the type of \"" + step.column + "\" is " + step.from_type->ToString() +
                  " in the table and " + column.type->ToString() + " in the mapping";
    switch (policies_.change_column_type) {
      case SchemaPolicy::kApply:
        if (merged.possible) {
          step.action = SchemaAction::kWiden;
          step.type = merged.type;
          return;
        }
        step.action = SchemaAction::kSuffix;
        ChooseSuffixed(column, step);
        return;
      case SchemaPolicy::kIgnore:
        step.action = SchemaAction::kNarrow;
        return;
      default:
        step.action = Halt(policies_.change_column_type);
        return;
    }
  }

  // A column that is free, or in the table and able to hold the mapped type.
  void ChooseSuffixed(const MappedColumn& column, SchemaStep& step) const {
    const std::string name = step.column + "_" + SuffixOf(*column.type);
    for (int number = 1;; ++number) {
      step.suffixed_column = number == 1 ? name : name + "_" + std::to_string(number);
      if (FindMapped(step.suffixed_column) != nullptr) {
        continue;
      }
      const arrow::Field* known = FindTable(step.suffixed_column);
      const MergedType merged =
          known == nullptr ? MergedType{.type = column.type} : Merge(known->type(), column.type);
      if (merged.possible) {
        step.suffixed_type = merged.type;
        step.suffixed_exists = known != nullptr;
        return;
      }
    }
  }

  // True for a column that an earlier plan made for another type of a mapped one.
  bool WasSuffixed(const arrow::Field& field) const {
    return std::any_of(mapped_.begin(), mapped_.end(), [&](const MappedColumn& column) {
      const std::string name = Folded(column.name + "_" + SuffixOf(*field.type()));
      const std::string found = Folded(field.name());
      return found == name || found.starts_with(name + "_");
    });
  }

  void PlanMissing(const arrow::Field& field) {
    SchemaStep step{.action = SchemaAction::kKeep,
                    .column = field.name(),
                    .type = field.type(),
                    .from_type = field.type()};
    if (policies_.drop_column != SchemaPolicy::kIgnore && !WasSuffixed(field)) {
      step.reason = "the mapping no longer gives \"" + field.name() + "\"";
      step.action = policies_.drop_column == SchemaPolicy::kApply ? SchemaAction::kDrop
                                                                  : Halt(policies_.drop_column);
    }
    steps_.push_back(std::move(step));
  }

  void PlanNew(const MappedColumn& column) {
    SchemaStep step{.action = SchemaAction::kAdd,
                    .column = column.name,
                    .type = column.type,
                    .reason = "the mapping gives the new column \"" + column.name + "\""};
    const auto& fields = table_.fields();
    const auto alike = std::find_if(fields.begin(), fields.end(), [&](const auto& field) {
      return engine::LowerCase(field->name()) == engine::LowerCase(column.name);
    });
    if (alike != fields.end()) {
      step.action = SchemaAction::kStop;
      step.reason = "it differs from the table's column \"" + (*alike)->name() +
                    "\" in case only: give it another name, or leave case_sensitive out";
    } else if (policies_.add_column == SchemaPolicy::kIgnore) {
      step.action = SchemaAction::kLeaveOut;
    } else if (policies_.add_column != SchemaPolicy::kApply) {
      step.action = Halt(policies_.add_column);
    }
    steps_.push_back(std::move(step));
  }

  const arrow::Schema& table_;
  const std::vector<MappedColumn>& mapped_;
  const SchemaPolicies& policies_;
  bool case_sensitive_;
  std::vector<SchemaStep> steps_;
};

}  // namespace

std::vector<SchemaStep> PlanSchemaChange(const arrow::Schema& table,
                                         const std::vector<MappedColumn>& mapped,
                                         const SchemaPolicies& policies, bool case_sensitive) {
  return SchemaPlanner(table, mapped, policies, case_sensitive).Plan();
}

bool CanWiden(const arrow::DataType& from, const arrow::DataType& to) {
  const MergedType merged = Merge(from.GetSharedPtr(), to.GetSharedPtr());
  return merged.possible && merged.type->Equals(to);
}

}  // namespace tarn::transform
