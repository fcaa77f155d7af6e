#include "tarn/maintenance/doctor.h"

#include <algorithm>

#include <fmt/format.h>

#include "tarn/iceberg/scan.h"
#include "tarn/iceberg/update/table_operation.h"
#include "tarn/maintenance/compaction.h"

namespace tarn::maintenance {

namespace {

using iceberg::DataFile;
using iceberg::DataFileContent;
using iceberg::FileScanTask;
using iceberg::Snapshot;
using iceberg::TableMetadata;

constexpr int64_t kSmallFilesMany = 10;
constexpr int64_t kManifestsMany = 300;
constexpr size_t kSnapshotsMany = 1000;
constexpr size_t kMetadataVersionsMany = 500;

class Diagnosis {
 public:
  Diagnosis(catalog::Catalog& catalog, const catalog::LoadedTable& table,
            const DoctorOptions& options)
      : catalog_(catalog), table_(table), metadata_(*table.metadata), options_(options) {}

  std::vector<Finding> Run() {
    LookAtMetadata();
    if (const Snapshot* snapshot = metadata_.CurrentSnapshot()) {
      LookAtManifests(*snapshot);
      LookAtFiles();
    } else {
      Add(Severity::kNote, "the table has no snapshot", "");
    }
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
    return std::move(findings_);
  }

 private:
  void Add(Severity severity, std::string finding, std::string advice) {
    findings_.push_back(
        {.severity = severity, .finding = std::move(finding), .advice = std::move(advice)});
  }

  [[nodiscard]] bool of_pipeline() const {
    return table_.object.writers == catalog::Writers::kProduct;
  }

  void LookAtMetadata() {
    if (metadata_.snapshots.size() > kSnapshotsMany) {
      Add(Severity::kWarning, fmt::format("{} snapshots are kept", metadata_.snapshots.size()),
          of_pipeline() ? "lower snapshots: {max_count: …} in the pipeline file"
                        : "tarn table expire");
    }
    if (metadata_.metadata_log.size() > kMetadataVersionsMany) {
      Add(Severity::kWarning,
          fmt::format("{} earlier metadata files are kept", metadata_.metadata_log.size()),
          "lower write.metadata.previous-versions-max");
    }
    if (metadata_.format_version == 1) {
      Add(Severity::kNote, "the table is of format version 1: it is read only here",
          "upgrade it to version 2 with the engine that owns it");
    }
    for (const char* operation : {"delete", "update", "merge"}) {
      const auto isolation = iceberg::IsolationOf(metadata_, operation);
      if (!isolation.ok()) {
        Add(Severity::kError, isolation.status().message(), "set or remove the property");
      }
    }
  }

  void LookAtManifests(const Snapshot& snapshot) {
    storage::ObjectStore& store = catalog_.deps().warehouse;
    const auto list = catalog_.manifest_cache().ReadList(store, metadata_, snapshot);
    if (!list.ok()) {
      Add(Severity::kError, list.status().message(),
          "roll back to a snapshot whose manifest list can be read");
      return;
    }
    int64_t broken = 0;
    for (const iceberg::ManifestFile& manifest : **list) {
      const auto entries = catalog_.manifest_cache().ReadManifest(store, metadata_, manifest);
      if (!entries.ok() && ++broken <= options_.missing_listed_max) {
        Add(Severity::kError, entries.status().message(),
            "roll back to a snapshot without it, or restore the file");
      }
    }
    readable_ = broken == 0;
    if (static_cast<int64_t>((*list)->size()) > kManifestsMany) {
      Add(Severity::kWarning,
          fmt::format("the snapshot has {} manifests, which every reader goes through",
                      (*list)->size()),
          "enable commit.manifest-merge.enabled");
    }
  }

  void LookAtFiles() {
    if (!readable_) {
      return;
    }
    const auto tasks = iceberg::PlanScan(catalog_.deps().warehouse, catalog_.manifest_cache(),
                                         metadata_, {}, iceberg::Expression::True(), {});
    if (!tasks.ok()) {
      Add(Severity::kError, tasks.status().message(), "");
      return;
    }
    LookAtSizes(*tasks);
    LookAtDeletes(*tasks);
    CheckPresence(*tasks);
  }

