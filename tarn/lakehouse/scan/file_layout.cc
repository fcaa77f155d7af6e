#include "tarn/lakehouse/scan/file_layout.h"

#include <algorithm>
#include <map>
#include <optional>

#include <arrow/api.h>
#include <arrow/extension_type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tarn/engine/quoting.h"
#include "tarn/format/parquet_reader.h"
#include "tarn/iceberg/codec/name_mapping.h"
#include "tarn/iceberg/schema_arrow.h"
#include "tarn/lakehouse/scan/sql_type.h"

namespace tarn::lakehouse {

namespace {

using engine::ScanColumn;
using engine::ScanMatch;
using iceberg::FileScanTask;
using iceberg::MappedField;
using iceberg::NameMapping;
using iceberg::SchemaField;
using iceberg::TableMetadata;
using iceberg::Type;
using iceberg::TypeId;

std::string ScanName(size_t index) { return fmt::format("k{}", index); }

// Names and ids of everything inside a column, by path below it.
using Members = std::map<std::string, int32_t>;
void AddMembers(const Type& type, const std::string& prefix, Members& members) {
  for (const SchemaField& field : type.fields) {
    const std::string path = prefix + "." + field.name;
    members[path] = field.id;
    AddMembers(field.type, path, members);
  }
}

bool HasDefaultInside(const Type& type) {
  for (const SchemaField& field : type.fields) {
    if (field.initial_default || HasDefaultInside(field.type)) {
      return true;
    }
  }
  return false;
}

// True when names of members meant something else in a former schema.
bool MembersChanged(const TableMetadata& metadata, const SchemaField& column) {
  Members now;
  AddMembers(column.type, "", now);
  std::map<int32_t, std::string> paths;
  for (const auto& [path, id] : now) {
    paths[id] = path;
  }
  for (const iceberg::SchemaPtr& schema : metadata.schemas) {
    for (const SchemaField& former : schema->fields) {
      if (former.id != column.id) {
        continue;
      }
      Members then;
      AddMembers(former.type, "", then);
      for (const auto& [path, id] : then) {
        const auto same_path = now.find(path);
        const auto same_id = paths.find(id);
        if ((same_path != now.end() && same_path->second != id) ||
            (same_id != paths.end() && same_id->second != path)) {
          return true;
        }
      }
    }
  }
  return false;
}

// A field of a file with the id that stands for it.
struct FileField {
  std::optional<int32_t> id;
  std::shared_ptr<arrow::Field> field;
  const NameMapping* mapping = nullptr;  // Of its children, in files without ids.
};

std::optional<int32_t> StoredId(const arrow::Field& field) {
  if (field.metadata() == nullptr) {
    return std::nullopt;
  }
  const auto text = field.metadata()->Get(iceberg::kArrowFieldIdKey);
  return text.ok() ? std::optional<int32_t>(std::atoi(text->c_str())) : std::nullopt;
}

// Plans one layout. `mapping`: for a file without ids, else null.
class LayoutBuilder {
 public:
  LayoutBuilder(const arrow::Schema& file, const NameMapping* mapping) : mapping_(mapping) {
    for (const std::shared_ptr<arrow::Field>& field : file.fields()) {
      fields_.push_back(Resolve(field, mapping, field->name()));
    }
  }

  Result<FileLayout> Build(const std::vector<SchemaField>& columns) {
    FileLayout layout;
    layout.match = mapping_ == nullptr ? ScanMatch::kFieldId : ScanMatch::kName;
    layout.plain = true;
    for (size_t i = 0; i < columns.size(); ++i) {
      TARN_ASSIGN_OR_RETURN(LayoutColumn column, BuildColumn(columns[i], ScanName(i)));
      layout.plain = layout.plain && column.expression == column.scan.name;
      layout.columns.push_back(std::move(column));
    }
    return layout;
  }

