// What every Database promises, run on each implementation.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tarn/metastore/database.h"
#include "tarn/metastore/faulty_database.h"
#include "tarn/metastore/postgres_database.h"
#include "tarn/metastore/sqlite_database.h"
#include "test/support/matchers.h"
#include "test/support/postgres_server.h"
#include "test/support/temporary_directory.h"

namespace tarn::metastore {
namespace {

/// A fresh, empty database and whatever keeps it alive.
class DatabaseUnderTest {
 public:
  virtual ~DatabaseUnderTest() = default;
  virtual Database& database() = 0;
};

struct DatabaseMaker {
  std::string name;
  std::function<std::unique_ptr<DatabaseUnderTest>()> make;
};

class DatabaseContract : public ::testing::TestWithParam<DatabaseMaker> {
 protected:
  void SetUp() override {
    under_test_ = GetParam().make();
    ASSERT_OK(database().Migrate(Steps()));
  }

  Database& database() { return under_test_->database(); }

  static std::vector<Migration> Steps() {
    return {{.room = "contract",
             .version = 1,
             .sql = "CREATE TABLE rows (id BIGINT NOT NULL PRIMARY KEY, text TEXT NOT NULL "
                    "CHECK (text <> 'bad')); CREATE TABLE marks (row_id BIGINT NOT NULL "
                    "REFERENCES rows (id));"},
            {.room = "contract",
             .version = 2,
             .sql = "CREATE TABLE numbered (id INTEGER PRIMARY KEY, value REAL, body BYTEA)"}};
  }

  static Status Insert(SqlTransaction& sql, int64_t id, const std::string& text) {
    return sql.Execute("INSERT INTO rows (id, text) VALUES (?1, ?2)", {id, text}).status();
  }

  Status Write(int64_t id, const std::string& text, Durability durability) {
    return database().Write([&](SqlTransaction& sql) { return Insert(sql, id, text); }, durability);
  }

  static Result<std::vector<int64_t>> IdsIn(SqlTransaction& sql) {
    std::vector<int64_t> ids;
    const RowCallback keep = [&](const SqlRow& row) -> Result<RowAction> {
      ids.push_back(row.Int(0));
      return RowAction::kContinue;
    };
    TARN_RETURN_IF_ERROR(sql.Query("SELECT id FROM rows ORDER BY id", {}, keep));
    return ids;
  }

  std::vector<int64_t> Ids() {
    std::vector<int64_t> ids;
    EXPECT_OK(database().Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(ids, IdsIn(sql));
      return {};
    }));
    return ids;
  }

  std::unique_ptr<DatabaseUnderTest> under_test_;
};

TEST_P(DatabaseContract, WhatWasAcknowledgedIsRead) {
  for (const Durability durability : {Durability::kDurable, Durability::kLazy}) {
    const int64_t id = static_cast<int64_t>(durability) + 1;
    ASSERT_OK(Write(id, "a", durability));
    EXPECT_THAT(Ids(), ::testing::Contains(id));
  }
}

TEST_P(DatabaseContract, ValuesOfEveryTypeComeBack) {
  const std::string bytes("\0\xFF\x01", 3);
  ASSERT_OK(database().Write([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(
        sql.Execute("INSERT INTO numbered (value, body) VALUES (?1, ?2)", {0.5, Blob{bytes}}));
    EXPECT_EQ(sql.LastInsertId(), 1);
    TARN_RETURN_IF_ERROR(sql.Execute("INSERT INTO numbered (value, body) VALUES (?1, ?2)",
                                     {std::monostate(), Blob{}}));
    EXPECT_EQ(sql.LastInsertId(), 2);
    return Insert(sql, INT64_MIN, "a'ü\U0001F600\n");
  }));
  ASSERT_OK(database().Read([&](SqlTransaction& sql) -> Status {
    int rows = 0;
    const RowCallback look = [&](const SqlRow& row) -> Result<RowAction> {
      ++rows;
      EXPECT_EQ(row.column_count(), 3);
      if (row.Int(0) == 1) {
        EXPECT_EQ(row.Real(1), 0.5);
        EXPECT_EQ(row.Text(2), bytes);
      } else {
        EXPECT_TRUE(row.IsNull(1));
        EXPECT_EQ(row.Int(1), 0);
        EXPECT_EQ(row.Text(1), "");
        EXPECT_FALSE(row.IsNull(2)) << "an empty blob is not NULL";
      }
      return RowAction::kContinue;
    };
    TARN_RETURN_IF_ERROR(sql.Query("SELECT id, value, body FROM numbered ORDER BY id", {}, look));
    EXPECT_EQ(rows, 2);
    const RowCallback text = [&](const SqlRow& row) -> Result<RowAction> {
      EXPECT_EQ(row.Text(0), "a'ü\U0001F600\n");
      EXPECT_EQ(row.Int(1), INT64_MIN);
      return RowAction::kStop;
    };
    return sql.Query("SELECT text, id FROM rows", {}, text);
  }));
}

