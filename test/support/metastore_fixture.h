// A fixture with a metastore of its own in a temporary folder. The test's room must be allowed to
// include metastore.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tarn/base/clock.h"
#include "tarn/base/uuid.h"
#include "tarn/metastore/sqlite_database.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn {

class MetastoreFixture : public ::testing::Test {
 protected:
  /// Opens the database and runs the migrations of one room after the other.
  void OpenWith(const std::vector<std::vector<metastore::Migration>>& rooms) {
    Result<std::unique_ptr<metastore::SqliteDatabase>> opened =
        metastore::SqliteDatabase::Open({.path = folder_.path() / "metastore.db"});
    ASSERT_THAT(opened, IsOk());
    database_ = std::move(opened).value();
    for (const std::vector<metastore::Migration>& migrations : rooms) {
      ASSERT_OK(database_->Migrate(migrations));
    }
  }

  /// Runs `function` in a write; nothing in a unit test needs fsync.
  Status Do(const metastore::SqlFunction& function) {
    return database_->Write(function, metastore::Durability::kLazy);
  }

  /// Runs `function`, which returns Result<T>, in a write, and returns what it returned.
  template <typename T, typename Function>
  Result<T> In(const Function& function) {
    std::optional<Result<T>> result;
    const Status status = Do([&](metastore::SqlTransaction& sql) {
      result = function(sql);
      return result->status();
    });
    if (!status.ok()) {
      return status;
    }
    return *std::move(result);
  }

  ManualClock clock_{FromMicros(1'000'000'000)};
  UuidGenerator ids_{clock_};
  TemporaryDirectory folder_;
  std::unique_ptr<metastore::SqliteDatabase> database_;
};

}  // namespace tarn
