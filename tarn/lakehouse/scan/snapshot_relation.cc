#include "tarn/lakehouse/scan/snapshot_relation.h"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tarn/engine/deleted_rows.h"
#include "tarn/engine/quoting.h"
#include "tarn/engine/scan_sql.h"
#include "tarn/iceberg/deletes/row_deletes.h"
#include "tarn/lakehouse/scan/equality_scan.h"
#include "tarn/lakehouse/scan/file_layout.h"

namespace tarn::lakehouse {

namespace {

using iceberg::DataFile;
using iceberg::FileScanTask;
using iceberg::SchemaField;

bool HasEqualityDeletes(const FileScanTask& task) {
  return std::any_of(task.deletes.begin(), task.deletes.end(),
                     [](const iceberg::DeleteFilePtr& deletes) {
                       return deletes->file.content == iceberg::DataFileContent::kEqualityDeletes;
                     });
}

Status CheckReadable(const DataFile& file) {
  if (engine::LowerCase(file.file_format) != "parquet") {
    return Status::Unimplemented(fmt::format("{} is {}: only Parquet files can be read by SQL",
                                             file.file_path, file.file_format));
  }
  if (file.key_metadata && !file.key_metadata->empty()) {
    return Status::Unimplemented(
        fmt::format("{} is encrypted: encrypted files cannot be read", file.file_path));
  }
  return Status::Ok();
}

// Files that are read by one scan: one layout, with equality deletes or without.
struct Group {
  size_t layout = 0;
  bool has_equality = false;
  std::vector<size_t> files;  // Indexes.
};

class RelationBuilder {
 public:
  RelationBuilder(engine::Session& session, storage::ObjectStore& store,
                  const SnapshotRelation& relation)
      : session_(session), store_(store), relation_(relation), equality_(*relation.metadata) {}

  Status Make() {
    for (const FileScanTask& task : relation_.files) {
      TARN_RETURN_IF_ERROR(CheckReadable(task.file));
      TARN_RETURN_IF_ERROR(equality_.Add(task));
    }
    TARN_RETURN_IF_ERROR(AddHiddenColumns());
    TARN_ASSIGN_OR_RETURN(layouts_,
                          PlanLayouts(store_, *relation_.metadata, columns_, relation_.files));
    TARN_RETURN_IF_ERROR(equality_.MakeViews(session_, relation_.name));
    deleted_.resize(relation_.files.size());
    TARN_RETURN_IF_ERROR(iceberg::VisitDeletedPositions(
        store_, relation_.files, [this](size_t file, const iceberg::Positions& positions) {
          deleted_[file] = engine::DeletedRows::Of(positions);
          return Status::Ok();
        }));
    std::vector<std::string> scans;
    const std::vector<Group> groups = GroupFiles();
    for (size_t i = 0; i < groups.size(); ++i) {
      TARN_ASSIGN_OR_RETURN(std::string scan, ScanOf(groups[i], i));
      scans.push_back(std::move(scan));
    }
    if (scans.empty()) {
      TARN_ASSIGN_OR_RETURN(std::string scan, ScanOf({}, 0));
      scans.push_back(std::move(scan));
    }
    return session_.Execute(fmt::format("CREATE OR REPLACE TEMP VIEW {} AS {}",
                                        engine::QuoteName(relation_.name),
                                        fmt::join(scans, " UNION ALL ")));
  }

 private:
  // Columns that are read and not shown.
  Status AddHiddenColumns() {
    columns_ = relation_.columns;
    const auto index_of = [this](int32_t id) {
      return static_cast<size_t>(
          std::find_if(columns_.begin(), columns_.end(),
                       [id](const SchemaField& column) { return column.id == id; }) -
          columns_.begin());
    };
    for (const SchemaField& column : equality_.Columns()) {
      const size_t index = index_of(column.id);
      if (index == columns_.size()) {
        columns_.push_back(column);
      }
      compared_[column.id] = index;
    }
    if (relation_.with_lineage) {
      for (const int32_t id : {kRowIdFieldId, kRowSequenceFieldId}) {
        SchemaField column;
        column.id = id;
        column.name = id == kRowIdFieldId ? kRowIdColumn : kRowSequenceColumn;
        column.type = iceberg::Type::Long();
        lineage_.push_back(columns_.size());
        columns_.push_back(std::move(column));
      }
    }
    return Status::Ok();
  }

  [[nodiscard]] std::vector<Group> GroupFiles() const {
    std::map<std::pair<size_t, bool>, size_t> index;
    std::vector<Group> groups;
    for (size_t i = 0; i < relation_.files.size(); ++i) {
      const bool has_equality = HasEqualityDeletes(relation_.files[i]);
      const auto [entry, inserted] =
          index.try_emplace({layouts_.of_file[i], has_equality}, groups.size());
      if (inserted) {
        groups.push_back({.layout = layouts_.of_file[i], .has_equality = has_equality});
      }
      groups[entry->second].files.push_back(i);
    }
    for (Group& group : groups) {
      // Those with deleted rows side by side: the text that refers to them stays short.
      std::stable_partition(group.files.begin(), group.files.end(),
                            [this](size_t file) { return !deleted_[file].empty(); });
    }
    return groups;
  }

  [[nodiscard]] const FileLayout& LayoutOf(const Group& group) const {
    static const FileLayout kNone;
    return layouts_.layouts.empty() ? kNone : layouts_.layouts[group.layout];
  }

