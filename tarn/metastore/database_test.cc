#include "tarn/metastore/database.h"

#include "tarn/metastore/database_contract.h"
#include "tarn/metastore/faulty_database.h"
#include "tarn/metastore/sqlite_database.h"
#include "test/support/temporary_directory.h"

namespace tarn::metastore {
namespace {

class SqliteUnderTest final : public DatabaseUnderTest {
 public:
  SqliteUnderTest() {
    Result<std::unique_ptr<SqliteDatabase>> opened =
        SqliteDatabase::Open({.path = folder_.path() / "metastore.db"});
    EXPECT_THAT(opened, IsOk());
    database_ = std::move(opened).value();
  }
  Database& database() override { return *database_; }

 private:
  TemporaryDirectory folder_;
  std::unique_ptr<SqliteDatabase> database_;
};

class FaultyUnderTest final : public DatabaseUnderTest {
 public:
  Database& database() override { return faulty_; }

 private:
  SqliteUnderTest inner_;
  FaultyDatabase faulty_{inner_.database()};
};

INSTANTIATE_TEST_SUITE_P(
    Databases, DatabaseContract,
    ::testing::Values(DatabaseMaker{"sqlite", [] { return std::make_unique<SqliteUnderTest>(); }},
                      DatabaseMaker{"faulty", [] { return std::make_unique<FaultyUnderTest>(); }}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace tarn::metastore