TEST_P(DatabaseContract, AFailedFunctionLeavesNothing) {
  EXPECT_THAT(database().Write([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(Insert(sql, 1, "a"));
    TARN_RETURN_IF_ERROR(Insert(sql, 2, "b"));
    return Status::Conflict("mine").WithReason("Mine", "{}");
  }),
              FailsWith(ErrorCode::kConflict, "mine"));
  EXPECT_THAT(Ids(), ::testing::IsEmpty());
}

TEST_P(DatabaseContract, ExceptionsBecomeInternalAndLeaveNothing) {
  EXPECT_THAT(database().Write([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(Insert(sql, 1, "a"));
    return Insert(sql, std::vector<int64_t>().at(1), "b");
  }),
              FailsWith(ErrorCode::kInternal, "exception"));
  EXPECT_THAT(database().Read([](SqlTransaction& sql) -> Status {
    return Insert(sql, std::stoi("no number"), "b");
  }),
              FailsWith(ErrorCode::kInternal, "exception"));
  EXPECT_THAT(Ids(), ::testing::IsEmpty());
  EXPECT_OK(Write(2, "b", Durability::kDurable));
}

TEST_P(DatabaseContract, ConstraintsHaveCodesAndUndoTheirStatementOnly) {
  ASSERT_OK(Write(1, "a", Durability::kDurable));
  ASSERT_OK(database().Write([&](SqlTransaction& sql) -> Status {
    EXPECT_THAT(Insert(sql, 1, "again"), Fails(ErrorCode::kAlreadyExists));
    EXPECT_THAT(Insert(sql, 2, "bad"), Fails(ErrorCode::kInvalidArgument));
    EXPECT_THAT(
        sql.Execute("INSERT INTO rows (id, text) VALUES (?1, ?2)", {int64_t{2}, std::monostate()}),
        Fails(ErrorCode::kInvalidArgument));
    EXPECT_THAT(sql.Execute("INSERT INTO marks (row_id) VALUES (?1)", {int64_t{99}}),
                Fails(ErrorCode::kInvalidArgument));
    return Insert(sql, 3, "c");
  }));
  EXPECT_THAT(Ids(), ::testing::ElementsAre(1, 3));
}

TEST_P(DatabaseContract, WrongSqlFailsTheFunctionEvenWhenSwallowed) {
  for (const char* text : {"SELECT nothing FROM nowhere", "SELECT 1; SELECT 2", ""}) {
    EXPECT_THAT(database().Write([&](SqlTransaction& sql) -> Status {
      TARN_RETURN_IF_ERROR(Insert(sql, 1, "a"));
      EXPECT_FALSE(sql.Execute(text, {}).ok());
      return {};
    }),
                Fails(ErrorCode::kInternal))
        << text;
  }
  EXPECT_THAT(database().Read([&](SqlTransaction& sql) -> Status {
    return sql.Execute("SELECT ?1", {}).status();
  }),
              FailsWith(ErrorCode::kInternal, "takes 1 arguments, found 0"));
  EXPECT_THAT(Ids(), ::testing::IsEmpty());
}

TEST_P(DatabaseContract, ReadCannotWrite) {
  EXPECT_THAT(database().Read([&](SqlTransaction& sql) { return Insert(sql, 1, "a"); }),
              Fails(ErrorCode::kInternal));
  EXPECT_THAT(Ids(), ::testing::IsEmpty());
}

