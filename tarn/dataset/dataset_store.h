// DatasetStore: everything that can be done to datasets, their branches and transactions.
//
// Functions that take a SqlTransaction are steps of the caller's own SQL transaction, so that
// starting, registering and committing can be one durable write, and one write can span datasets
// and tables. The others open their own. Permissions are checked above this room.
//
// Errors of all: kNotFound with reason DatasetNotFound, BranchNotFound or TransactionNotFound for
// what the request names; those of the database. Reasons and parameters are the wire's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/uuid.h"
#include "tarn/dataset/branch.h"
#include "tarn/dataset/checkpoint.h"
#include "tarn/dataset/dataset.h"
#include "tarn/dataset/file_view.h"
#include "tarn/dataset/ids.h"
#include "tarn/dataset/increment.h"
#include "tarn/dataset/schema.h"
#include "tarn/dataset/transaction.h"
#include "tarn/dataset/upload.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset {

/// The tables of this room, all named dataset_….
std::vector<metastore::Migration> Migrations();

/// What RemoveFiles does about a path that the view does not have.
enum class MissingPath : uint8_t { kRefuse, kIgnore };

/// Start, register and commit in one go.
struct CommitFilesRequest {
  DatasetRid dataset;
  std::string branch{kDefaultBranch};
  TransactionType type = TransactionType::kAppend;
  std::vector<StoredFile> files;
  CommitOptions commit;
};

/// Threads: any. Holds nothing but its dependencies, which must outlive it.
class DatasetStore {
 public:
  DatasetStore(metastore::Database& database, const Clock& clock, UuidGenerator& uuids)
      : database_(database), clock_(clock), uuids_(uuids) {}
  DatasetStore(const DatasetStore&) = delete;
  DatasetStore& operator=(const DatasetStore&) = delete;

  // --- Datasets ---------------------------------------------------------------------------------

  /// Names a dataset in the tree and makes it, with the branch master. Errors: those of
  /// tree::Tree::Create.
  Result<Dataset> CreateDataset(metastore::SqlTransaction& sql,
                                const CreateDatasetOptions& options);
  Result<Dataset> CreateDataset(const CreateDatasetOptions& options);
  /// Makes the dataset of a resource that the caller named itself, with the branch master.
  /// Errors: kAlreadyExists.
  Result<Dataset> InitializeDataset(metastore::SqlTransaction& sql, const DatasetRid& rid,
                                    std::string_view base_uri, std::string_view by);
  Result<Dataset> GetDataset(metastore::SqlTransaction& sql, const DatasetRid& rid);
  Result<Dataset> GetDataset(const DatasetRid& rid);
  Status UpdateSettings(metastore::SqlTransaction& sql, const DatasetRid& rid,
                        const DatasetSettings& settings);
  /// Takes the dataset away at once, for every reader and for its OPEN transactions; its tree node
  /// is the caller's. Rows go in PurgeDeleted, bytes in the sweep.
  Status DeleteDataset(metastore::SqlTransaction& sql, const DatasetRid& rid);
  /// Removes up to `rows_max` rows of deleted datasets and of aborted transactions; returns how
  /// many it removed, 0 = done.
  Result<int64_t> PurgeDeleted(int64_t rows_max);

  // --- Branches ---------------------------------------------------------------------------------

