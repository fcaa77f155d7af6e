#include "tarn/metastore/sqlite_database.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <future>
#include <random>
#include <set>
#include <thread>

#include <sqlite3.h>

#include "tarn/metastore/migrations.h"
#include "test/support/child_process.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

// The child of the kill test starts threads; ThreadSanitizer refuses that unless told otherwise.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace tarn::metastore {
namespace {

// A file layer over SQLite's default one whose write-ahead log can be told to fail.
struct LogFaults {
  std::atomic<int> syncs{0};
  std::atomic<int> sync_code{SQLITE_OK};  // Returned by every sync.
  std::atomic<int> writes_left{-1};       // Writes that succeed; then write_code. -1 = all.
  std::atomic<int> write_code{SQLITE_OK};
};

LogFaults& Faults() {
  static LogFaults faults;
  return faults;
}

const sqlite3_io_methods* real_methods = nullptr;

int SyncLog(sqlite3_file* file, int flags) {
  Faults().syncs.fetch_add(1);
  const int code = Faults().sync_code;
  return code != SQLITE_OK ? code : real_methods->xSync(file, flags);
}

int WriteLog(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
  int left = Faults().writes_left;
  if (left == 0) {
    return Faults().write_code;
  }
  if (left > 0) {
    Faults().writes_left = left - 1;
  }
  return real_methods->xWrite(file, bytes, size, offset);
}

int OpenFile(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  static sqlite3_io_methods patched;
  auto* inner = static_cast<sqlite3_vfs*>(vfs->pAppData);
  const int code = inner->xOpen(inner, name, file, flags, out_flags);
  if (code == SQLITE_OK && (flags & SQLITE_OPEN_WAL) != 0) {
    if (real_methods == nullptr) {
      real_methods = file->pMethods;
      patched = *real_methods;
      patched.xSync = SyncLog;
      patched.xWrite = WriteLog;
    }
    file->pMethods = &patched;
  }
  return code;
}

void RegisterFaultyFiles() {
  static sqlite3_vfs faulty;
  if (faulty.zName == nullptr) {
    sqlite3_vfs* inner = sqlite3_vfs_find(nullptr);
    faulty = *inner;
    faulty.pNext = nullptr;
    faulty.zName = "faulty";
    faulty.pAppData = inner;
    faulty.xOpen = OpenFile;
    ASSERT_EQ(sqlite3_vfs_register(&faulty, 0), SQLITE_OK);
  }
}

class SqliteDatabaseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RegisterFaultyFiles();
    ResetFaults();
    options_ = {.path = folder_.path() / "metastore.db", .vfs = "faulty"};
  }
  void TearDown() override { ResetFaults(); }

  static void ResetFaults() {
    Faults().sync_code = SQLITE_OK;
    Faults().write_code = SQLITE_OK;
    Faults().writes_left = -1;
  }

  void Open() {
    database_.reset();
    Result<std::unique_ptr<SqliteDatabase>> opened = SqliteDatabase::Open(options_);
    ASSERT_THAT(opened, IsOk());
    database_ = std::move(opened).value();
    ASSERT_OK(database_->Migrate({{.room = "test",
                                   .version = 1,
                                   .sql = "CREATE TABLE rows (id BIGINT PRIMARY KEY, "
                                          "text TEXT)"}}));
  }

  static Status InsertIn(SqlTransaction& sql, int64_t id, size_t size = 10) {
    return sql.Execute("INSERT INTO rows (id, text) VALUES (?1, ?2)", {id, std::string(size, 'x')})
        .status();
  }
  Status Insert(int64_t id, Durability durability = Durability::kDurable, size_t size = 10) {
    return database_->Write([&](SqlTransaction& sql) { return InsertIn(sql, id, size); },
                            durability);
  }

  std::set<int64_t> Ids() {
    std::set<int64_t> ids;
    EXPECT_OK(database_->Read([&](SqlTransaction& sql) {
      return sql.Query("SELECT id FROM rows", {}, [&](const SqlRow& row) {
        ids.insert(row.Int(0));
        return Result<RowAction>(RowAction::kContinue);
      });
    }));
    return ids;
  }

  // Runs `inserts` as one round: the writer is held until all of them are in the queue.
  std::vector<Status> InsertTogether(const std::vector<std::function<Status()>>& inserts) {
    std::promise<void> held;
    std::promise<void> release;
    std::thread holder([&] {
      EXPECT_OK(database_->Write([&](SqlTransaction&) -> Status {
        held.set_value();
        release.get_future().wait();
        return {};
      }));
    });
    held.get_future().wait();
    std::vector<Status> results(inserts.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < inserts.size(); ++i) {
      threads.emplace_back([&, i] { results[i] = inserts[i](); });
      // One after the other, so that the order in the queue is that of `inserts`.
      while (database_->statistics().waiting < static_cast<int64_t>(i) + 1) {
        std::this_thread::yield();
      }
    }
    release.set_value();
    holder.join();
    for (std::thread& thread : threads) {
      thread.join();
    }
    return results;
  }

  TemporaryDirectory folder_;
  SqliteOptions options_;
  std::unique_ptr<SqliteDatabase> database_;
};

