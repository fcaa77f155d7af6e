// A metastore that moves from SQLite to PostgreSQL and back.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tarn/metastore/bundle.h"
#include "tarn/metastore/migrations.h"
#include "tarn/metastore/postgres_database.h"
#include "tarn/metastore/sqlite_database.h"
#include "test/support/matchers.h"
#include "test/support/postgres_server.h"
#include "test/support/temporary_directory.h"

namespace tarn::metastore {
namespace {

class BundleTablesTest : public ::testing::Test {
 protected:
  static std::vector<Migration> Steps() {
    std::vector<Migration> steps = Migrations();
    // References that come before what they name, names that need quotes, both kinds of keys.
    steps.push_back(
        {"shop", 1,
         "CREATE TABLE shop_z (id BIGINT NOT NULL PRIMARY KEY); CREATE TABLE shop_a (id INTEGER "
         "PRIMARY KEY AUTOINCREMENT, z BIGINT NOT NULL REFERENCES shop_z (id), \"key\" TEXT, real "
         "REAL, bytes BLOB); CREATE TABLE shop_b (id INTEGER PRIMARY KEY, one TEXT); INSERT INTO "
         "shop_b (one) VALUES ('of the migration')"});
    return steps;
  }

  std::unique_ptr<SqliteDatabase> OpenSqlite(const std::string& name) const {
    const std::filesystem::path folder = directory_.path() / name;
    std::filesystem::create_directories(folder);
    auto opened = SqliteDatabase::Open({.path = folder / "metastore.db"});
    EXPECT_THAT(opened, IsOk());
    return std::move(opened).value();
  }
  static std::unique_ptr<PostgresDatabase> OpenPostgres() {
    auto opened = PostgresDatabase::Open({.url = SharedPostgres().NewSchema()});
    EXPECT_THAT(opened, IsOk());
    return std::move(opened).value();
  }

  static void Fill(Database& database) {
    ASSERT_OK(database.Migrate(Steps()));
    ASSERT_OK(database.Write([](SqlTransaction& sql) -> Status {
      const auto run = [&](const std::string& text, const SqlArguments& values) {
        return sql.Execute(text, values).status();
      };
      TARN_RETURN_IF_ERROR(
          run("INSERT INTO shop_z (id) VALUES (?1)", {int64_t{9'007'199'254'740'993}}));
      const std::string insert =
          "INSERT INTO shop_a (z, \"key\", real, bytes) VALUES (?1, ?2, ?3, ?4)";
      for (int i = 0; i < 3; ++i) {
        TARN_RETURN_IF_ERROR(run(insert, {int64_t{9'007'199'254'740'993}, std::string("ä\n\"b\""),
                                          0.1 * i, Blob{std::string("\0\xff", 2)}}));
      }
      TARN_RETURN_IF_ERROR(run(insert, {int64_t{9'007'199'254'740'993}, std::monostate(),
                                        std::monostate(), std::monostate()}));
      TARN_RETURN_IF_ERROR(run("DELETE FROM shop_a WHERE id = 4", {}));
      return run("INSERT INTO shop_b (id, one) VALUES (41, '')", {});
    }));
  }

  // The ids that the next rows of both tables get.
  static std::vector<int64_t> NextIds(Database& database) {
    std::vector<int64_t> ids;
    EXPECT_OK(database.Write([&](SqlTransaction& sql) -> Status {
      for (const char* insert : {"INSERT INTO shop_a (z) SELECT id FROM shop_z RETURNING id",
                                 "INSERT INTO shop_b (one) VALUES ('x') RETURNING id"}) {
        TARN_RETURN_IF_ERROR(sql.Query(insert, {}, [&](const SqlRow& row) {
          ids.push_back(row.Int(0));
          return Result<RowAction>(RowAction::kContinue);
        }));
      }
      return {};
    }));
    return ids;
  }

  [[nodiscard]] std::vector<std::string> Lines(const std::string& name, bool rows_only) const {
    std::ifstream in(directory_.path() / name);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) {
      if (!rows_only || line.starts_with("[")) {
        lines.push_back(line);
      }
    }
    return lines;
  }

  TemporaryDirectory directory_;
};

TEST_F(BundleTablesTest, ThereAndBack) {
  const auto first = OpenSqlite("first");
  Fill(*first);
  ASSERT_OK_AND_ASSIGN(const BundleSummary written,
                       ExportBundle(*first, directory_.path() / "out"));
  const auto postgres = OpenPostgres();
  ASSERT_OK_AND_ASSIGN(const BundleSummary moved,
                       ImportBundle(directory_.path() / "out", *postgres, Steps()));
  EXPECT_EQ(moved.rows, written.rows);
  EXPECT_EQ(moved.tables, written.tables);
  ASSERT_OK(ExportBundle(*postgres, directory_.path() / "back").status());
  // SQLite keeps no number of shop_b, PostgreSQL does.
  EXPECT_THAT(Lines("back", true), ::testing::IsSupersetOf(Lines("out", true)));
  EXPECT_EQ(Lines("back", true).size(), Lines("out", true).size() + 1);
  const auto second = OpenSqlite("second");
  ASSERT_OK(ImportBundle(directory_.path() / "back", *second, Steps()).status());
  EXPECT_THAT(NextIds(*first), ::testing::ElementsAre(5, 42));
  EXPECT_THAT(NextIds(*postgres), ::testing::ElementsAre(5, 42));
  EXPECT_THAT(NextIds(*second), ::testing::ElementsAre(5, 42));
  EXPECT_OK(second->CheckReferences());
}

TEST_F(BundleTablesTest, OnlyIntoAnEmptySchema) {
  const auto first = OpenSqlite("first");
  Fill(*first);
  ASSERT_OK(ExportBundle(*first, directory_.path() / "out").status());
  const auto postgres = OpenPostgres();
  ASSERT_OK(postgres->Migrate(Steps()));
  EXPECT_THAT(ImportBundle(directory_.path() / "out", *postgres, Steps()),
              FailsWith(ErrorCode::kFailedPrecondition, "empty metastore only"));
}

TEST_F(BundleTablesTest, ABundleThatLacksARowIsRefused) {
  const auto first = OpenSqlite("first");
  Fill(*first);
  ASSERT_OK(ExportBundle(*first, directory_.path() / "out").status());
  const auto postgres = OpenPostgres();
  std::vector<std::string> lines = Lines("out", false);
  std::ofstream cut(directory_.path() / "cut");
  for (const std::string& line : lines) {
    if (line != "[9007199254740993]") {
      cut << line << "\n";
    }
  }
  cut.close();
  EXPECT_THAT(ImportBundle(directory_.path() / "cut", *postgres, Steps()),
              Fails(ErrorCode::kCorruption));
  // Nothing is left that could be taken for a metastore, or be in the way of the next one.
  EXPECT_THAT(postgres->IsEmpty(), IsOkAndHolds(true));
  ASSERT_OK(ImportBundle(directory_.path() / "out", *postgres, Steps()).status());
  EXPECT_THAT(NextIds(*postgres), ::testing::ElementsAre(5, 42));
}

}  // namespace
}  // namespace tarn::metastore
