#include "tarn/metastore/faulty_database.h"

#include "tarn/metastore/sqlite_database.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::metastore {
namespace {

class FaultyDatabaseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<SqliteDatabase>> opened =
        SqliteDatabase::Open({.path = folder_.path() / "m.db"});
    ASSERT_THAT(opened, IsOk());
    inner_ = std::move(opened).value();
    ASSERT_OK(inner_->Migrate(
        {{.room = "test", .version = 1, .sql = "CREATE TABLE rows (id BIGINT PRIMARY KEY)"}}));
    faulty_ = std::make_unique<FaultyDatabase>(*inner_);
  }

  // Two statements: with start and commit, four operations.
  Status WriteTwo() {
    return faulty_->Write([](SqlTransaction& sql) -> Status {
      TARN_RETURN_IF_ERROR(sql.Execute("INSERT INTO rows VALUES (1)", {}));
      TARN_RETURN_IF_ERROR(sql.Execute("INSERT INTO rows VALUES (2)", {}));
      return {};
    });
  }

  int64_t Count() {
    int64_t count = -1;
    EXPECT_OK(inner_->Read([&](SqlTransaction& sql) {
      return sql.Query("SELECT count(*) FROM rows", {}, [&](const SqlRow& row) {
        count = row.Int(0);
        return Result<RowAction>(RowAction::kStop);
      });
    }));
    return count;
  }

  TemporaryDirectory folder_;
  std::unique_ptr<SqliteDatabase> inner_;
  std::unique_ptr<FaultyDatabase> faulty_;
};

TEST_F(FaultyDatabaseTest, EveryOperationOfAWriteFailsWithNothingChanged) {
  for (int64_t n = 1; n <= 4; ++n) {
    faulty_->FailAt(n, Fault::kBefore);
    EXPECT_THAT(WriteTwo(), Fails(ErrorCode::kUnavailable)) << n;
    EXPECT_TRUE(faulty_->fired()) << n;
    EXPECT_EQ(Count(), 0) << n;
  }
  faulty_->FailAt(5, Fault::kBefore);
  EXPECT_OK(WriteTwo());
  EXPECT_FALSE(faulty_->fired());
  EXPECT_EQ(Count(), 2);
}

TEST_F(FaultyDatabaseTest, ALostReplyOfTheCommitLeavesTheRows) {
  for (int64_t n = 1; n <= 3; ++n) {
    faulty_->FailAt(n, Fault::kAfter);
    EXPECT_THAT(WriteTwo(), Fails(ErrorCode::kUnavailable)) << n;
    EXPECT_EQ(Count(), 0) << n;
  }
  faulty_->FailAt(4, Fault::kAfter);
  EXPECT_THAT(WriteTwo(), Fails(ErrorCode::kCommitStateUnknown));
  EXPECT_EQ(Count(), 2);
}

TEST_F(FaultyDatabaseTest, ASwallowedFaultFailsAllTheSame) {
  faulty_->FailAt(2, Fault::kBefore);
  EXPECT_THAT(faulty_->Write([](SqlTransaction& sql) -> Status {
    EXPECT_FALSE(sql.Execute("INSERT INTO rows VALUES (1)", {}).ok());
    return {};
  }),
              Fails(ErrorCode::kUnavailable));
  EXPECT_EQ(Count(), 0);
}

TEST_F(FaultyDatabaseTest, ReadsFailToo) {
  for (const Fault fault : {Fault::kBefore, Fault::kAfter}) {
    for (int64_t n = 1; n <= 2; ++n) {
      faulty_->FailAt(n, fault);
      EXPECT_THAT(faulty_->Read([](SqlTransaction& sql) {
        return sql.Query("SELECT 1", {},
                         [](const SqlRow&) { return Result<RowAction>(RowAction::kContinue); });
      }),
                  Fails(ErrorCode::kUnavailable));
    }
  }
  EXPECT_GT(faulty_->operation_count(), 0);
}

}  // namespace
}  // namespace tarn::metastore