  void LookAtSizes(const std::vector<FileScanTask>& tasks) {
    const CompactionOptions options = CompactionOptions::FromProperties(metadata_);
    const std::vector<CompactionGroup> groups = PlanCompaction(tasks, options);
    int64_t files = 0;
    int64_t bytes = 0;
    for (const CompactionGroup& group : groups) {
      files += static_cast<int64_t>(group.files.size());
      bytes += group.size_bytes;
    }
    if (files >= kSmallFilesMany && !of_pipeline()) {
      Add(Severity::kWarning,
          fmt::format("{} of {} data files ({} bytes in all) are far from the target size of {} "
                      "bytes or full of deleted rows",
                      files, tasks.size(), bytes, options.target_bytes),
          "tarn table compact");
    }
  }

  void LookAtDeletes(const std::vector<FileScanTask>& tasks) {
    int64_t rows = 0;
    int64_t deleted = 0;
    int64_t equality = 0;
    for (const FileScanTask& task : tasks) {
      rows += task.file.record_count;
      bool by_equality = false;
      for (const iceberg::DeleteFilePtr& deletes : task.deletes) {
        by_equality = by_equality || deletes->file.content == DataFileContent::kEqualityDeletes;
        deleted += iceberg::ReferencedDataFile(deletes->file) ? deletes->file.record_count : 0;
      }
      equality += by_equality ? 1 : 0;
    }
    if (deleted * 5 > rows) {
      Add(Severity::kWarning,
          fmt::format("{} of {} rows are deleted and still stored", deleted, rows),
          of_pipeline() ? "an apply with more changes rewrites such files" : "tarn table compact");
    }
    if (equality > 0) {
      Add(Severity::kWarning,
          fmt::format("{} data files have equality deletes, which some readers refuse and others "
                      "are slow with",
                      equality),
          "tarn table compact");
    }
  }

  void CheckPresence(const std::vector<FileScanTask>& tasks) {
    int64_t checked = 0;
    int64_t wrong = 0;
    for (const FileScanTask& task : tasks) {
      if (checked++ == options_.files_checked_max) {
        Add(Severity::kNote,
            fmt::format("the presence of {} of {} data files was checked",
                        options_.files_checked_max, tasks.size()),
            "");
        break;
      }
      std::string what = WrongWith(task.file);
      for (const iceberg::DeleteFilePtr& deletes : task.deletes) {
        what = what.empty() ? WrongWith(deletes->file) : what;
      }
      if (!what.empty() && ++wrong <= options_.missing_listed_max) {
        Add(Severity::kError, what, "restore the file, or roll back to a snapshot without it");
      }
    }
    if (wrong > options_.missing_listed_max) {
      Add(Severity::kError, fmt::format("{} files in all are missing or changed", wrong), "");
    }
  }

  std::string WrongWith(const DataFile& file) {
    storage::ObjectStore& store = catalog_.deps().warehouse;
    const Result<std::string> key = storage::KeyOf(store, file.file_path);
    const Result<storage::ObjectMeta> meta =
        key.ok() ? store.Head(*key) : Result<storage::ObjectMeta>(key.status());
    if (!meta.ok()) {
      return fmt::format("file {}: {}", file.file_path, meta.status().message());
    }
    if (static_cast<int64_t>(meta->size_bytes) != file.file_size_bytes) {
      return fmt::format("file {} has {} bytes, its manifest says {}", file.file_path,
                         meta->size_bytes, file.file_size_bytes);
    }
    return {};
  }

  catalog::Catalog& catalog_;
  const catalog::LoadedTable& table_;
  const TableMetadata& metadata_;
  const DoctorOptions& options_;
  std::vector<Finding> findings_;
  bool readable_ = false;  // All manifests were.
};

}  // namespace

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      break;
  }
  return "error";
}

Result<std::vector<Finding>> DiagnoseTable(catalog::Catalog& catalog, const Rid& table,
                                           const DoctorOptions& options) {
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable loaded, catalog.LoadTable(table));
  return Diagnosis(catalog, loaded, options).Run();
}

}  // namespace tarn::maintenance