  /// Errors: InvalidBranchName; kAlreadyExists BranchAlreadyExists; TransactionNotCommitted.
  /// Cost: O(1).
  Result<Branch> CreateBranch(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                              std::string_view name, const CreateBranchOptions& options);
  Result<Branch> CreateBranch(const DatasetRid& dataset, std::string_view name,
                              const CreateBranchOptions& options);
  Result<Branch> GetBranch(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                           std::string_view name);
  Result<Branch> GetBranch(const DatasetRid& dataset, std::string_view name);
  /// Errors: InvalidPageSize (1–1000), InvalidPageToken.
  Result<BranchPage> ListBranches(const DatasetRid& dataset, int page_size,
                                  std::string_view page_token);
  /// Removes the pointer only. Children get its parent. An OPEN transaction that no other branch
  /// stands on is aborted.
  Status DeleteBranch(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                      std::string_view name);
  Status DeleteBranch(const DatasetRid& dataset, std::string_view name);
  /// Points the branch at any committed transaction of the dataset (roll back and forth).
  /// Errors: kConflict OpenTransactionAlreadyExists; TransactionNotCommitted.
  Result<Branch> ResetBranch(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                             std::string_view name, const TransactionRid& to, std::string_view by);
  /// The same, only to a descendant of the head. Errors: kConflict, reason NotAFastForward.
  Result<Branch> FastForwardBranch(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                                   std::string_view name, const TransactionRid& to,
                                   std::string_view by);
  Result<ReflogPage> ListReflog(const DatasetRid& dataset, std::string_view branch, int page_size,
                                std::string_view page_token);

  // --- Transactions -----------------------------------------------------------------------------

  /// Errors: kConflict OpenTransactionAlreadyExists. Cost: O(1).
  Result<Transaction> StartTransaction(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                                       std::string_view branch, const StartOptions& options);
  Result<Transaction> StartTransaction(const DatasetRid& dataset, std::string_view branch,
                                       const StartOptions& options);
  /// Errors: TransactionNotOpen; InvalidTransactionType when files exist and the view root would
  /// change, or from or to DELETE.
  Result<Transaction> SetTransactionType(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                                         const TransactionRid& rid, TransactionType type);
  /// Adds files to an OPEN transaction. The newest of one path wins.
  ///
  /// Errors: TransactionNotOpen; InvalidTransactionType in a DELETE; InvalidFilePath; nothing is
  /// registered then. Cost: O(files); the form without `sql` works in batches of bounded time.
  Status RegisterFiles(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                       const TransactionRid& rid, std::span<const StoredFile> files);
  Status RegisterFiles(const DatasetRid& dataset, const TransactionRid& rid,
                       std::span<const StoredFile> files);
  /// Takes paths out of the view by an OPEN DELETE transaction; returns how many.
  ///
  /// Errors: TransactionNotOpen; InvalidTransactionType elsewhere; kNotFound FileNotFoundOnBranch
  /// with kRefuse, nothing is removed then.
  Result<int64_t> RemoveFiles(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                              const TransactionRid& rid, std::span<const std::string> paths,
                              MissingPath missing);
  Result<int64_t> RemoveFiles(const DatasetRid& dataset, const TransactionRid& rid,
                              std::span<const std::string> paths, MissingPath missing);
  /// Forgets files (or removals) that this OPEN transaction itself registered; others are
  /// ignored. Returns how many.
  Result<int64_t> UnregisterFiles(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                                  const TransactionRid& rid, std::span<const std::string> paths);
  /// Makes the transaction the head of its branch, atomically; durable in the form without `sql`.
  ///
  /// Errors: TransactionNotOpen; kConflict AppendOverwritesExistingFiles (parameters paths, up to
  /// 100, and count): the transaction stays OPEN. Cost: O(1).
  Result<Transaction> CommitTransaction(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                                        const TransactionRid& rid, const CommitOptions& options);
  Result<Transaction> CommitTransaction(const DatasetRid& dataset, const TransactionRid& rid,
                                        const CommitOptions& options);
  /// Errors: TransactionNotOpen.
  Result<Transaction> AbortTransaction(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                                       const TransactionRid& rid, std::string_view by);
  Result<Transaction> AbortTransaction(const DatasetRid& dataset, const TransactionRid& rid,
                                       std::string_view by);
  /// Start, register and commit. On any failure nothing stays.
  Result<Transaction> CommitFiles(metastore::SqlTransaction& sql,
                                  const CommitFilesRequest& request);
  /// Aborts OPEN transactions older than their dataset's idle_abort; returns how many.
  Result<int64_t> AbortIdleTransactions();

