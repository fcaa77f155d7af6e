#include "tarn/metastore/postgres_database.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/matchers.h"
#include "test/support/postgres_server.h"

namespace tarn::metastore {
namespace {

using std::chrono::milliseconds;
using Verdict = TcpRelay::Verdict;

class PostgresDatabaseTest : public ::testing::Test {
 protected:
  static std::unique_ptr<PostgresDatabase> Open(const PostgresOptions& options) {
    Result<std::unique_ptr<PostgresDatabase>> opened = PostgresDatabase::Open(options);
    EXPECT_THAT(opened, IsOk());
    return opened.ok() ? std::move(opened).value() : nullptr;
  }

  static std::vector<Migration> Steps() {
    return {{.room = "test",
             .version = 1,
             .sql = "CREATE TABLE counters (id INTEGER PRIMARY KEY, text TEXT, count INTEGER NOT "
                    "NULL)"}};
  }

  /// A database with the tables of Steps.
  static std::unique_ptr<PostgresDatabase> OpenFilled(const PostgresOptions& options) {
    std::unique_ptr<PostgresDatabase> database = Open(options);
    EXPECT_OK(database->Migrate(Steps()));
    return database;
  }

  static Status Insert(Database& database, int64_t id) {
    return database.Write([&](SqlTransaction& sql) {
      return sql.Execute("INSERT INTO counters (id, count) VALUES (?1, 0)", {id}).status();
    });
  }

  static Result<std::vector<int64_t>> Ids(Database& database) {
    std::vector<int64_t> ids;
    TARN_RETURN_IF_ERROR(database.Read([&](SqlTransaction& sql) {
      return sql.Query("SELECT id FROM counters ORDER BY id", {}, [&](const SqlRow& row) {
        ids.push_back(row.Int(0));
        return Result<RowAction>(RowAction::kContinue);
      });
    }));
    return ids;
  }

  static std::string OneText(Database& database, const std::string& sql_text,
                             const SqlArguments& arguments = {}) {
    std::string text;
    EXPECT_OK(database.Read([&](SqlTransaction& sql) {
      return sql.Query(sql_text, arguments, [&](const SqlRow& row) {
        text += (text.empty() ? "" : " ") + std::string(row.Text(0));
        return Result<RowAction>(RowAction::kContinue);
      });
    }));
    return text;
  }

