// A dataset on a metastore of its own, and short ways to change it. For tests of this room.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/uuid.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/metastore/faulty_database.h"
#include "tarn/metastore/sqlite_database.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::dataset {

inline StoredFile MakeFile(const std::string& path, const std::string& location = {}) {
  StoredFile file;
  file.path = path;
  file.location = location.empty() ? "at/" + path : location;
  file.size_bytes = 1;
  return file;
}

inline std::vector<StoredFile> MakeFiles(const std::vector<std::string>& paths,
                                         const std::string& version = {}) {
  std::vector<StoredFile> files;
  for (const std::string& path : paths) {
    files.push_back(MakeFile(path, version.empty() ? std::string() : path + "@" + version));
  }
  return files;
}

class DatasetFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        sqlite_, metastore::SqliteDatabase::Open({.path = directory_.path() / "metastore.db"}));
    ASSERT_OK(sqlite_->Migrate(Migrations()));
    database_ = std::make_unique<metastore::FaultyDatabase>(*sqlite_);
    store_ = std::make_unique<DatasetStore>(*database_, clock_, uuids_);
    rid_ = MakeDataset();
  }

  DatasetRid MakeDataset() {
    const DatasetRid rid{.uuid = uuids_.NextV4()};
    EXPECT_OK(database_->Write([&](metastore::SqlTransaction& sql) {
      return StatusOf(store_->InitializeDataset(sql, rid, "", "me"));
    }));
    return rid;
  }

  Result<TransactionRid> Start(TransactionType type, std::string_view branch = kDefaultBranch) {
    TARN_ASSIGN_OR_RETURN(const Transaction started,
                          store_->StartTransaction(rid_, branch, {.type = type, .by = "me"}));
    return started.rid;
  }

  Result<TransactionRid> Commit(TransactionType type, const std::vector<StoredFile>& files,
                                std::string_view branch = kDefaultBranch) {
    TARN_ASSIGN_OR_RETURN(const TransactionRid rid, Start(type, branch));
    TARN_RETURN_IF_ERROR(store_->RegisterFiles(rid_, rid, files));
    TARN_RETURN_IF_ERROR(store_->CommitTransaction(rid_, rid, {}));
    return rid;
  }

  Result<TransactionRid> CommitRemoval(const std::vector<std::string>& paths,
                                       bool by_retention = false,
                                       std::string_view branch = kDefaultBranch) {
    TARN_ASSIGN_OR_RETURN(const TransactionRid rid, Start(TransactionType::kDelete, branch));
    TARN_RETURN_IF_ERROR(store_->RemoveFiles(rid_, rid, paths, MissingPath::kRefuse));
    CommitOptions options;
    options.by_retention = by_retention;
    TARN_RETURN_IF_ERROR(store_->CommitTransaction(rid_, rid, options));
    return rid;
  }

  /// "path=location" of every file of the view, in order.
  Result<std::vector<std::string>> Names(const ViewSelector& selector) {
    TARN_ASSIGN_OR_RETURN(const FileView view, store_->ResolveView(rid_, selector));
    std::vector<std::string> names;
    TARN_RETURN_IF_ERROR(store_->StreamFiles(view, "", [&](std::span<const File> files) {
      for (const File& file : files) {
        names.push_back(file.path + "=" + file.location);
      }
      return Status::Ok();
    }));
    return names;
  }

  Result<std::vector<std::string>> Paths(const ViewSelector& selector) {
    TARN_ASSIGN_OR_RETURN(std::vector<std::string> names, Names(selector));
    for (std::string& name : names) {
      name.resize(name.find('='));
    }
    return names;
  }
  Result<std::vector<std::string>> PathsAt(const TransactionRid& end) {
    ViewSelector selector;
    selector.end = end;
    return Paths(selector);
  }
  Result<std::vector<std::string>> PathsOf(const std::string& branch) {
    ViewSelector selector;
    selector.branch = branch;
    return Paths(selector);
  }

  TemporaryDirectory directory_;
  ManualClock clock_{FromMillis(1'800'000'000'000)};
  UuidGenerator uuids_{clock_};
  std::unique_ptr<metastore::SqliteDatabase> sqlite_;
  std::unique_ptr<metastore::FaultyDatabase> database_;
  std::unique_ptr<DatasetStore> store_;
  DatasetRid rid_;
};

}  // namespace tarn::dataset