TEST_F(SqliteDatabaseTest, RowsSurviveReopening) {
  Open();
  ASSERT_OK(Insert(1));
  ASSERT_OK(Insert(2, Durability::kLazy));
  Open();
  EXPECT_EQ(Ids(), (std::set<int64_t>{1, 2}));
  EXPECT_OK(database_->CheckIntegrity());
}

TEST_F(SqliteDatabaseTest, ASecondServerOnOneHomeIsRefused) {
  Open();
  SqliteOptions other = options_;
  other.path = folder_.path() / "other.db";
  const Result<std::unique_ptr<SqliteDatabase>> second = SqliteDatabase::Open(other);
  EXPECT_THAT(second, FailsWith(ErrorCode::kFailedPrecondition, folder_.path().string()));
  EXPECT_THAT(second,
              FailsWith(ErrorCode::kFailedPrecondition, "process " + std::to_string(::getpid())));
  database_.reset();
  EXPECT_THAT(SqliteDatabase::Open(other), IsOk());
}

TEST_F(SqliteDatabaseTest, AFileThatIsNoDatabaseIsReportedWithAdvice) {
  std::ofstream(options_.path) << std::string(8192, 'g');
  EXPECT_THAT(SqliteDatabase::Open(options_),
              FailsWith(ErrorCode::kCorruption, "restore a backup"));
}

TEST_F(SqliteDatabaseTest, ADatabaseOfAnotherProgramIsLeftAlone) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(options_.path.c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle, "CREATE TABLE theirs (id)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(handle);
  EXPECT_THAT(SqliteDatabase::Open(options_),
              FailsWith(ErrorCode::kFailedPrecondition, "another program"));
}