  static void EndBackends() {
    SharedPostgres().Run(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = "
        "'tarn'");
  }
};

TEST_F(PostgresDatabaseTest, UrlsThatCannotBeOpened) {
  for (const char* url : {"postgresql://u:hush@localhost:99999999/x?nonsense=1", "host=localhost",
                          "postgresql://u:hush@[::1/x", ""}) {
    const auto opened = PostgresDatabase::Open({.url = url});
    EXPECT_THAT(opened, Fails(ErrorCode::kInvalidArgument)) << url;
    EXPECT_THAT(opened.status().message(), ::testing::Not(::testing::HasSubstr("hush")));
  }
  const auto closed =
      PostgresDatabase::Open({.url = "postgresql://user:hush@127.0.0.1:1/metastore"});
  EXPECT_THAT(closed, FailsWith(ErrorCode::kUnavailable, "postgresql://127.0.0.1:1/metastore"));
  EXPECT_THAT(closed.status().message(), ::testing::Not(::testing::HasSubstr("hush")));
  EXPECT_THAT(PostgresDatabase::Open(
                  {.url = "postgresql://tarn@127.0.0.1:" + std::to_string(SharedPostgres().port()) +
                          "/postgres?options=-csearch_path%3Dmissing"}),
              FailsWith(ErrorCode::kFailedPrecondition, "no schema of the search path"));
}

TEST_F(PostgresDatabaseTest, PasswordsInUrls) {
  EXPECT_TRUE(HoldsPassword("postgresql://u:p@h/d"));
  EXPECT_TRUE(HoldsPassword("postgres://u@h/d?password=p"));
  EXPECT_FALSE(HoldsPassword("postgresql://u@h/d"));
  EXPECT_FALSE(HoldsPassword("sqlite:/a"));
  EXPECT_OK(CheckPostgresUrl("postgresql://u:p@h:5432,i/d?target_session_attrs=read-write"));
  EXPECT_THAT(CheckPostgresUrl("postgresql://u:p@h/d?no=1"), Fails(ErrorCode::kInvalidArgument));
}

TEST_F(PostgresDatabaseTest, ASchemaOfAnotherProgramIsRefused) {
  const std::string url = SharedPostgres().NewSchema();
  SharedPostgres().Run("CREATE TABLE " + url.substr(url.rfind('D') + 1) + ".theirs (id BIGINT)");
  EXPECT_THAT(PostgresDatabase::Open({.url = url}),
              FailsWith(ErrorCode::kFailedPrecondition, "another program, as theirs"));
}

TEST_F(PostgresDatabaseTest, TypesAreThoseOfSqlite) {
  const auto database = OpenFilled({.url = SharedPostgres().NewSchema()});
  ASSERT_OK(database->Write([](SqlTransaction& sql) -> Status {
    for (const char* text : {"b", "B", "a", "ä", ""}) {
      TARN_RETURN_IF_ERROR(sql.Execute("INSERT INTO counters (text, count) VALUES (?1, ?2)",
                                       {std::string(text), int64_t{1} << 40})
                               .status());
    }
    return {};
  }));
  EXPECT_EQ(OneText(*database, "SELECT text FROM counters ORDER BY text"), "B a b ä")
      << "bytes, not a language; the empty one comes first";
  EXPECT_EQ(OneText(*database, "SELECT sum(count) FROM counters"),
            std::to_string(5 * (int64_t{1} << 40)));
  EXPECT_EQ(
      OneText(*database, "SELECT count(*) FROM counters WHERE count = ?1", {int64_t{1} << 40}),
      "5");
  ASSERT_OK(database->Read([](SqlTransaction& sql) {
    return sql.Query("SELECT 1 = 1, ?1 < 0.0, count(*), 2.75 FROM counters", {0.5},
                     [&](const SqlRow& row) {
                       EXPECT_EQ(row.Int(0), 1);
                       EXPECT_EQ(row.Text(0), "1");
                       EXPECT_EQ(row.Int(1), 0);
                       EXPECT_EQ(row.Real(2), 5.0);
                       EXPECT_EQ(row.Int(3), 2);
                       return Result<RowAction>(RowAction::kContinue);
                     });
  }));
}

TEST_F(PostgresDatabaseTest, TextsThatPostgresqlCannotHoldAreRefused) {
  const auto database = OpenFilled({.url = SharedPostgres().NewSchema()});
  ASSERT_OK(database->Write([](SqlTransaction& sql) -> Status {
    const auto insert = [&](std::string text) {
      return sql.Execute("INSERT INTO counters (text, count) VALUES (?1, 0)", {std::move(text)});
    };
    EXPECT_THAT(insert(std::string("a\0b", 3)),
                FailsWith(ErrorCode::kInvalidArgument, "no NUL: argument 1"));
    EXPECT_THAT(insert("\xFF"), FailsWith(ErrorCode::kInvalidArgument, "UTF-8"));
    return insert("good").status();
  }));
  EXPECT_EQ(OneText(*database, "SELECT text FROM counters"), "good");
}

TEST_F(PostgresDatabaseTest, ManyRowsAreReadAndLeft) {
  const auto database = Open({.url = SharedPostgres().NewSchema()});
  int64_t sum = 0;
  int64_t inner = 0;
  ASSERT_OK(database->Read([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(
        sql.Query("SELECT * FROM generate_series(1, 100000)", {}, [&](const SqlRow& row) {
          sum += row.Int(0);
          return Result<RowAction>(RowAction::kContinue);
        }));
    return sql.Query("SELECT * FROM generate_series(1, 1000)", {}, [&](const SqlRow& row) {
      const int64_t outer = row.Int(0);
      const Status status =
          sql.Query("SELECT * FROM generate_series(1, 1000)", {}, [&](const SqlRow& other) {
            ++inner;
            return Result<RowAction>(other.Int(0) == outer ? RowAction::kStop
                                                           : RowAction::kContinue);
          });
      return !status.ok()   ? Result<RowAction>(status)
             : outer == 100 ? Result<RowAction>(RowAction::kStop)
                            : Result<RowAction>(RowAction::kContinue);
    });
  }));
  EXPECT_EQ(sum, int64_t{100'000} * 100'001 / 2);
  EXPECT_EQ(inner, 100 * 101 / 2);
}

TEST_F(PostgresDatabaseTest, MoreStatementsThanAreKept) {
  const auto database = OpenFilled({.url = SharedPostgres().NewSchema(), .statements_max = 3});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(OneText(*database, "SELECT " + std::to_string(i)), std::to_string(i));
    ASSERT_OK(Insert(*database, i));
  }
}

TEST_F(PostgresDatabaseTest, ServersThatStartTogetherMakeOneSchema) {
  const std::string url = SharedPostgres().NewSchema();
  std::vector<std::thread> servers;
  for (int i = 0; i < 6; ++i) {
    servers.emplace_back([&] {
      const auto database = OpenFilled({.url = url});
      EXPECT_THAT(database->IsEmpty(), IsOkAndHolds(false));
    });
  }
  for (std::thread& server : servers) {
    server.join();
  }
  const auto database = Open({.url = url});
  EXPECT_EQ(OneText(*database, "SELECT count(*) FROM tarn_migrations"), "1");
  EXPECT_OK(database->CheckTables());
}

TEST_F(PostgresDatabaseTest, NoServerLosesWhatAnotherCounted) {
  const std::string url = SharedPostgres().NewSchema();
  const auto first = OpenFilled({.url = url});
  const auto second = Open({.url = url});
  ASSERT_OK(Insert(*first, 1));
  constexpr int kEach = 50;
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      Database& database = i % 2 == 0 ? *first : *second;
      for (int n = 0; n < kEach; ++n) {
        EXPECT_OK(database.Write([&](SqlTransaction& sql) -> Status {
          int64_t count = 0;
          TARN_RETURN_IF_ERROR(
              sql.Query("SELECT count FROM counters WHERE id = 1", {}, [&](const SqlRow& row) {
                count = row.Int(0);
                return Result<RowAction>(RowAction::kContinue);
              }));
          return sql.Execute("UPDATE counters SET count = ?1 WHERE id = 1", {count + 1}).status();
        }));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(OneText(*first, "SELECT count FROM counters"), std::to_string(6 * kEach));
}

TEST_F(PostgresDatabaseTest, ConnectionsThatWereEndedWhileIdleAreMadeAgain) {
  const auto database = OpenFilled({.url = SharedPostgres().NewSchema()});
  ASSERT_THAT(Ids(*database), IsOk());
  EndBackends();
  EXPECT_THAT(Ids(*database), IsOk());
  EndBackends();
  EXPECT_OK(Insert(*database, 1));
  EXPECT_EQ(database->statistics().reconnects, 1);
  EXPECT_THAT(Ids(*database), IsOkAndHolds(std::vector<int64_t>{1}));
}

TEST_F(PostgresDatabaseTest, AConnectionThatEndsInsideAFunctionLeavesNothing) {
  const auto database = OpenFilled({.url = SharedPostgres().NewSchema()});
  EXPECT_THAT(database->Write([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(
        sql.Execute("INSERT INTO counters (id, count) VALUES (1, 0)", {}).status());
    EndBackends();
    (void)sql.Execute("INSERT INTO counters (id, count) VALUES (2, 0)", {});
    return {};
  }),
              Fails(ErrorCode::kUnavailable));
  EXPECT_THAT(database->Read([&](SqlTransaction& sql) {
    EndBackends();
    return sql.Query("SELECT 1", {},
                     [](const SqlRow&) { return Result<RowAction>(RowAction::kContinue); });
  }),
              Fails(ErrorCode::kUnavailable));
  EXPECT_OK(Insert(*database, 3));
  EXPECT_THAT(Ids(*database), IsOkAndHolds(std::vector<int64_t>{3}));
}

// Breaks the connection on which the n-th COMMIT is sent.
TcpRelay::Script AtCommit(std::atomic<int>& commits, int at, Verdict verdict) {
  return [&commits, at, verdict](std::string_view sent) {
    return sent.find("; COMMIT") != std::string_view::npos && ++commits == at ? verdict
                                                                              : Verdict::kPass;
  };
}

TEST_F(PostgresDatabaseTest, TheOutcomeOfALostCommitIsFound) {
  for (const Verdict verdict : {Verdict::kDrop, Verdict::kLoseReply}) {
    std::atomic<int> commits{-100};
    TcpRelay relay(SharedPostgres().port(), AtCommit(commits, 1, verdict));
    const auto database = OpenFilled({.url = SharedPostgres().NewSchema(relay.port())});
    ASSERT_OK(Insert(*database, 1));
    commits = 0;
    const Status second = Insert(*database, 2);
    EXPECT_OK(Insert(*database, 3));
    if (verdict == Verdict::kDrop) {
      EXPECT_THAT(second, FailsWith(ErrorCode::kUnavailable, "nothing was changed"));
      EXPECT_THAT(Ids(*database), IsOkAndHolds(std::vector<int64_t>{1, 3}));
    } else {
      EXPECT_OK(second);
      EXPECT_THAT(Ids(*database), IsOkAndHolds(std::vector<int64_t>{1, 2, 3}));
    }
  }
}

TEST_F(PostgresDatabaseTest, AnOutcomeThatCannotBeFoundIsUnknownAndNothingIsReadBefore) {
  std::atomic<bool> away{false};
  std::atomic<bool> armed{false};
  TcpRelay relay(SharedPostgres().port(), [&](std::string_view sent) {
    if (armed && sent.find("; COMMIT") != std::string_view::npos) {
      away = true;
      return Verdict::kLoseReply;
    }
    return away ? Verdict::kDrop : Verdict::kPass;
  });
  const auto database = OpenFilled(
      {.url = SharedPostgres().NewSchema(relay.port()), .doubt_wait_max = milliseconds(200)});
  armed = true;
  EXPECT_THAT(Insert(*database, 1), Fails(ErrorCode::kCommitStateUnknown));
  EXPECT_THAT(Ids(*database), Fails(ErrorCode::kUnavailable));
  EXPECT_THAT(Insert(*database, 2), Fails(ErrorCode::kUnavailable));
  armed = false;
  away = false;
  EXPECT_THAT(Ids(*database), IsOkAndHolds(std::vector<int64_t>{1}));
  EXPECT_OK(Insert(*database, 2));
}

TEST_F(PostgresDatabaseTest, ACrashOfTheDatabaseKeepsWhatWasAcknowledged) {
  PostgresServer& server = SharedPostgres();
  const auto database = OpenFilled({.url = server.NewSchema()});
  for (int64_t id = 1; id <= 5; ++id) {
    ASSERT_OK(Insert(*database, id));
  }
  server.Crash();
  EXPECT_THAT(Insert(*database, 6), Fails(ErrorCode::kUnavailable));
  EXPECT_THAT(Ids(*database), Fails(ErrorCode::kUnavailable));
  server.Start();
  EXPECT_OK(Insert(*database, 7));
  EXPECT_THAT(Ids(*database), IsOkAndHolds(std::vector<int64_t>{1, 2, 3, 4, 5, 7}));
}

TEST_F(PostgresDatabaseTest, ADeadlockWithAForeignSessionChangesNothing) {
  PostgresServer& server = SharedPostgres();
  const std::string url = server.NewSchema();
  const std::string table = url.substr(url.rfind('D') + 1) + ".counters";
  const auto database = OpenFilled({.url = url});
  ASSERT_OK(Insert(*database, 1));
  ASSERT_OK(Insert(*database, 2));
  const auto touch = [](SqlTransaction& sql, int64_t id) {
    return sql.Execute("UPDATE counters SET count = count + 1 WHERE id = ?1", {id}).status();
  };
  std::thread foreign;
  EXPECT_THAT(database->Write([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(touch(sql, 2));
    foreign = std::thread([&] {
      server.Run("SET deadlock_timeout = '60s'; BEGIN; UPDATE " + table +
                 " SET count = 7 WHERE id = 1; UPDATE " + table +
                 " SET count = 7 WHERE id = 2; "
                 "COMMIT");
    });
    while (server.Run("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0") {
      std::this_thread::sleep_for(milliseconds(5));
    }
    return touch(sql, 1);
  }),
              FailsWith(ErrorCode::kUnavailable, "nothing was changed, try again"));
  foreign.join();
  EXPECT_OK(database->Write([&](SqlTransaction& sql) { return touch(sql, 1); }));
  EXPECT_EQ(OneText(*database, "SELECT count FROM counters ORDER BY id"), "8 7");
}

TEST_F(PostgresDatabaseTest, ASerializationFailureChangesNothing) {
  PostgresServer& server = SharedPostgres();
  const std::string url = server.NewSchema();
  const std::string schema = url.substr(url.rfind('D') + 1);
  const auto database = OpenFilled({.url = url});
  ASSERT_OK(Insert(*database, 1));
  server.Run("CREATE FUNCTION " + schema +
             ".fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'could not "
             "serialize' USING ERRCODE = '40001'; END $$; CREATE TRIGGER t BEFORE DELETE ON " +
             schema + ".counters FOR EACH ROW EXECUTE FUNCTION " + schema + ".fail()");
  EXPECT_THAT(database->Write([](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(
        sql.Execute("INSERT INTO counters (id, count) VALUES (2, 0)", {}).status());
    (void)sql.Execute("DELETE FROM counters WHERE id = 1", {});
    return {};
  }),
              FailsWith(ErrorCode::kUnavailable, "SQLSTATE 40001"));
  EXPECT_THAT(Ids(*database), IsOkAndHolds(std::vector<int64_t>{1}));
}

TEST_F(PostgresDatabaseTest, OneThatSleepsInItsTurnLosesIt) {
  const std::string url = SharedPostgres().NewSchema();
  const auto sleeper = OpenFilled({.url = url, .idle_transaction_max = milliseconds(200)});
  const auto other = Open({.url = url});
  Status waited;
  std::thread next;
  EXPECT_THAT(sleeper->Write([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(
        sql.Execute("INSERT INTO counters (id, count) VALUES (1, 0)", {}).status());
    next = std::thread([&] { waited = Insert(*other, 2); });
    std::this_thread::sleep_for(milliseconds(600));
    return {};
  }),
              Fails(ErrorCode::kUnavailable));
  next.join();
  EXPECT_OK(waited);
  EXPECT_OK(Insert(*sleeper, 3));
  EXPECT_THAT(Ids(*sleeper), IsOkAndHolds(std::vector<int64_t>{2, 3}));
}

TEST_F(PostgresDatabaseTest, ATurnThatDoesNotComeChangesNothing) {
  const std::string url = SharedPostgres().NewSchema();
  const auto holder = OpenFilled({.url = url});
  const auto waiter = Open({.url = url, .turn_wait_max = milliseconds(100)});
  Status waited;
  EXPECT_OK(holder->Write([&](SqlTransaction&) -> Status {
    waited = Insert(*waiter, 1);
    return {};
  }));
  EXPECT_THAT(waited, FailsWith(ErrorCode::kUnavailable, "holds the lock"));
  EXPECT_OK(Insert(*waiter, 2));
  EXPECT_THAT(Ids(*holder), IsOkAndHolds(std::vector<int64_t>{2}));
}

}  // namespace
}  // namespace tarn::metastore
