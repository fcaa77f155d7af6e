#include "tarn/dataset/changes/change_list.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tarn/base/json_text.h"
#include "tarn/dataset/rows.h"

namespace tarn::dataset::changes {

using metastore::Blob;
using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;
using metastore::SqlValue;

namespace {

constexpr size_t kPathsPerList = 512;
constexpr size_t kListsPerQuery = 16;

void AppendVarint(uint64_t value, std::string& text) {
  while (value >= 0x80) {
    text += static_cast<char>(0x80U | (value & 0x7FU));
    value >>= 7U;
  }
  text += static_cast<char>(value);
}

// Takes a number off the front; nothing when the text ends inside or the number is too large.
std::optional<uint64_t> TakeVarint(std::string_view& text) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 32 && !text.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7FU) << shift;
    if ((byte & 0x80U) == 0) {
      return value;
    }
  }
  return std::nullopt;
}

Status DamagedList(std::string_view first_path) {
  return Status::Corruption("the list of changed paths that begins with " + JsonString(first_path) +
                            " is damaged");
}

Status InsertList(SqlTransaction& sql, const Place& place, const std::vector<std::string>& paths,
                  int64_t replaced) {
  return StatusOf(
      sql.Execute("INSERT INTO dataset_changes (line, ordinal, first_path, replaced, more) "
                  "VALUES (?1, ?2, ?3, "
                  "?4, ?5)",
                  {place.line, place.ordinal, Blob{paths.front()}, replaced,
                   paths.size() == 1 ? SqlValue() : SqlValue(Blob{EncodePaths(paths)})}));
}

Status DeleteList(SqlTransaction& sql, const Place& place, const std::string& first_path) {
  return StatusOf(
      sql.Execute("DELETE FROM dataset_changes WHERE line = ?1 AND "
                  "ordinal = ?2 AND first_path = ?3",
                  {place.line, place.ordinal, Blob{first_path}}));
}

struct List {
  std::vector<std::string> paths;
  int64_t replaced = 0;
};

// Lists that begin at or before `path`, nearest first, after skipping `skip`.
Result<std::vector<List>> ListsBefore(SqlTransaction& sql, const Place& place,
                                      const std::string& path, size_t skip) {
  std::vector<List> lists;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT first_path, more, replaced FROM dataset_changes WHERE line = ?1 "
                "AND ordinal = ?2 AND "
                "first_path <= ?3 ORDER BY first_path DESC LIMIT ?4 OFFSET ?5",
                {place.line, place.ordinal, Blob{path}, static_cast<int64_t>(kListsPerQuery),
                 static_cast<int64_t>(skip)},
                [&](const SqlRow& row) -> Result<RowAction> {
                  List list{.paths = {}, .replaced = row.Int(2)};
                  TARN_ASSIGN_OR_RETURN(list.paths, DecodePaths(row.Text(0), row.Text(1)));
                  lists.push_back(std::move(list));
                  return RowAction::kContinue;
                }));
  return lists;
}

}  // namespace

std::string EncodePaths(const std::vector<std::string>& sorted_paths) {
  std::string text;
  for (size_t i = 1; i < sorted_paths.size(); ++i) {
    const std::string& before = sorted_paths[i - 1];
    const std::string& path = sorted_paths[i];
    const auto end = std::mismatch(before.begin(), before.end(), path.begin(), path.end());
    const auto shared = static_cast<size_t>(end.second - path.begin());
    AppendVarint(shared, text);
    AppendVarint(path.size() - shared, text);
    text.append(path, shared);
  }
  return text;
}

Result<std::vector<std::string>> DecodePaths(std::string_view first_path, std::string_view more) {
  std::vector<std::string> paths = {std::string(first_path)};
  while (!more.empty()) {
    const std::optional<uint64_t> shared = TakeVarint(more);
    const std::optional<uint64_t> rest = TakeVarint(more);
    if (!shared || !rest || *shared > paths.back().size() || *rest > more.size()) {
      return DamagedList(first_path);
    }
    std::string path = paths.back().substr(0, *shared).append(more.substr(0, *rest));
    more.remove_prefix(*rest);
    paths.push_back(std::move(path));
  }
  return paths;
}

Status AddPaths(SqlTransaction& sql, const Place& place, std::vector<WrittenPath> paths) {
  std::sort(paths.begin(), paths.end(),
            [](const WrittenPath& a, const WrittenPath& b) { return a.path < b.path; });
  std::vector<std::string> list;
  int64_t replaced = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    replaced += paths[i].replaces ? 1 : 0;
    list.push_back(std::move(paths[i].path));
    if (list.size() == kPathsPerList || i + 1 == paths.size()) {
      TARN_RETURN_IF_ERROR(InsertList(sql, place, list, replaced));
      list.clear();
      replaced = 0;
    }
  }
  return Status::Ok();
}

Status RemovePath(SqlTransaction& sql, const Place& place, const WrittenPath& path) {
  for (size_t skip = 0;; skip += kListsPerQuery) {
    TARN_ASSIGN_OR_RETURN(std::vector<List> lists, ListsBefore(sql, place, path.path, skip));
    for (List& list : lists) {
      const auto found = std::find(list.paths.begin(), list.paths.end(), path.path);
      if (found == list.paths.end()) {
        continue;
      }
      TARN_RETURN_IF_ERROR(DeleteList(sql, place, list.paths.front()));
      list.paths.erase(found);
      return list.paths.empty()
                 ? Status::Ok()
                 : InsertList(sql, place, list.paths, list.replaced - (path.replaces ? 1 : 0));
    }
    if (lists.empty()) {
      return Status::Corruption("no list of changed paths has " + JsonString(path.path));
    }
  }
}

Result<std::vector<std::string>> TakeFirstList(SqlTransaction& sql, const Place& place) {
  std::vector<std::string> paths;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT first_path, more FROM dataset_changes WHERE line = ?1 AND "
                "ordinal = ?2 "
                "ORDER BY first_path LIMIT 1",
                {place.line, place.ordinal}, [&](const SqlRow& row) -> Result<RowAction> {
                  TARN_ASSIGN_OR_RETURN(paths, DecodePaths(row.Text(0), row.Text(1)));
                  return RowAction::kStop;
                }));
  if (!paths.empty()) {
    TARN_RETURN_IF_ERROR(DeleteList(sql, place, paths.front()));
  }
  return paths;
}

Result<std::vector<std::string>> PathsAmongReplaced(SqlTransaction& sql, const Place& place,
                                                    int64_t count_max) {
  std::vector<std::string> paths;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT first_path, more FROM dataset_changes WHERE line = ?1 "
      "AND ordinal = ?2 AND replaced "
      "> 0 ORDER BY first_path LIMIT ?3",
      {place.line, place.ordinal, count_max}, [&](const SqlRow& row) -> Result<RowAction> {
        TARN_ASSIGN_OR_RETURN(const std::vector<std::string> list,
                              DecodePaths(row.Text(0), row.Text(1)));
        paths.insert(paths.end(), list.begin(), list.end());
        return RowAction::kContinue;
      }));
  return paths;
}

}  // namespace tarn::dataset::changes
