#include "tarn/engine/scan_sql.h"

#include <algorithm>
#include <map>
#include <set>

#include "tarn/engine/live_rows.h"
#include "tarn/engine/quoting.h"

namespace tarn::engine {
namespace {

// Field id of a column that no file has, for scans that need none of a file's own.
constexpr int32_t kAbsentFieldId = 2'147'482'999;

/// Files that are read by one read_parquet call.
struct FileGroup {
  bool has_deletes = false;
  std::vector<ScanConstant> constants;
  std::vector<size_t> files;  // Indexes, ascending.
};

/// The local path of a file: URI, others as they are; glob characters are made literal.
Result<std::string> EnginePath(std::string_view path) {
  if (path.starts_with("file:")) {
    path.remove_prefix(5);
    if (path.starts_with("//")) {
      path.remove_prefix(2);
    }
    if (!path.starts_with('/')) {
      return Status::InvalidArgument("file URI with a host or relative path: file:" +
                                     std::string(path));
    }
  }
  std::string out;
  for (const char c : path) {
    if (c == '*' || c == '?' || c == '[') {
      out += '[';
      out += c;
      out += ']';
    } else {
      out += c;
    }
  }
  return out;
}

Status CheckRequest(const ScanRequest& request) {
  if (request.columns.empty()) {
    return Status::InvalidArgument("a scan needs at least one column");
  }
  std::set<std::string> names;
  std::set<std::string> keys;
  for (const ScanColumn& column : request.columns) {
    if (!names.insert(LowerCase(column.name)).second) {
      return Status::InvalidArgument("a scan has the column \"" + column.name + "\" twice");
    }
    if (column.type.empty()) {
      return Status::InvalidArgument("column \"" + column.name + "\" of a scan has no type");
    }
    const std::string key = request.match == ScanMatch::kFieldId
                                ? std::to_string(column.field_id)
                                : (column.file_name.empty() ? column.name : column.file_name);
    if (!keys.insert(key).second) {
      return Status::InvalidArgument("two columns of a scan have the field " + key);
    }
  }
  for (const ScanFile& file : request.files) {
    if (file.has_deletes && request.deleted_rows.empty()) {
      return Status::InvalidArgument("file " + file.path +
                                     " has deleted rows but the scan names no deleted_rows");
    }
    for (const ScanConstant& constant : file.constants) {
      if (std::none_of(request.columns.begin(), request.columns.end(),
                       [&](const ScanColumn& c) { return c.name == constant.column; })) {
        return Status::InvalidArgument("file " + file.path + " has a constant for \"" +
                                       constant.column + "\", which is no column of the scan");
      }
    }
  }
  return Status::Ok();
}

std::vector<FileGroup> GroupFiles(const std::vector<ScanFile>& files) {
  std::map<std::pair<bool, std::vector<ScanConstant>>, size_t> index;
  std::vector<FileGroup> groups;
  for (size_t i = 0; i < files.size(); ++i) {
    std::vector<ScanConstant> constants = files[i].constants;
    std::sort(constants.begin(), constants.end());
    const auto [entry, inserted] =
        index.emplace(std::pair(files[i].has_deletes, constants), groups.size());
    if (inserted) {
      groups.push_back({files[i].has_deletes, std::move(constants), {}});
    }
    groups[entry->second].files.push_back(i);
  }
  return groups;
}

const ScanConstant* FindConstant(const FileGroup& group, const std::string& column) {
  for (const ScanConstant& constant : group.constants) {
    if (constant.column == column) {
      return &constant;
    }
  }
  return nullptr;
}

std::string LiteralOf(const std::optional<std::string>& text, const std::string& type) {
  return "CAST(" + (text ? QuoteText(*text) : "NULL") + " AS " + type + ")";
}

/// Inside the scan columns are called c0, c1, …, so that none can hide a virtual column.
std::string ScanName(size_t column) { return "c" + std::to_string(column); }

std::string SchemaMap(const ScanRequest& request, const FileGroup& group) {
  const bool by_id = request.match == ScanMatch::kFieldId;
  std::string out;
  for (size_t i = 0; i < request.columns.size(); ++i) {
    const ScanColumn& column = request.columns[i];
    if (FindConstant(group, column.name) != nullptr) {
      continue;
    }
    out += out.empty() ? "" : ", ";
    out += by_id ? std::to_string(column.field_id)
                 : QuoteText(column.file_name.empty() ? column.name : column.file_name);
    out += ": {name: '" + ScanName(i) + "', type: " + QuoteText(column.type) + ", default_value: " +
           (column.default_text ? QuoteText(*column.default_text) : "NULL::VARCHAR") + "}";
  }
  if (out.empty()) {
    out = by_id ? std::to_string(kAbsentFieldId) : "'tarn absent column'";
    out += ": {name: 'c', type: 'BOOLEAN', default_value: NULL::VARCHAR}";
  }
  return out;
}

/// The file's index in the request from its index in the group's list.
std::string FileExpression(const FileGroup& group) {
  const size_t first = group.files.front();
  if (group.files.back() - first + 1 == group.files.size()) {
    return "(CAST(file_index AS BIGINT) + " + std::to_string(first) + ")";
  }
  std::string out = "(CAST([";
  for (size_t i = 0; i < group.files.size(); ++i) {
    out += (i > 0 ? ", " : "") + std::to_string(group.files[i]);
  }
  return out + "] AS BIGINT[])[CAST(file_index AS BIGINT) + 1])";
}

Result<std::string> GroupScan(const ScanRequest& request, const FileGroup& group) {
  std::vector<std::string> paths;
  for (const size_t index : group.files) {
    TARN_ASSIGN_OR_RETURN(std::string path, EnginePath(request.files[index].path));
    paths.push_back(std::move(path));
  }
  std::string columns;
  for (size_t i = 0; i < request.columns.size(); ++i) {
    const ScanColumn& column = request.columns[i];
    const ScanConstant* constant = FindConstant(group, column.name);
    columns += i > 0 ? ", " : "";
    columns += constant != nullptr ? LiteralOf(constant->text, column.type) : ScanName(i);
    columns += " AS " + QuoteName(column.name);
  }
  if (request.with_position) {
    columns += ", tarn_file, tarn_pos";
  }
  std::string inner = "SELECT *";
  if (request.with_position) {
    inner +=
        ", " + FileExpression(group) + " AS tarn_file, CAST(file_row_number AS BIGINT) AS tarn_pos";
  }
  inner += " FROM read_parquet(" + QuoteTextList(paths) + ", schema = MAP {" +
           SchemaMap(request, group) + "}, hive_partitioning = false)";
  if (group.has_deletes) {
    inner += " WHERE tarn_is_live(" + QuoteText(FormatDeletes(group.files, request.deleted_rows)) +
             ", file_index, file_row_number)";
  }
  return "SELECT " + columns + " FROM (" + inner + ") AS f";
}

std::string EmptyScan(const ScanRequest& request) {
  std::string sql;
  for (const ScanColumn& column : request.columns) {
    sql += (sql.empty() ? "SELECT " : ", ") + LiteralOf(std::nullopt, column.type) + " AS " +
           QuoteName(column.name);
  }
  if (request.with_position) {
    sql += ", CAST(NULL AS BIGINT) AS tarn_file, CAST(NULL AS BIGINT) AS tarn_pos";
  }
  return sql + " WHERE false";
}

}  // namespace

Result<std::string> BuildScan(const ScanRequest& request) {
  TARN_RETURN_IF_ERROR(CheckRequest(request));
  std::string sql;
  for (const FileGroup& group : GroupFiles(request.files)) {
    TARN_ASSIGN_OR_RETURN(const std::string scan, GroupScan(request, group));
    sql += (sql.empty() ? "" : " UNION ALL ") + scan;
  }
  if (sql.empty()) {
    sql = EmptyScan(request);
  }
  if (!request.where.empty()) {
    sql = "SELECT * FROM (" + sql + ") AS s WHERE (" + request.where + "\n)";
  }
  return sql;
}

}  // namespace tarn::engine