TEST_F(SqliteDatabaseTest, ADamagedPageIsFound) {
  Open();
  for (int64_t id = 0; id < 50; ++id) {
    ASSERT_OK(Insert(id, Durability::kLazy, 2000));
  }
  database_.reset();
  {
    std::fstream file(options_.path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(0, std::ios::end);
    const auto size = static_cast<int64_t>(file.tellp());
    for (int64_t offset = 4096 * 4; offset < size; offset += 4096) {
      file.seekp(offset);
      file << std::string(64, '\xEE');
    }
  }
  ASSERT_OK_AND_ASSIGN(database_, SqliteDatabase::Open(options_));
  EXPECT_THAT(database_->CheckIntegrity(), FailsWith(ErrorCode::kCorruption, "restore a backup"));
  EXPECT_THAT(database_->Read([](SqlTransaction& sql) {
    return sql.Query("SELECT max(length(text)) FROM rows", {},
                     [](const SqlRow&) { return Result<RowAction>(RowAction::kContinue); });
  }),
              Fails(ErrorCode::kCorruption));
}

TEST_F(SqliteDatabaseTest, BadOptionsAreRefused) {
  options_.queue_max = 0;
  EXPECT_THAT(SqliteDatabase::Open(options_), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(SqliteDatabase::Open({}), Fails(ErrorCode::kInvalidArgument));
}

TEST_F(SqliteDatabaseTest, AMissingFolderIsUnavailable) {
  options_.path = folder_.path() / "no" / "metastore.db";
  EXPECT_THAT(SqliteDatabase::Open(options_), Fails(ErrorCode::kUnavailable));
}

TEST_F(SqliteDatabaseTest, ARoundIsOneDurableGroupAndOneLazyGroup) {
  Open();
  const SqliteStatistics before = database_->statistics();
  std::vector<std::function<Status()>> inserts;
  for (int64_t id = 0; id < 30; ++id) {
    inserts.emplace_back(
        [this, id] { return Insert(id, id % 3 == 0 ? Durability::kLazy : Durability::kDurable); });
  }
  for (const Status& status : InsertTogether(inserts)) {
    EXPECT_OK(status);
  }
  EXPECT_EQ(Ids().size(), 30U);
  const SqliteStatistics after = database_->statistics();
  EXPECT_EQ(after.durable_groups - before.durable_groups, 2) << "the holder's and the round's";
  EXPECT_EQ(after.lazy_groups - before.lazy_groups, 1);
  EXPECT_EQ(after.requests - before.requests, 31);
}

TEST_F(SqliteDatabaseTest, OnlyDurableWritesSyncTheLog) {
  Open();
  ASSERT_OK(Insert(0));
  const int before = Faults().syncs;
  for (int64_t id = 1; id < 20; ++id) {
    ASSERT_OK(Insert(id, Durability::kLazy));
  }
  EXPECT_EQ(Faults().syncs, before);
  ASSERT_OK(Insert(20, Durability::kDurable));
  EXPECT_GT(Faults().syncs, before);
}

TEST_F(SqliteDatabaseTest, AFailureInAGroupTouchesNoNeighbour) {
  Open();
  const std::vector<Status> results = InsertTogether({
      [&] { return Insert(1); },
      [&] { return Insert(1); },
      [&] { return Insert(2); },
  });
  EXPECT_OK(results[0]);
  EXPECT_THAT(results[1], Fails(ErrorCode::kAlreadyExists));
  EXPECT_OK(results[2]);
  EXPECT_EQ(Ids(), (std::set<int64_t>{1, 2}));
}

TEST_F(SqliteDatabaseTest, AFullQueueIsRefusedAfterTheWait) {
  options_.queue_max = 2;
  options_.queue_wait_max = std::chrono::milliseconds(20);
  Open();
  std::promise<void> held;
  std::promise<void> release;
  std::thread holder([&] {
    EXPECT_OK(database_->Write([&](SqlTransaction&) -> Status {
      held.set_value();
      release.get_future().wait();
      return {};
    }));
  });
  held.get_future().wait();
  std::thread third([&] { EXPECT_OK(Insert(3)); });
  std::thread fourth([&] { EXPECT_OK(Insert(4)); });
  while (database_->statistics().waiting < 2) {
    std::this_thread::yield();
  }
  EXPECT_THAT(Insert(5), Fails(ErrorCode::kResourceExhausted));
  release.set_value();
  holder.join();
  third.join();
  fourth.join();
  EXPECT_EQ(Ids(), (std::set<int64_t>{3, 4}));
}

TEST_F(SqliteDatabaseTest, AFailedFsyncLeavesTheOutcomeInDoubtAndStopsWriting) {
  Open();
  ASSERT_OK(Insert(1));
  Faults().sync_code = SQLITE_IOERR_FSYNC;
  const std::vector<Status> results = InsertTogether({
      [&] { return Insert(2); },
      [&] { return Insert(3); },
  });
  // The holder's commit wrote nothing, so it needed no fsync.
  EXPECT_THAT(results[0], Fails(ErrorCode::kCommitStateUnknown));
  EXPECT_THAT(results[1], Fails(ErrorCode::kCommitStateUnknown));
  Faults().sync_code = SQLITE_OK;
  EXPECT_THAT(Insert(4), FailsWith(ErrorCode::kUnavailable, "restarted"));
  EXPECT_THAT(Insert(5, Durability::kLazy), Fails(ErrorCode::kUnavailable));
  EXPECT_EQ(Ids(), (std::set<int64_t>{1})) << "reads go on";
  Open();
  const std::set<int64_t> ids = Ids();
  EXPECT_TRUE(ids == (std::set<int64_t>{1}) || ids == (std::set<int64_t>{1, 2, 3}));
  EXPECT_OK(Insert(6));
}

TEST_F(SqliteDatabaseTest, AFullDiskChangesNothingAtAnyWriteOfTheLog) {
  Open();
  ASSERT_OK(Insert(0));
  std::set<int64_t> expected = {0};
  int64_t id = 1;
  for (int writes = 0;; ++writes, ++id) {
    ASSERT_LT(writes, 200);
    Faults().write_code = SQLITE_FULL;
    Faults().writes_left = writes;
    const std::vector<Status> results = InsertTogether({
        [&] { return Insert(id * 10, Durability::kDurable, 9000); },
        [&] { return Insert(id * 10 + 1, Durability::kDurable, 9000); },
    });
    ResetFaults();
    if (results[0].ok() && results[1].ok()) {
      EXPECT_GT(writes, 3);
      break;
    }
    EXPECT_THAT(results[0], Fails(ErrorCode::kUnavailable)) << writes;
    EXPECT_THAT(results[1], Fails(ErrorCode::kUnavailable)) << writes;
    EXPECT_EQ(Ids(), expected) << writes;
    ASSERT_OK(Insert(-id)) << "space was freed";
    expected.insert(-id);
  }
  EXPECT_OK(database_->CheckIntegrity());
}

TEST_F(SqliteDatabaseTest, ADiskThatFillsInsideAStatementTakesTheGroupWithIt) {
  options_.cache_bytes = 16 << 10;  // Forces pages out to the log before the commit.
  Open();
  Faults().write_code = SQLITE_FULL;
  Faults().writes_left = 20;
  const auto insert_many = [&] {
    return database_->Write([&](SqlTransaction& sql) -> Status {
      for (int64_t id = 100; id < 400; ++id) {
        // A room that swallows the failure must not have half its rows committed.
        (void)InsertIn(sql, id, 3000);
      }
      return {};
    });
  };
  const std::vector<Status> results = InsertTogether({
      [&] { return Insert(1); },
      insert_many,
  });
  EXPECT_THAT(results[0], Fails(ErrorCode::kUnavailable));
  EXPECT_THAT(results[1], Fails(ErrorCode::kUnavailable));
  ResetFaults();
  EXPECT_EQ(Ids(), std::set<int64_t>());
  EXPECT_OK(Insert(2));
  EXPECT_EQ(Ids(), (std::set<int64_t>{2}));
}

TEST_F(SqliteDatabaseTest, TheLogStaysBoundedUnderSteadyReaders) {
  options_.log_pages_max = 10;
  Open();
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      while (!done) {
        Ids();
      }
    });
  }
  for (int64_t id = 0; id < 150; ++id) {
    ASSERT_OK(Insert(id, Durability::kLazy, 3000));
  }
  done = true;
  for (std::thread& reader : readers) {
    reader.join();
  }
  EXPECT_GT(database_->statistics().checkpoints, 5);
  // Never copied back, it would hold at least two pages per row.
  EXPECT_LT(std::filesystem::file_size(folder_.path() / "metastore.db-wal"), 120U * 4096);
  EXPECT_EQ(Ids().size(), 150U);
}