 private:
  // How a value of a file becomes one of the table.
  struct Reading {
    std::string type;        // To read it as.
    std::string expression;  // Of the table's type.
    bool same = false;       // The expression is the value itself, the type the table's.
  };

  static FileField Resolve(const std::shared_ptr<arrow::Field>& field, const NameMapping* mapping,
                           const std::string& name) {
    static const NameMapping kNone;
    if (mapping == nullptr) {
      return {.id = StoredId(*field), .field = field};
    }
    const MappedField* mapped = iceberg::FindMapped(*mapping, name);
    return {.id = mapped == nullptr ? std::nullopt : mapped->field_id,
            .field = field,
            .mapping = mapped == nullptr ? &kNone : &mapped->fields};
  }

  static const FileField* Find(const std::vector<FileField>& fields, int32_t id) {
    for (const FileField& field : fields) {
      if (field.id == id) {
        return &field;
      }
    }
    return nullptr;
  }

  Result<LayoutColumn> BuildColumn(const SchemaField& column, const std::string& name) {
    LayoutColumn built;
    built.scan.name = name;
    built.scan.field_id = column.id;
    TARN_ASSIGN_OR_RETURN(built.scan.default_text, DefaultTextOf(column));
    const FileField* found = Find(fields_, column.id);
    if (found == nullptr) {
      TARN_ASSIGN_OR_RETURN(built.scan.type, SqlTypeOf(column.type));
      built.scan.file_name = fmt::format("tarn absent {}", column.id);
      built.expression = name;
      return built;
    }
    TARN_ASSIGN_OR_RETURN(Reading reading, Read(column.type, *found, name, 0));
    built.scan.type = std::move(reading.type);
    built.scan.file_name = found->field->name();
    built.expression = std::move(reading.expression);
    return built;
  }

  Result<Reading> Read(const Type& type, const FileField& file, const std::string& value,
                       int depth) {
    TARN_ASSIGN_OR_RETURN(const std::string table_type, SqlTypeOf(type));
    const Reading same{.type = table_type, .expression = value, .same = true};
    const arrow::DataType& stored = *file.field->type();
    switch (type.id) {
      case TypeId::kStruct:
        return stored.id() == arrow::Type::STRUCT ? ReadStruct(type, file, value, depth, same)
                                                  : Result<Reading>(same);
      case TypeId::kList:
        // Writers may note in the file that their lists were large, or of one length.
        return arrow::is_list_like(stored.id()) ? ReadList(type, file, value, depth, same)
                                                : Result<Reading>(same);
      case TypeId::kMap:
        return stored.id() == arrow::Type::MAP ? ReadMap(type, file, value, depth, same)
                                               : Result<Reading>(same);
      default:
        return same;
    }
  }

  Result<Reading> ReadStruct(const Type& type, const FileField& file, const std::string& value,
                             int depth, const Reading& unchanged) {
    std::vector<FileField> members;
    for (const std::shared_ptr<arrow::Field>& member : file.field->type()->fields()) {
      members.push_back(Resolve(member, file.mapping, member->name()));
    }
    std::vector<std::string> stored_types;
    std::vector<std::string> packed;
    bool same = true;
    for (const SchemaField& field : type.fields) {
      const FileField* member = Find(members, field.id);
      std::string expression;
      if (member == nullptr) {
        TARN_ASSIGN_OR_RETURN(expression, Absent(field));
        same = same && !field.initial_default && !HasMember(members, field.name);
      } else {
        const std::string& name = member->field->name();
        TARN_ASSIGN_OR_RETURN(
            Reading inner,
            Read(field.type, *member,
                 fmt::format("struct_extract({}, {})", value, engine::QuoteText(name)), depth));
        same = same && inner.same && name == field.name;
        stored_types.push_back(fmt::format("{} {}", engine::QuoteName(name), inner.type));
        expression = std::move(inner.expression);
      }
      packed.push_back(fmt::format("{} := {}", engine::QuoteName(field.name), expression));
    }
    if (same) {
      return unchanged;
    }
    if (stored_types.empty() && !members.empty()) {
      // Some member must be read to tell which structs are NULL.
      const arrow::Field& any = *members.front().field;
      TARN_ASSIGN_OR_RETURN(const Type any_type, iceberg::FromArrowType(*any.type()));
      TARN_ASSIGN_OR_RETURN(const std::string text, SqlTypeOf(any_type));
      stored_types.push_back(fmt::format("{} {}", engine::QuoteName(any.name()), text));
    }
    return Reading{
        .type = fmt::format("STRUCT({})", fmt::join(stored_types, ", ")),
        .expression = fmt::format("CASE WHEN {} IS NULL THEN NULL ELSE struct_pack({}) END", value,
                                  fmt::join(packed, ", "))};
  }

