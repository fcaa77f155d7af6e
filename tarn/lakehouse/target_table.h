// TargetTable: one target of a pipeline: its internal table, its views and its published table, and
// every commit to them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/catalog/catalog.h"
#include "tarn/lakehouse/apply.h"
#include "tarn/lakehouse/apply_plan.h"
#include "tarn/lakehouse/changes_writer.h"
#include "tarn/lakehouse/table_inputs.h"
#include "tarn/lakehouse/table_spec.h"

namespace tarn::iceberg {
class SchemaUpdate;
struct SnapshotUpdate;
}  // namespace tarn::iceberg

namespace tarn::lakehouse {

/// Where a target lives and who acts.
struct TargetPlace {
  Rid project;
  std::string by;  // User id.
};

/// Where a table stands. Read from the summary of its current snapshot.
struct TableProgress {
  ChangeIdentifier last;         // Of the newest change appended.
  std::string apply_identifier;  // Newest change applied; empty before the first apply.
  std::optional<int64_t> snapshot_id;
  int64_t schema_id = 0;
};

/// One append: files of Changes (or of the table in append mode) and what they were made from.
struct AppendCommit {
  WrittenChanges written;
  std::vector<ConsumedInput> inputs;
  metastore::SqlFunction also;  // E.g. dead letters; in the SQL transaction of the commit.
  Timestamp now;
};

/// One row of Asset_state; empty identifiers are NULL.
struct AssetState {
  std::string apply_identifier;
  std::string copy_identifier;
};

struct CommittedApply {
  ApplyCounts counts;
  int64_t snapshot_id = 0;
};

/// What else belongs into the SQL transaction of an apply that does so much.
using ApplyFunction = std::function<Status(metastore::SqlTransaction&, const ApplyCounts&)>;

/// What a reload found, as change files that no snapshot has.
struct ReloadCommit {
  enum class Scope : uint8_t {
    kDifferences,  // Rows to insert, update and delete.
    kEverything,   // All rows, as loads: Current and Prior are emptied first.
  };
  WrittenChanges written;
  Scope scope = Scope::kDifferences;
  metastore::SqlFunction also;  // In the SQL transaction of the commit.
  Timestamp now;
};

/// Resource. One owner thread for appends, one for applies; both may run at once: only the commit
/// step is serial, and it plans on the newest metadata.
class TargetTable {
 public:
  /// Finds the objects of the target, if they were made before. Errors: kAlreadyExists when a name
  /// it needs belongs to something else; kFailedPrecondition when the table was made for another
  /// mode or key. A spec of merge mode without a key takes that of the table.
  static Result<std::unique_ptr<TargetTable>> Open(TableSpec spec, TargetPlace place,
                                                   catalog::Catalog& catalog);
  ~TargetTable();
  TargetTable(const TargetTable&) = delete;
  TargetTable& operator=(const TargetTable&) = delete;

  [[nodiscard]] const TableSpec& spec() const { return spec_; }
  [[nodiscard]] bool exists() const;
  /// The newest state. Errors: kFailedPrecondition before it exists, or when the current snapshot
  /// is not one of ours (says how to adopt it or roll back).
  Result<catalog::LoadedTable> Load();
  Result<TableProgress> ReadProgress();
  /// The newest transaction read of a dataset.
  Result<std::optional<std::string>> ReadInput(const std::string& dataset);

  /// Makes the table, its views and its published table for these user columns, or adds columns
  /// and widens types; views are re-made in the same commit. Never drops, never narrows. Names that
  /// differ in case only are one column.
  /// `also` runs in the SQL transaction of the change, if there is one to make.
  /// Errors: kInvalidArgument when a type cannot become the one asked for.
  Status EnsureColumns(const iceberg::Schema& users, const metastore::SqlFunction& also = {});

  /// Takes columns off an existing table; views are re-made in the same commit. Their values stay
  /// in the files until these are rewritten, and nothing shows them: a column of the same name that
  /// is added later is another one. Names that the table does not have are passed over. `also` as
  /// above. Errors: kFailedPrecondition for a column of the key, or that partitions or sorts.
  Status DropColumns(const std::vector<std::string>& names, const metastore::SqlFunction& also);

  /// Gives merge mode the key that the spec leaves to the source. Errors: kFailedPrecondition when
  /// the table exists with another key.
  Status UseKey(const std::vector<std::string>& key);

  /// Makes the views of an existing table anew when the spec wants other view_headers or null_keys
  /// than they were made with. `also` runs in the SQL transaction of the change. A crash before it
  /// leaves the views as they are; the next call tries again.
  Status RenewViews(const metastore::SqlFunction& also = {});

  /// A writer for the next changes, on the newest metadata. The table must exist.
  struct ChangesSession {
    catalog::LoadedTable table;  // Keeps the metadata that the writer refers to.
    std::unique_ptr<ChangesWriter> writer;
  };
  Result<ChangesSession> OpenChanges(Timestamp now);

  /// Commits an append snapshot with its Asset_state row and its inputs. Nothing written: the
  /// inputs are recorded all the same. Returns the snapshot id.
  /// Errors: kCommitStateUnknown (nothing may be deleted); on others the files are removed.
  Result<int64_t> CommitAppend(AppendCommit append);

  /// What an apply would do now.
  Result<UnappliedWork> ReadUnapplied();
  /// Applies all changes that are unapplied in the newest snapshot; nothing when there are none.
  /// `also` runs in the SQL transaction of the commit.
  Result<std::optional<CommittedApply>> Apply(Timestamp now, const ApplyFunction& also = {});

  /// Makes the rows of a reload those of Current, in one commit; change numbers go on. Its files
  /// are removed afterwards, unless the state of the commit is unknown. Errors: kConflict when
  /// something is unapplied.
  Result<CommittedApply> ApplyReload(const ReloadCommit& reload);

  /// Text of the views of this table as it is now.
  Result<std::string> CurrentSql(SqlDialect dialect);
  Result<std::string> HistorySql(SqlDialect dialect);

 private:
  struct Objects;  // What the catalog knows of the target.

  TargetTable(TableSpec spec, TargetPlace place, catalog::Catalog& catalog);
  Status FindObjects();
  Status RequireSameMaking();
  Status CheckViews(const iceberg::TableMetadata& internal);
  Status Create(const iceberg::Schema& users, const metastore::SqlFunction& also);
  Status CommitColumns(const catalog::LoadedTable& table, const iceberg::SchemaUpdate& update,
                       const metastore::SqlFunction& also);
  Result<std::vector<catalog::PointerMove>> RemakeViews(const iceberg::TableMetadata& internal);
  struct ApplyWork;  // What one apply is made from.
  static iceberg::SnapshotUpdate UpdateOf(const ApplyWork& work, const ApplyResult& result,
                                          const std::vector<iceberg::DataFile>& added);
  Result<CommittedApply> RunAndCommit(const ApplyWork& work);
  Result<iceberg::DataFile> WriteAssetState(const iceberg::TableMetadata& metadata,
                                            const AssetState& state, Timestamp now);

  TableSpec spec_;  // Its key is spelled as the table's columns are, once there is one.
  const TargetPlace place_;
  catalog::Catalog& catalog_;
  std::unique_ptr<Objects> objects_;
  std::mutex commit_mutex_;  // One commit step at a time.
};

}  // namespace tarn::lakehouse
