// A home without a server: metastore, warehouse, engine, catalog and datasets. For tests of this
// room.
#pragma once

#include <memory>

#include <arrow/compute/initialize.h>

#include "tarn/catalog/catalog.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/engine/engine.h"
#include "tarn/lakehouse/table_inputs.h"
#include "tarn/landing/landing_state.h"
#include "tarn/metastore/faulty_database.h"
#include "tarn/metastore/migrations.h"
#include "tarn/metastore/sqlite_database.h"
#include "tarn/storage/local_store.h"
#include "tarn/task/task_status.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::task {

class TaskFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(arrow::compute::Initialize().ok());
    ASSERT_OK_AND_ASSIGN(
        sqlite_, metastore::SqliteDatabase::Open({.path = directory_.path() / "metastore.db"}));
    for (const auto& migrations :
         {metastore::Migrations(), tree::Migrations(), dataset::Migrations(), catalog::Migrations(),
          lakehouse::Migrations(), landing::Migrations(), Migrations()}) {
      ASSERT_OK(sqlite_->Migrate(migrations));
    }
    database_ = std::make_unique<metastore::FaultyDatabase>(*sqlite_);
    ASSERT_OK_AND_ASSIGN(warehouse_,
                         storage::LocalStore::Open({.root = directory_.path() / "warehouse"}));
    ASSERT_OK_AND_ASSIGN(engine_,
                         engine::Engine::Open({.allowed_directories = {warehouse_->root_path()}}));
    catalog_ = std::make_unique<catalog::Catalog>(
        catalog::CatalogOptions{},
        catalog::CatalogDeps{*database_, *warehouse_, tree_, uuids_, clock_});
    datasets_ = std::make_unique<dataset::DatasetStore>(*database_, clock_, uuids_);
    ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(project_, tree_.Bootstrap(sql, "me"));
      return Status::Ok();
    }));
  }

  TemporaryDirectory directory_;
  ManualClock clock_{FromMillis(1'800'000'000'000)};
  UuidGenerator uuids_{clock_};
  tree::Tree tree_{uuids_, clock_};
  std::unique_ptr<metastore::SqliteDatabase> sqlite_;
  std::unique_ptr<metastore::FaultyDatabase> database_;
  std::unique_ptr<storage::LocalStore> warehouse_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<dataset::DatasetStore> datasets_;
  Rid project_;
};

}  // namespace tarn::task