  Result<Reading> ReadList(const Type& type, const FileField& file, const std::string& value,
                           int depth, const Reading& unchanged) {
    const std::string item = fmt::format("x{}", depth);
    TARN_ASSIGN_OR_RETURN(
        const Reading inner,
        Read(type.fields[0].type, Resolve(file.field->type()->field(0), file.mapping, "element"),
             item, depth + 1));
    if (inner.same) {
      return unchanged;
    }
    return Reading{.type = inner.type + "[]",
                   .expression = fmt::format("list_transform({}, lambda {}: {})", value, item,
                                             inner.expression)};
  }

  Result<Reading> ReadMap(const Type& type, const FileField& file, const std::string& value,
                          int depth, const Reading& unchanged) {
    const auto& map = static_cast<const arrow::MapType&>(*file.field->type());
    const std::string item = fmt::format("x{}", depth);
    TARN_ASSIGN_OR_RETURN(const Reading key,
                          Read(type.fields[0].type, Resolve(map.key_field(), file.mapping, "key"),
                               fmt::format("struct_extract({}, 'key')", item), depth + 1));
    TARN_ASSIGN_OR_RETURN(
        const Reading mapped,
        Read(type.fields[1].type, Resolve(map.item_field(), file.mapping, "value"),
             fmt::format("struct_extract({}, 'value')", item), depth + 1));
    if (key.same && mapped.same) {
      return unchanged;
    }
    return Reading{
        .type = fmt::format("MAP({}, {})", key.type, mapped.type),
        .expression = fmt::format(
            "CASE WHEN {0} IS NULL THEN NULL ELSE map_from_entries(list_transform(map_entries({0})"
            ", lambda {1}: struct_pack(key := {2}, value := {3}))) END",
            value, item, key.expression, mapped.expression)};
  }

  static bool HasMember(const std::vector<FileField>& members, const std::string& name) {
    for (const FileField& member : members) {
      if (engine::LowerCase(member.field->name()) == engine::LowerCase(name)) {
        return true;
      }
    }
    return false;
  }

  // What a struct holds that lacks the member.
  static Result<std::string> Absent(const SchemaField& field) {
    TARN_ASSIGN_OR_RETURN(const std::string type, SqlTypeOf(field.type));
    TARN_ASSIGN_OR_RETURN(const std::optional<std::string> text, DefaultTextOf(field));
    return fmt::format("CAST({} AS {})", text ? engine::QuoteText(*text) : "NULL", type);
  }

