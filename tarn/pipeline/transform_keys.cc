#include "tarn/pipeline/transform_keys.h"

#include <algorithm>

#include <fmt/format.h>

#include "tarn/pipeline/folder_name.h"

namespace tarn::pipeline {

namespace {

// An expression; one that is there says something.
std::string ReadExpression(YamlReader& keys, std::string_view key) {
  std::string text = keys.Text(key);
  if (keys.Has(key) && text.find_first_not_of(" \t\r\n") == std::string::npos) {
    keys.Complain(key, "is empty: write an expression, or leave the key out");
  }
  return text;
}

// "key: [a, b]" stands on both sides: the mapping checks values, the table stores them.
void ReadKey(YamlReader& keys, TransformSpec& spec) {
  spec.mapping.key = keys.Texts("key");
  for (size_t i = 1; i < spec.mapping.key.size(); ++i) {
    const auto end = spec.mapping.key.begin() + static_cast<ptrdiff_t>(i);
    if (std::find(spec.mapping.key.begin(), end, *end) != end) {
      keys.Complain("key", "names \"" + *end + "\" twice");
    }
  }
  spec.table.key = spec.mapping.key;
  const bool allow = keys.Choice("null_keys", {"reject", "allow"}, 0) == 1;
  spec.mapping.null_keys = allow ? transform::NullKeys::kAllow : transform::NullKeys::kReject;
  spec.table.null_keys = allow ? lakehouse::NullKeys::kAllowed : lakehouse::NullKeys::kRejected;
}

void ReadMode(YamlReader& keys, TransformSpec& spec) {
  const bool append = keys.Choice("mode", {"merge", "append"}, 0) == 1;
  spec.mapping.mode = append ? transform::Mode::kAppend : transform::Mode::kMerge;
  spec.table.mode = append ? lakehouse::Mode::kAppend : lakehouse::Mode::kMerge;
  ReadKey(keys, spec);
  spec.table.fold.history = keys.Flag("history", false);
  spec.table.fold.soft_delete = keys.Flag("soft_delete", false);
  spec.mapping.delete_when = ReadExpression(keys, "delete_when");
  if (append) {
    spec.mapping.null_keys = transform::NullKeys::kAllow;  // Keys are hashed, not compared.
    for (const std::string_view key : {"history", "soft_delete", "delete_when"}) {
      if (keys.Has(key)) {
        keys.Complain(key, "has no meaning in mode append");
      }
    }
  }
}

void ReadColumns(YamlReader columns, transform::MappingSpec& mapping) {
  for (const std::string& name : columns.Keys()) {
    transform::ColumnMapping column{.name = name};
    if (columns.IsMapping(name)) {
      YamlReader keys = columns.Child(name);
      column.expression = keys.Text("expr");
      if (keys.Has("type")) {
        column.type = keys.Text("type");
      }
      column.hash = keys.Flag("hash", false);
      keys.Finish();
    } else {
      column.expression = columns.Text(name);
    }
    mapping.columns.push_back(std::move(column));
  }
}

void ReadExpectations(YamlReader expectations, transform::MappingSpec& mapping) {
  for (const std::string& name : expectations.Keys()) {
    YamlReader keys = expectations.Child(name);
    transform::Expectation expectation;
    expectation.name = name;
    expectation.check = keys.RequiredText("check");
    expectation.action = static_cast<transform::ExpectAction>(
        keys.Choice("action", {"warn", "drop", "reject", "stop"}, 2));
    keys.Finish();
    mapping.expect.push_back(std::move(expectation));
  }
}

void ReadMapping(YamlReader& keys, transform::MappingSpec& mapping) {
  mapping.where = ReadExpression(keys, "where");
  mapping.event_time = ReadExpression(keys, "event_time");
  ReadColumns(keys.Child("columns"), mapping);
  mapping.only = keys.Flag("only", false);
  mapping.drop = keys.Texts("drop");
  YamlReader renames = keys.Child("rename");
  for (const std::string& from : renames.Keys()) {
    mapping.rename.push_back({.from = from, .to = renames.Text(from)});
  }
  mapping.nested = keys.Choice("nested", {"expand", "keep"}, 0) == 0 ? transform::Nesting::kExpand
                                                                     : transform::Nesting::kKeep;
  mapping.empty_arrays = keys.Choice("empty_arrays", {"keep", "drop"}, 0) == 0
                             ? transform::EmptyArrays::kKeep
                             : transform::EmptyArrays::kDrop;
  mapping.zip = keys.Flag("zip", false);
  ReadExpectations(keys.Child("expect"), mapping);
  mapping.on_cast_error = keys.Choice("on_cast_error", {"reject", "null"}, 0) == 0
                              ? transform::OnCastError::kReject
                              : transform::OnCastError::kNull;
}

void ReadApply(YamlReader apply, lakehouse::TableSpec& table) {
  lakehouse::ApplyThresholds& limits = table.apply;
  const std::string rows = apply.Text("rows", "1%");
  if (rows.ends_with('%')) {
    limits.rows_ratio = apply.Ratio("rows", limits.rows_ratio);
    limits.rows_min = apply.Count("min_rows", 0, limits.rows_min);
  } else {
    limits.rows_ratio = 0;
    const int64_t fixed = apply.Count("rows", 0, limits.rows_min);
    limits.rows_min = std::max(fixed, apply.Count("min_rows", 0, 0));
  }
  limits.bytes = apply.Size("bytes", limits.bytes);
  limits.files = apply.Count("files", 0, limits.files);
  limits.age_max = apply.Duration("max_age", std::nullopt);
  table.at_stop =
      apply.Flag("at_stop", false) ? lakehouse::AtStop::kApply : lakehouse::AtStop::kLeaveChanges;
  apply.Finish();
}

void ReadSnapshots(YamlReader snapshots, lakehouse::TableSpec& table) {
  const std::optional<std::chrono::microseconds> age =
      snapshots.Duration("max_age", table.snapshots.age_max);
  table.snapshots.age_max = age.value_or(std::chrono::hours(24 * 365 * 100));
  table.snapshots.min_keep =
      static_cast<int32_t>(snapshots.Integer("min_keep", table.snapshots.min_keep));
  table.snapshots.count_max =
      static_cast<int32_t>(snapshots.Integer("max_count", table.snapshots.count_max));
  if (table.snapshots.min_keep < 1 || table.snapshots.count_max < table.snapshots.min_keep) {
    snapshots.Complain("", "min_keep must be at least 1 and max_count at least min_keep");
  }
  snapshots.Finish();
}

void ReadViewHeaders(YamlReader& keys, lakehouse::TableSpec& table) {
  table.view_headers = keys.Texts("view_headers");
  const auto known = lakehouse::ViewHeaders();
  for (auto header = table.view_headers.begin(); header != table.view_headers.end(); ++header) {
    if (std::find(known.begin(), known.end(), *header) == known.end()) {
      keys.Complain("view_headers",
                    fmt::format("\"{}\" is no header column of a current view: use {}", *header,
                                fmt::join(known, ", ")));
    } else if (std::find(table.view_headers.begin(), header, *header) != header) {
      keys.Complain("view_headers", fmt::format("{} is there twice", *header));
    }
  }
}

void ReadTable(const std::string& name, YamlReader& keys, TransformSpec& spec) {
  lakehouse::TableSpec& table = spec.table;
  table.external_schema = ReadFolderName(keys, "schema", name);
  table.internal_schema = ReadFolderName(keys, "internal_schema", name + "_internal");
  table.name = keys.Text("prefix") + name;
  table.history_suffix = keys.Text("history_suffix", "__history");
  table.partition_by = keys.Texts("partition_by");
  table.sort_by = keys.Texts("sort_by");
  ReadViewHeaders(keys, table);
  if (keys.Integer("format_version", 2) != 2) {
    keys.Complain("format_version", "only 2 is available in this version");
  }
  YamlReader properties = keys.Child("table_properties");
  for (const std::string& property : properties.Keys()) {
    table.table_properties.emplace_back(property, properties.Text(property));
  }
  ReadApply(keys.Child("apply"), table);
  ReadSnapshots(keys.Child("snapshots"), table);
  table.publish = keys.Choice("publish", {"applied", "none"}, 0) == 0 ? lakehouse::Publish::kApplied
                                                                      : lakehouse::Publish::kNone;
  table.keep_changes = keys.Duration("keep_changes", std::nullopt);
  table.memory_bytes = static_cast<uint64_t>(keys.Size("memory", 512LL << 20));
}

transform::SchemaPolicy Policy(YamlReader& keys, std::string_view key,
                               transform::SchemaPolicy otherwise) {
  return static_cast<transform::SchemaPolicy>(keys.Choice(
      key, {"apply", "ignore", "suspend_table", "stop_task"}, static_cast<size_t>(otherwise)));
}

void ReadPolicies(YamlReader keys, transform::SchemaPolicies& policies) {
  policies.add_column = Policy(keys, "add_column", policies.add_column);
  policies.add_struct_field = Policy(keys, "add_struct_field", policies.add_struct_field);
  policies.change_column_type = Policy(keys, "change_column_type", policies.change_column_type);
  policies.drop_column = Policy(keys, "drop_column", policies.drop_column);
  for (const std::string_view key : {"drop_table", "truncate_table"}) {
    if (keys.Text(key, "ignore") != "ignore") {
      keys.Complain(key, "only ignore is available in this version");
    }
  }
  keys.Refuse({"add_root_column", "create_table", "rename_column", "rename_table"});
  keys.Finish();
}

}  // namespace

TransformSpec ReadTransform(const std::string& name, YamlReader& keys) {
  TransformSpec spec;
  spec.name = name;
  spec.mapping.target = name;
  spec.from = keys.Texts("from");
  if (spec.from.empty()) {
    keys.Complain("", "the key from is required: the landing task to read");
  }
  ReadMode(keys, spec);
  ReadMapping(keys, spec.mapping);
  ReadTable(name, keys, spec);
  YamlReader batch = keys.Child("batch");
  spec.batch.rows = batch.Count("rows", 1, spec.batch.rows);
  spec.batch.bytes = batch.Size("bytes", spec.batch.bytes);
  if (spec.batch.bytes < 1) {
    batch.Complain("bytes", "must be at least 1 byte");
  }
  batch.Finish();
  ReadPolicies(keys.Child("schema_evolution"), spec.schema_policies);
  spec.case_sensitive = keys.Flag("case_sensitive", false);
  if (keys.Text("partial", "replace") != "replace") {
    keys.Complain("partial", "merge is not available in this version");
  }
  keys.Refuse(
      {"sequence_by", "late_window", "deduplicate", "retention", "compaction", "reload", "tables"});
  keys.Finish();
  return spec;
}

}  // namespace tarn::pipeline