  Result<engine::ScanRequest> RequestOf(const Group& group, size_t number) {
    engine::ScanRequest request;
    request.match = LayoutOf(group).match;
    for (const LayoutColumn& column : LayoutOf(group).columns) {
      request.columns.push_back(column.scan);
    }
    request.deleted_rows = fmt::format("{}_deletes_{}", relation_.name, number);
    std::vector<engine::DeletedRows> deleted;
    for (const size_t index : group.files) {
      const FileScanTask& task = relation_.files[index];
      deleted.push_back(std::move(deleted_[index]));
      engine::ScanFile file{.path = task.file.file_path, .has_deletes = !deleted.back().empty()};
      TARN_ASSIGN_OR_RETURN(file.constants,
                            PartitionConstants(*relation_.metadata, columns_, task.file));
      request.files.push_back(std::move(file));
    }
    if (std::all_of(deleted.begin(), deleted.end(), std::mem_fn(&engine::DeletedRows::empty))) {
      deleted.clear();
    }
    TARN_RETURN_IF_ERROR(session_.RegisterDeletedRows(request.deleted_rows, std::move(deleted)));
    return request;
  }

  // One number of each file of the group by tarn_file.
  template <typename Number>
  std::string ByFile(const Group& group, const Number& number) const {
    std::vector<int64_t> numbers;
    for (const size_t file : group.files) {
      numbers.push_back(number(file));
    }
    return numbers.empty() ? "CAST(NULL AS BIGINT)" : NumberByIndex(numbers, "tarn_file");
  }

  Result<std::string> ScanOf(const Group& group, size_t number) {
    TARN_ASSIGN_OR_RETURN(engine::ScanRequest request, RequestOf(group, number));
    const FileLayout& layout = LayoutOf(group);
    const bool as_is =
        layout.plain && !group.has_equality && columns_.size() == relation_.columns.size();
    if (as_is && !relation_.with_position) {
      // Nothing stands between the reader and the scan.
      std::map<std::string, std::string> names;
      for (size_t i = 0; i < columns_.size(); ++i) {
        names[request.columns[i].name] = columns_[i].name;
        request.columns[i].name = columns_[i].name;
      }
      for (engine::ScanFile& file : request.files) {
        for (engine::ScanConstant& constant : file.constants) {
          constant.column = names[constant.column];
        }
      }
      KeepFileNames(request);
      return engine::BuildScan(request);
    }
    request.with_position = true;
    TARN_ASSIGN_OR_RETURN(const std::string scan, engine::BuildScan(request));
    std::vector<std::string> shown;
    for (size_t i = 0; i < relation_.columns.size(); ++i) {
      shown.push_back(fmt::format("{} AS {}", layout.columns[i].expression,
                                  engine::QuoteName(relation_.columns[i].name)));
    }
    AddExtraColumns(group, shown);
    if (!group.has_equality) {
      return fmt::format("SELECT {} FROM ({}) AS s", fmt::join(shown, ", "), scan);
    }
    std::map<int32_t, std::string> compared;
    for (const auto& [id, index] : compared_) {
      compared[id] = layout.columns[index].scan.name;
    }
    const EqualityDeletes::Joins joins = equality_.JoinText(compared);
    return fmt::format(
        "SELECT {} FROM (SELECT *, {} AS tarn_seq, {} AS tarn_scope FROM ({}) AS f) AS s{} WHERE "
        "{}",
        fmt::join(shown, ", "),
        ByFile(group, [this](size_t file) { return relation_.files[file].sequence_number; }),
        ByFile(group,
               [this](size_t file) { return equality_.ScopeOf(relation_.files[file].file); }),
        scan, joins.joins, joins.condition);
  }

  // A scan by name whose columns are renamed must go on looking for the old names.
  void KeepFileNames(engine::ScanRequest& request) const {
    if (request.match != engine::ScanMatch::kName) {
      return;
    }
    for (engine::ScanColumn& column : request.columns) {
      column.file_name = column.file_name.empty() ? column.name : column.file_name;
    }
  }

  void AddExtraColumns(const Group& group, std::vector<std::string>& shown) const {
    if (relation_.with_position) {
      shown.push_back(fmt::format("{} AS tarn_file", ByFile(group, [](size_t file) {
                                    return static_cast<int64_t>(file);
                                  })));
      shown.emplace_back("tarn_pos");
    }
    if (!relation_.with_lineage) {
      return;
    }
    const FileLayout& layout = LayoutOf(group);
    const auto first_row_id = [this](size_t file) {
      return relation_.files[file].file.first_row_id.value_or(-1);
    };
    const std::string first = ByFile(group, first_row_id);
    shown.push_back(
        fmt::format("CASE WHEN {0} < 0 THEN NULL ELSE coalesce({1}, {0} + tarn_pos) "
                    "END AS {2}",
                    first, layout.columns[lineage_[0]].scan.name, kRowIdColumn));
    shown.push_back(fmt::format(
        "CASE WHEN {} < 0 THEN NULL ELSE coalesce({}, {}) END AS {}", first,
        layout.columns[lineage_[1]].scan.name,
        ByFile(group, [this](size_t file) { return relation_.files[file].sequence_number; }),
        kRowSequenceColumn));
  }

  engine::Session& session_;
  storage::ObjectStore& store_;
  const SnapshotRelation& relation_;
  EqualityDeletes equality_;
  std::vector<SchemaField> columns_;    // Those of the relation, then hidden ones.
  std::map<int32_t, size_t> compared_;  // Index in columns_ of fields that deletes compare.
  std::vector<size_t> lineage_;         // Indexes in columns_ of row id and sequence number.
  FileLayouts layouts_;
  std::vector<engine::DeletedRows> deleted_;  // Of each file, until its scan is made.
};

}  // namespace

Status MakeSnapshotRelation(engine::Session& session, storage::ObjectStore& store,
                            const SnapshotRelation& relation) {
  return RelationBuilder(session, store, relation).Make();
}

}  // namespace tarn::lakehouse