  const NameMapping* mapping_;
  std::vector<FileField> fields_;
};

// The mapping for files without ids when the table has none: its own names.
NameMapping OwnNames(const std::vector<SchemaField>& fields) {
  NameMapping mapping;
  for (const SchemaField& field : fields) {
    mapping.push_back(
        {.field_id = field.id, .names = {field.name}, .fields = OwnNames(field.type.fields)});
  }
  return mapping;
}

std::string SignatureOf(const FileLayout& layout) {
  std::string text = layout.match == ScanMatch::kName ? "name" : "id";
  for (const LayoutColumn& column : layout.columns) {
    text += fmt::format("|{}|{}|{}", column.scan.file_name, column.scan.type, column.expression);
  }
  return text;
}

Result<FileLayout> LayoutOf(storage::ObjectStore& store, const FileScanTask& task,
                            const std::vector<SchemaField>& columns, const NameMapping& mapping) {
  TARN_ASSIGN_OR_RETURN(const std::string key, storage::KeyOf(store, task.file.file_path));
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<format::ParquetReader> reader,
                        format::ParquetReader::Open(store, key));
  const arrow::Schema& schema = *reader->schema();
  const bool has_ids = std::any_of(schema.fields().begin(), schema.fields().end(),
                                   [](const auto& field) { return StoredId(*field).has_value(); });
  return LayoutBuilder(schema, has_ids ? nullptr : &mapping).Build(columns);
}

Result<FileLayout> StandardLayout(const std::vector<SchemaField>& columns) {
  FileLayout layout;
  layout.plain = true;
  for (size_t i = 0; i < columns.size(); ++i) {
    LayoutColumn column;
    column.scan.name = ScanName(i);
    column.scan.field_id = columns[i].id;
    Result<std::string> type = SqlTypeOf(columns[i].type);
    if (!type.ok()) {
      return type.status().WithContext("column " + columns[i].name);
    }
    column.scan.type = std::move(type).value();
    TARN_ASSIGN_OR_RETURN(column.scan.default_text, DefaultTextOf(columns[i]));
    column.expression = column.scan.name;
    layout.columns.push_back(std::move(column));
  }
  return layout;
}

}  // namespace

Result<FileLayouts> PlanLayouts(storage::ObjectStore& store, const TableMetadata& metadata,
                                const std::vector<SchemaField>& columns,
                                std::span<const FileScanTask> files) {
  FileLayouts planned;
  TARN_ASSIGN_OR_RETURN(std::optional<NameMapping> mapping, iceberg::NameMappingOf(metadata));
  TARN_ASSIGN_OR_RETURN(FileLayout standard, StandardLayout(columns));
  bool look = mapping.has_value();
  for (const SchemaField& column : columns) {
    look = look || HasDefaultInside(column.type) || MembersChanged(metadata, column);
  }
  if (!look || files.empty()) {
    planned.layouts.push_back(std::move(standard));
    planned.of_file.assign(files.size(), 0);
    return planned;
  }
  const NameMapping names = mapping ? *std::move(mapping) : OwnNames(columns);
  std::map<std::string, size_t> known;
  for (const FileScanTask& task : files) {
    TARN_ASSIGN_OR_RETURN(FileLayout layout, LayoutOf(store, task, columns, names));
    const auto [entry, inserted] = known.try_emplace(SignatureOf(layout), planned.layouts.size());
    if (inserted) {
      planned.layouts.push_back(std::move(layout));
    }
    planned.of_file.push_back(entry->second);
  }
  return planned;
}

Result<std::vector<engine::ScanConstant>> PartitionConstants(
    const TableMetadata& metadata, const std::vector<SchemaField>& columns,
    const iceberg::DataFile& file) {
  std::vector<engine::ScanConstant> constants;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].type.id == TypeId::kUnknown) {
      constants.push_back({.column = ScanName(i)});
    }
  }
  const iceberg::PartitionSpec* spec = metadata.FindSpec(file.spec_id);
  if (spec == nullptr || file.value_counts.empty()) {
    return constants;
  }
  for (size_t f = 0; f < spec->fields.size() && f < file.partition.size(); ++f) {
    const iceberg::PartitionField& field = spec->fields[f];
    if (field.transform.kind != iceberg::TransformKind::kIdentity ||
        file.value_counts.Find(field.source_id) != nullptr) {
      continue;
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].id == field.source_id) {
        TARN_ASSIGN_OR_RETURN(std::optional<std::string> text,
                              SqlTextOf(columns[i].type, file.partition[f]));
        constants.push_back({.column = ScanName(i), .text = std::move(text)});
      }
    }
  }
  return constants;
}

}  // namespace tarn::lakehouse