  Result<Transaction> GetTransaction(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                                     const TransactionRid& rid);
  Result<Transaction> GetTransaction(const DatasetRid& dataset, const TransactionRid& rid);
  /// All of a dataset, aborted ones too, newest first.
  Result<TransactionPage> ListTransactions(const DatasetRid& dataset, int page_size,
                                           std::string_view page_token);
  /// What a branch is made of: its OPEN transaction, its head, the head's parents …
  Result<TransactionPage> ListBranchTransactions(const DatasetRid& dataset, std::string_view branch,
                                                 int page_size, std::string_view page_token);
  /// Walks the committed transactions of a branch, newest first, until `visit` stops.
  Status VisitCommitted(
      metastore::SqlTransaction& sql, const DatasetRid& dataset, std::string_view branch,
      const std::function<Result<metastore::RowAction>(const Transaction&)>& visit);

  // --- Views ------------------------------------------------------------------------------------

  /// Errors: InvalidParameterCombination when start and end are not on one path or both `end` and
  /// `at` are given; TransactionNotCommitted for an aborted end. Cost: O(log history).
  Result<FileView> ResolveView(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                               const ViewSelector& selector);
  Result<FileView> ResolveView(const DatasetRid& dataset, const ViewSelector& selector);
  /// Errors: kNotFound FileNotFoundOnBranch or FileNotFoundOnTransactionRange. Cost: one index
  /// seek per interval of the lineage.
  Result<File> StatFile(metastore::SqlTransaction& sql, const FileView& view,
                        std::string_view path);
  Result<File> StatFile(const FileView& view, std::string_view path);
  /// Errors: InvalidPageSize, InvalidPageToken. Cost: O(page).
  Result<FilePage> ListFiles(const DatasetRid& dataset, const ViewSelector& selector,
                             const ListOptions& options);
  /// All files below `prefix`, in constant memory. Threads: the callback runs on the caller's.
  Status StreamFiles(const FileView& view, std::string_view prefix,
                     const FileBatchCallback& callback, FileDetail detail = FileDetail::kPlain);
  /// Errors: InvalidPageSize, InvalidPageToken.
  Result<IncrementPage> ReadIncrement(const DatasetRid& dataset, std::string_view branch,
                                      const std::optional<TransactionRid>& since,
                                      const IncrementOptions& options);
  /// Differences from one view to another: O(changes) in commit order inside one view, else
  /// O(files) in path order. Errors: InvalidPageSize, InvalidPageToken.
  Result<ComparePage> CompareViews(const DatasetRid& dataset, const ViewSelector& from,
                                   const ViewSelector& to, int page_size,
                                   std::string_view page_token);

  // --- Schemas ----------------------------------------------------------------------------------

  /// Puts a schema on the view at a committed transaction of the branch.
  /// Errors: InvalidSchema; kNotFound DatasetViewNotFound without transactions; TransactionNotFound
  /// for an end that is not on the branch.
  Result<StoredSchema> PutSchema(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                                 std::string_view schema_json, const PutSchemaOptions& options);
  Result<StoredSchema> PutSchema(const DatasetRid& dataset, std::string_view schema_json,
                                 const PutSchemaOptions& options);
  /// Errors: kNotFound DatasetViewNotFound, SchemaNotFound.
  Result<StoredSchema> GetSchema(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                                 const GetSchemaOptions& options);
  Result<StoredSchema> GetSchema(const DatasetRid& dataset, const GetSchemaOptions& options);

  // --- Checkpoints ------------------------------------------------------------------------------

  /// Branches whose heads asked for one, oldest request first.
  Result<std::vector<CheckpointRequest>> ListCheckpointRequests(int limit);
  /// Copies the head's view under a new root in short slices and publishes it if the head is
  /// still the same and not OPEN. Removes what earlier interrupted ones left.
  Result<CheckpointOutcome> WriteCheckpoint(const DatasetRid& dataset, std::string_view branch,
                                            const CheckpointOptions& options = {});

 private:
  metastore::Database& database_;
  const Clock& clock_;
  UuidGenerator& uuids_;
};

}  // namespace tarn::dataset
