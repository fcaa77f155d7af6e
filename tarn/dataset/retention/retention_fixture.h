// A dataset whose files are real objects, with policies. For tests of retention and sweeping.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tarn/access/schema.h"
#include "tarn/dataset/dataset_fixture.h"
#include "tarn/dataset/retention/policy_store.h"
#include "tarn/dataset/retention/retention_run.h"
#include "tarn/dataset/retention/sweep.h"
#include "tarn/metastore/migrations.h"
#include "tarn/storage/memory_store.h"
#include "tarn/tree/tree.h"

namespace tarn::dataset::retention {

class RetentionFixture : public DatasetFixture {
 protected:
  void SetUp() override {
    DatasetFixture::SetUp();
    for (const auto& migrations :
         {metastore::Migrations(), access::Migrations(), tree::Migrations()}) {
      ASSERT_OK(sqlite_->Migrate(migrations));
    }
  }

  Status Put(std::string_view json) {
    TARN_ASSIGN_OR_RETURN(const RetentionPolicy policy, ParsePolicy(json));
    return database_->Write([&](metastore::SqlTransaction& sql) {
      return PutPolicy(sql, {.policy = policy, .now = clock_.Now(), .by = "me"});
    });
  }

  Result<StoredFile> Upload(const std::string& path) {
    bool given = false;
    return UploadFile(objects_, uuids_, rid_, path, [&]() -> Result<std::string_view> {
      return std::exchange(given, true) ? std::string_view() : std::string_view("content");
    });
  }

  Result<std::vector<StoredFile>> UploadAll(const std::vector<std::string>& paths) {
    std::vector<StoredFile> files;
    for (const std::string& path : paths) {
      TARN_ASSIGN_OR_RETURN(StoredFile file, Upload(path));
      files.push_back(std::move(file));
    }
    return files;
  }

  /// Uploads and commits; time moves on by an hour.
  Result<TransactionRid> CommitUploads(TransactionType type, const std::vector<std::string>& paths,
                                       std::string_view branch = kDefaultBranch) {
    TARN_ASSIGN_OR_RETURN(const std::vector<StoredFile> files, UploadAll(paths));
    TARN_ASSIGN_OR_RETURN(const TransactionRid rid, Commit(type, files, branch));
    clock_.Advance(std::chrono::hours(1));
    return rid;
  }

  Result<std::string> LocationAt(const TransactionRid& end, const std::string& path) {
    ViewSelector selector;
    selector.end = end;
    TARN_ASSIGN_OR_RETURN(const FileView view, store_->ResolveView(rid_, selector));
    TARN_ASSIGN_OR_RETURN(const File file, store_->StatFile(view, path));
    return file.location;
  }

  bool Exists(const std::string& location) { return objects_.Head(location).ok(); }

  Result<std::vector<TransactionRid>> Marked() {
    std::vector<TransactionRid> marked;
    TARN_RETURN_IF_ERROR(database_->Read([&](metastore::SqlTransaction& sql) {
      return sql.Query(
          "SELECT t.uuid FROM dataset_retention_marks m JOIN dataset_transactions t ON t.id = "
          "m.transaction_id ORDER BY t.id",
          {}, [&](const metastore::SqlRow& row) -> Result<metastore::RowAction> {
            TransactionRid rid;
            const std::string_view bytes = row.Text(0);
            std::copy(bytes.begin(), bytes.end(), rid.uuid.bytes.begin());
            marked.push_back(rid);
            return metastore::RowAction::kContinue;
          });
    }));
    return marked;
  }

  Result<RetentionReport> Mark(RunMode mode = RunMode::kDo) {
    RunOptions options;
    options.mode = mode;
    return RunRetention(Deps(), options);
  }
  Result<SweepReport> Sweep(RunMode mode = RunMode::kDo) {
    SweepOptions options;
    options.mode = mode;
    return RunSweep(Deps(), objects_, options);
  }

  RetentionDeps Deps() { return {*database_, *store_, clock_}; }

  storage::MemoryStore objects_{clock_};
};

}  // namespace tarn::dataset::retention