TEST_P(DatabaseContract, ExecuteCountsChangedRows) {
  ASSERT_OK(database().Write([&](SqlTransaction& sql) -> Status {
    for (int64_t id = 0; id < 5; ++id) {
      TARN_RETURN_IF_ERROR(Insert(sql, id, "x"));
    }
    EXPECT_THAT(sql.Execute("UPDATE rows SET text = 'y' WHERE id < ?1", {int64_t{3}}),
                IsOkAndHolds(3));
    EXPECT_THAT(sql.Execute("UPDATE rows SET text = 'y' WHERE id < ?1", {int64_t{-3}}),
                IsOkAndHolds(0));
    EXPECT_THAT(sql.Execute("DELETE FROM rows", {}), IsOkAndHolds(5));
    EXPECT_THAT(sql.Execute("CREATE TABLE other (id BIGINT)", {}), IsOkAndHolds(0));
    return {};
  }));
}

TEST_P(DatabaseContract, QueriesNestAndStopEarly) {
  for (int64_t id = 0; id < 4; ++id) {
    ASSERT_OK(Write(id, "x", Durability::kLazy));
  }
  int pairs = 0;
  ASSERT_OK(database().Read([&](SqlTransaction& sql) {
    return sql.Query("SELECT id FROM rows ORDER BY id", {}, [&](const SqlRow&) {
      // The same text again, while the outer query runs.
      const Status inner = sql.Query("SELECT id FROM rows ORDER BY id", {}, [&](const SqlRow& row) {
        ++pairs;
        return Result<RowAction>(row.Int(0) == 2 ? RowAction::kStop : RowAction::kContinue);
      });
      return inner.ok() ? Result<RowAction>(RowAction::kContinue) : Result<RowAction>(inner);
    });
  }));
  EXPECT_EQ(pairs, 12);
}

TEST_P(DatabaseContract, AFailureOfTheRowCallbackIsReturned) {
  ASSERT_OK(Write(1, "x", Durability::kLazy));
  EXPECT_THAT(database().Read([&](SqlTransaction& sql) {
    return sql.Query("SELECT id FROM rows", {}, [](const SqlRow&) {
      return Result<RowAction>(Status::NotFound("seen enough"));
    });
  }),
              FailsWith(ErrorCode::kNotFound, "seen enough"));
}

TEST_P(DatabaseContract, AReadSeesOneState) {
  ASSERT_OK(Write(1, "x", Durability::kDurable));
  ASSERT_OK(database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const std::vector<int64_t> before, IdsIn(sql));
    std::thread other([&] { EXPECT_OK(Write(2, "y", Durability::kDurable)); });
    other.join();
    TARN_ASSIGN_OR_RETURN(const std::vector<int64_t> after, IdsIn(sql));
    EXPECT_EQ(before, after);
    return {};
  }));
  EXPECT_THAT(Ids(), ::testing::ElementsAre(1, 2));
}

TEST_P(DatabaseContract, AWriteInsideAWriteIsRefused) {
  Status inner;
  ASSERT_OK(database().Write([&](SqlTransaction&) -> Status {
    inner = Write(1, "x", Durability::kDurable);
    return {};
  }));
  EXPECT_THAT(inner, Fails(ErrorCode::kInternal));
}

TEST_P(DatabaseContract, ManyThreadsLoseNothingAndFailuresTouchNoNeighbour) {
  constexpr int kThreads = 16;
  constexpr int kEach = 30;
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kEach; ++i) {
        const int64_t id = thread * 1000 + i;
        const Status status = database().Write(
            [&](SqlTransaction& sql) -> Status {
              TARN_RETURN_IF_ERROR(Insert(sql, id, "x"));
              return i % 3 == 2 ? Status::Conflict("on purpose") : Status();
            },
            i % 2 == 0 ? Durability::kDurable : Durability::kLazy);
        failed += status.ok() ? 0 : 1;
        if (status.ok()) {
          EXPECT_THAT(Ids(), ::testing::Contains(id));
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failed, kThreads * kEach / 3);
  EXPECT_EQ(Ids().size(), kThreads * kEach * 2 / 3);
}