TEST_F(SqliteDatabaseTest, AFullStatementCacheStartsOver) {
  options_.statements_max = 1;
  Open();
  for (int64_t id = 0; id < 5; ++id) {
    ASSERT_OK(database_->Write([&](SqlTransaction& sql) -> Status {
      TARN_RETURN_IF_ERROR(InsertIn(sql, id));
      return sql
          .Execute("UPDATE rows SET text = ?1 WHERE id = " + std::to_string(id), {std::string()})
          .status();
    }));
  }
  EXPECT_EQ(Ids().size(), 5U);
}

TEST_F(SqliteDatabaseTest, ManyReadersShareFewConnections) {
  options_.readers_max = 2;
  Open();
  ASSERT_OK(Insert(1));
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 16; ++reader) {
    readers.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(Ids().size(), 1U);
      }
    });
  }
  for (std::thread& reader : readers) {
    reader.join();
  }
}

TEST_F(SqliteDatabaseTest, AFolderOfSomebodyElseIsUnavailable) {
  Open();
  database_.reset();
  EXPECT_TRUE(PassesUnprivileged([&] {
    EXPECT_THAT(SqliteDatabase::Open(options_),
                FailsWith(ErrorCode::kUnavailable, folder_.path().string()));
  }));
}

TEST_F(SqliteDatabaseTest, ACrashBeforeTheCommitLosesItAndOneAfterDoesNot) {
  options_.vfs.clear();
  int64_t id = 1;
  for (const char* point : {"metastore-before-commit", "metastore-after-commit"}) {
    Open();
    database_.reset();
    EXPECT_TRUE(DiesAtCrashPoint(point, [&] {
      // The schema is there, so the insert is the first commit.
      ASSERT_OK_AND_ASSIGN(database_, SqliteDatabase::Open(options_));
      EXPECT_OK(Insert(id));
    })) << point;
    ++id;
  }
  Open();
  EXPECT_EQ(Ids(), (std::set<int64_t>{2}));
}

// Commits rows in the forked child and prints each identifier once it is acknowledged.
[[noreturn]] void CommitUntilKilled(const SqliteOptions& options, int64_t first_id, int pipe) {
  Result<std::unique_ptr<SqliteDatabase>> opened = SqliteDatabase::Open(options);
  if (!opened.ok()) {
    ::_exit(1);
  }
  std::atomic<int64_t> next{first_id};
  const auto commit = [&] {
    while (true) {
      const int64_t id = next.fetch_add(1);
      const Status status = (*opened)->Write(
          [&](SqlTransaction& sql) {
            return sql.Execute("INSERT INTO rows (id, text) VALUES (?1, 'x')", {id}).status();
          },
          id % 4 == 0 ? Durability::kLazy : Durability::kDurable);
      if (!status.ok() || ::write(pipe, &id, sizeof(id)) != sizeof(id)) {
        ::_exit(2);
      }
    }
  };
  std::thread second(commit);
  std::thread third(commit);
  commit();
  ::_exit(3);
}

