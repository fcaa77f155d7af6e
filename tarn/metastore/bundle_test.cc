#include "tarn/metastore/bundle.h"

#include <fstream>
#include <sstream>

#include "tarn/metastore/migrations.h"
#include "tarn/metastore/sqlite_database.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::metastore {
namespace {

std::vector<Migration> ShopMigrations(int newest) {
  std::vector<Migration> all = {
      {"shop", 1,
       "CREATE TABLE shop_a (id INTEGER PRIMARY KEY AUTOINCREMENT, b BIGINT NOT NULL REFERENCES "
       "shop_b (id), t TEXT, r REAL, x BLOB); CREATE TABLE shop_b (id BIGINT PRIMARY KEY); INSERT "
       "INTO shop_b (id) VALUES (1)"},
      {"shop", 2, "ALTER TABLE shop_a ADD COLUMN later TEXT NOT NULL DEFAULT 'new'"}};
  all.resize(static_cast<size_t>(newest));
  return all;
}

class BundleTest : public ::testing::Test {
 protected:
  std::unique_ptr<SqliteDatabase> Open(const std::string& name) {
    const std::filesystem::path folder = directory_.path() / name;
    std::filesystem::create_directories(folder);
    Result<std::unique_ptr<SqliteDatabase>> opened =
        SqliteDatabase::Open({.path = folder / "metastore.db"});
    EXPECT_THAT(opened, IsOk());
    return std::move(opened).value();
  }
  std::filesystem::path file() const { return directory_.path() / "bundle"; }
  std::string Text() const {
    std::ifstream in(file(), std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  void WriteText(const std::string& text) const { std::ofstream(file(), std::ios::binary) << text; }
  // A metastore with a row of each kind of value, and its bundle.
  void MakeBundle() {
    const auto database = Open("from");
    ASSERT_OK(database->Migrate(Migrations()));
    ASSERT_OK(database->Migrate(ShopMigrations(1)));
    ASSERT_OK(database->Write([](SqlTransaction& sql) -> Status {
      TARN_RETURN_IF_ERROR(
          sql.Execute("INSERT INTO shop_b (id) VALUES (?1)", {int64_t{9'007'199'254'740'993}}));
      const std::string insert = "INSERT INTO shop_a (id, b, t, r, x) VALUES (?1, ?2, ?3, ?4, ?5)";
      TARN_RETURN_IF_ERROR(
          sql.Execute(insert, {int64_t{7}, int64_t{9'007'199'254'740'993}, std::string("a\n\"b\""),
                               0.1, Blob{std::string("\0\xff", 2)}}));
      TARN_RETURN_IF_ERROR(sql.Execute(insert, {int64_t{8}, int64_t{1}, std::string("\xff"),
                                                std::monostate(), std::monostate()}));
      return StatusOf(sql.Execute("DELETE FROM shop_a WHERE id = 8", {}));
    }));
    ASSERT_OK_AND_ASSIGN(const BundleSummary written, ExportBundle(*database, file()));
    EXPECT_GE(written.tables, 4);
  }

  TemporaryDirectory directory_;
};

TEST_F(BundleTest, GivesTheSameRowsInAnotherDatabase) {
  MakeBundle();
  const auto to = Open("to");
  std::vector<Migration> all = Migrations();
  for (const Migration& step : ShopMigrations(2)) {
    all.push_back(step);
  }
  ASSERT_OK(ImportBundle(file(), *to, all));
  ASSERT_OK(to->Write([](SqlTransaction& sql) -> Status {
    std::vector<std::string> rows;
    TARN_RETURN_IF_ERROR(sql.Query("SELECT id, b, t, r, x, later, typeof(x) FROM shop_a", {},
                                   [&](const SqlRow& row) {
                                     EXPECT_EQ(row.Int(0), 7);
                                     EXPECT_EQ(row.Int(1), 9'007'199'254'740'993);
                                     EXPECT_EQ(row.Text(2), "a\n\"b\"");
                                     EXPECT_EQ(row.Real(3), 0.1);
                                     EXPECT_EQ(row.Text(4), std::string_view("\0\xff", 2));
                                     EXPECT_EQ(row.Text(5), "new");
                                     EXPECT_EQ(row.Text(6), "blob");
                                     rows.emplace_back(row.Text(2));
                                     return Result<RowAction>(RowAction::kContinue);
                                   }));
    EXPECT_EQ(rows.size(), 1U);
    TARN_RETURN_IF_ERROR(sql.Execute("INSERT INTO shop_a (b) VALUES (1)", {}));
    EXPECT_EQ(sql.LastInsertId(), 9) << "an id of a row that is gone is not given again";
    return Status::Ok();
  }));
  EXPECT_OK(to->CheckIntegrity());
  EXPECT_THAT(ImportBundle(file(), *to, all),
              FailsWith(ErrorCode::kFailedPrecondition, "empty metastore"));
}

TEST_F(BundleTest, AFileThatIsThereStays) {
  WriteText("mine");
  const auto database = Open("from");
  ASSERT_OK(database->Migrate(Migrations()));
  EXPECT_THAT(ExportBundle(*database, file()), Fails(ErrorCode::kAlreadyExists));
  EXPECT_EQ(Text(), "mine");
  EXPECT_THAT(ExportBundle(*database, directory_.path() / "none" / "bundle"),
              Fails(ErrorCode::kUnavailable));
}

// Every changed byte and every cut is seen; none crashes.
TEST_F(BundleTest, DamageIsNamed) {
  MakeBundle();
  const std::string whole = Text();
  std::vector<Migration> all = Migrations();
  all.push_back(ShopMigrations(1).front());
  int count = 0;
  const auto import = [&](const std::string& text) {
    WriteText(text);
    return StatusOf(ImportBundle(file(), *Open("to" + std::to_string(count++)), all));
  };
  for (size_t at = 0; at < whole.size(); at += 37) {
    std::string changed = whole;
    changed[at] = changed[at] == '1' ? '2' : '1';
    EXPECT_FALSE(import(changed).ok()) << "changed at " << at;
  }
  for (size_t size = 0; size < whole.size(); size += 61) {
    EXPECT_THAT(import(whole.substr(0, size)), Fails(ErrorCode::kCorruption)) << size;
  }
  EXPECT_THAT(import(whole.substr(0, whole.size() - 1)), Fails(ErrorCode::kCorruption));
  EXPECT_THAT(import(whole + "more\n"), FailsWith(ErrorCode::kCorruption, "follow"));
  EXPECT_OK(import(whole));
}

TEST_F(BundleTest, ANewerProgramsBundleIsRefused) {
  MakeBundle();
  EXPECT_THAT(ImportBundle(file(), *Open("to"), Migrations()),
              FailsWith(ErrorCode::kFailedPrecondition, "shop"));
  EXPECT_THAT(ImportBundle(directory_.path() / "none", *Open("to2"), Migrations()),
              Fails(ErrorCode::kNotFound));
}

}  // namespace
}  // namespace tarn::metastore