TEST_P(DatabaseContract, OfManyThreadsOneInsertsAKey) {
  std::atomic<int> won{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 50; ++thread) {
    threads.emplace_back([&] {
      const Status status = Write(7, "x", Durability::kDurable);
      EXPECT_TRUE(status.ok() || status.code() == ErrorCode::kAlreadyExists) << status.ToString();
      won += status.ok() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(won, 1);
}

TEST_P(DatabaseContract, MigratingAgainKeepsTheRows) {
  ASSERT_OK(Write(1, "x", Durability::kDurable));
  ASSERT_OK(database().Migrate(Steps()));
  EXPECT_THAT(Ids(), ::testing::ElementsAre(1));
}

TEST_P(DatabaseContract, AFailedMigrationLeavesNothing) {
  std::vector<Migration> steps = Steps();
  steps.push_back({.room = "contract", .version = 3, .sql = "CREATE TABLE third (id BIGINT)"});
  steps.push_back({.room = "contract", .version = 4, .sql = "CREATE GARBAGE"});
  EXPECT_FALSE(database().Migrate(steps).ok());
  steps.back().sql = "CREATE TABLE fourth (id BIGINT)";
  EXPECT_OK(database().Migrate(steps));
}

TEST_P(DatabaseContract, TextsAreComparedByTheirBytes) {
  ASSERT_OK(Write(1, "b", Durability::kLazy));
  ASSERT_OK(Write(2, "B", Durability::kLazy));
  ASSERT_OK(Write(3, "ä", Durability::kLazy));
  std::vector<int64_t> ids;
  ASSERT_OK(database().Read([&](SqlTransaction& sql) {
    return sql.Query("SELECT id FROM rows WHERE text > ?1 ORDER BY text", {std::string("A")},
                     [&](const SqlRow& row) {
                       ids.push_back(row.Int(0));
                       return Result<RowAction>(RowAction::kContinue);
                     });
  }));
  EXPECT_THAT(ids, ::testing::ElementsAre(2, 1, 3));
}

TEST_P(DatabaseContract, AChangeThatReturnsRowsIsUndoneAlone) {
  ASSERT_OK(Write(1, "a", Durability::kLazy));
  ASSERT_OK(database().Write([&](SqlTransaction& sql) -> Status {
    const auto insert = [&](int64_t id) {
      return sql.Query("INSERT INTO rows (id, text) VALUES (?1, 'x') RETURNING id", {id},
                       [&](const SqlRow& row) {
                         EXPECT_EQ(row.Int(0), id);
                         return Result<RowAction>(RowAction::kContinue);
                       });
    };
    TARN_RETURN_IF_ERROR(insert(2));
    EXPECT_THAT(insert(1), Fails(ErrorCode::kAlreadyExists));
    return insert(3);
  }));
  EXPECT_THAT(Ids(), ::testing::ElementsAre(1, 2, 3));
}

TEST_P(DatabaseContract, ANewerSchemaIsRefused) {
  std::vector<Migration> steps = Steps();
  steps.pop_back();
  EXPECT_THAT(database().Migrate(steps),
              FailsWith(ErrorCode::kFailedPrecondition, "room contract is at 2"));
}

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

class PostgresUnderTest final : public DatabaseUnderTest {
 public:
  PostgresUnderTest() {
    Result<std::unique_ptr<PostgresDatabase>> opened =
        PostgresDatabase::Open({.url = SharedPostgres().NewSchema()});
    EXPECT_THAT(opened, IsOk());
    database_ = std::move(opened).value();
  }
  Database& database() override { return *database_; }

 private:
  std::unique_ptr<PostgresDatabase> database_;
};

INSTANTIATE_TEST_SUITE_P(
    Databases, DatabaseContract,
    ::testing::Values(DatabaseMaker{"sqlite", [] { return std::make_unique<SqliteUnderTest>(); }},
                      DatabaseMaker{"faulty", [] { return std::make_unique<FaultyUnderTest>(); }},
                      DatabaseMaker{"postgres",
                                    [] { return std::make_unique<PostgresUnderTest>(); }}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace tarn::metastore