TEST_F(SqliteDatabaseTest, WhatWasAcknowledgedSurvivesKill9) {
  options_.vfs.clear();
  options_.log_pages_max = 30;  // So that some kills hit while the log is copied back.
  Open();
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::set<int64_t> acknowledged;
  for (int64_t round = 1; round <= 6; ++round) {
    database_.reset();
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(pipe[0]);
      CommitUntilKilled(options_, round * 1'000'000, pipe[1]);
    }
    ::close(pipe[1]);
    const auto kill_after = std::uniform_int_distribution<int>(1, 150)(random);
    int64_t id = 0;
    for (int received = 0; ::read(pipe[0], &id, sizeof(id)) == sizeof(id); ++received) {
      acknowledged.insert(id);
      if (received == kill_after) {
        ::kill(child, SIGKILL);
      }
    }
    ::close(pipe[0]);
    int how = 0;
    ASSERT_EQ(::waitpid(child, &how, 0), child);
    ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) << how;
    Open();
    const std::set<int64_t> ids = Ids();
    EXPECT_TRUE(std::includes(ids.begin(), ids.end(), acknowledged.begin(), acknowledged.end()));
    EXPECT_LE(ids.size(), acknowledged.size() + 3 * static_cast<size_t>(round))
        << "at most one unacknowledged row per thread and kill";
    EXPECT_OK(database_->CheckIntegrity());
  }
}

TEST_F(SqliteDatabaseTest, AnUpgradeKeepsTheOldFile) {
  const Migration first{
      .room = "test", .version = 1, .sql = "CREATE TABLE rows (id BIGINT PRIMARY KEY, text TEXT)"};
  const Migration second{.room = "test", .version = 2, .sql = "DROP TABLE rows"};
  const std::string copy = options_.path.string() + ".before-upgrade";
  Open();
  ASSERT_OK(Insert(1));
  EXPECT_THAT(database_->BackUpBefore({first}), IsOkAndHolds(false));
  EXPECT_FALSE(std::filesystem::exists(copy));
  EXPECT_THAT(database_->BackUpBefore({{.room = "test", .version = 1, .sql = "SELECT 1"}}),
              Fails(ErrorCode::kFailedPrecondition));

  std::ofstream(copy + ".part") << "of an attempt that was cut short";
  EXPECT_THAT(database_->BackUpBefore({first, second}), IsOkAndHolds(true));
  EXPECT_FALSE(std::filesystem::exists(copy + ".part"));
  ASSERT_OK(Insert(2));
  EXPECT_THAT(database_->BackUpBefore({first, second}), IsOkAndHolds(true));
  ASSERT_OK(database_->Migrate({first, second}));
  EXPECT_THAT(database_->BackUpBefore({first, second}), IsOkAndHolds(false));

  // The way back: the copy in the place of the file.
  database_.reset();
  for (const char* suffix : {"-wal", "-shm"}) {
    std::filesystem::remove(options_.path.string() + suffix);
  }
  std::filesystem::rename(copy, options_.path);
  Open();
  EXPECT_EQ(Ids(), (std::set<int64_t>{1, 2}));
}

TEST_F(SqliteDatabaseTest, AnUpgradeWithoutItsCopyDoesNotBegin) {
  Open();
  const std::string copy = options_.path.string() + ".before-upgrade";
  std::filesystem::create_directory(copy);
  std::ofstream(copy + "/in-the-way") << "x";
  EXPECT_THAT(database_->BackUpBefore({{.room = "test",
                                        .version = 1,
                                        .sql = "CREATE TABLE rows (id BIGINT PRIMARY KEY, "
                                               "text TEXT)"},
                                       {.room = "test", .version = 2, .sql = "SELECT 1"}}),
              FailsWith(ErrorCode::kUnavailable, "before-upgrade"));
}

TEST_F(SqliteDatabaseTest, AnEmptyFileNeedsNoCopy) {
  ASSERT_OK_AND_ASSIGN(database_, SqliteDatabase::Open(options_));
  EXPECT_THAT(database_->BackUpBefore(Migrations()), IsOkAndHolds(false));
}

}  // namespace
}  // namespace tarn::metastore
