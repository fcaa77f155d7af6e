#include "tarn/access/audit.h"

#include "tarn/access/directory.h"
#include "tarn/access/schema.h"
#include "tarn/access/token.h"
#include "tarn/metastore/sqlite_database.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::access {
namespace {

using metastore::SqlTransaction;
using std::chrono::seconds;

class AuditTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<metastore::SqliteDatabase>> opened =
        metastore::SqliteDatabase::Open({.path = folder_.path() / "m.db"});
    ASSERT_THAT(opened, IsOk());
    database_ = std::move(opened).value();
    ASSERT_OK(database_->Migrate(Migrations()));
  }

  // Runs `function`, which returns Result<T>, in a write.
  template <typename T, typename Function>
  Result<T> In(const Function& function) {
    std::optional<Result<T>> result;
    const Status status = database_->Write(
        [&](SqlTransaction& sql) {
          result = function(sql);
          return result->status();
        },
        metastore::Durability::kLazy);
    if (!status.ok()) {
      return status;
    }
    return *std::move(result);
  }
  Status Do(const metastore::SqlFunction& function) {
    return database_->Write(function, metastore::Durability::kLazy);
  }

  ManualClock clock_{FromMicros(1'000'000'000)};
  UuidGenerator ids_{clock_};
  Directory directory_{ids_, clock_};
  Tokens tokens_{ids_, clock_};
  TemporaryDirectory folder_;
  std::unique_ptr<metastore::SqliteDatabase> database_;
};

TEST_F(AuditTest, RecordsComeBackInOrderAndInPages) {
  AuditRecord change{.time = clock_.Now(),
                     .user_id = "u",
                     .token_id = "t",
                     .action = "dataset.commit",
                     .resource = "ri.foundry.main.dataset.x",
                     .outcome = AuditOutcome::kDone,
                     .details = "{}"};
  AuditRecord denial{.time = clock_.Now(), .action = "dataset.read", .outcome = AuditOutcome::kDenied};
  ASSERT_OK(Do([&](SqlTransaction& sql) { return AppendAudit(sql, change); }));
  ASSERT_OK(AppendAudit(*database_, denial));
  const auto list = [&](int64_t after, int64_t limit) {
    return In<std::vector<AuditRecord>>(
        [&](SqlTransaction& sql) { return ListAudit(sql, after, limit); });
  };
  change.id = 1;
  denial.id = 2;
  EXPECT_THAT(list(0, 10), IsOkAndHolds(::testing::ElementsAre(change, denial)));
  EXPECT_THAT(list(0, 1), IsOkAndHolds(::testing::ElementsAre(change)));
  EXPECT_THAT(list(1, 10), IsOkAndHolds(::testing::ElementsAre(denial)));
}

TEST_F(AuditTest, ARecordSharesTheFateOfItsChange) {
  EXPECT_THAT(Do([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(AppendAudit(sql, {.action = "x"}));
    return Status::Conflict("rolled back");
  }),
              Fails(ErrorCode::kConflict));
  EXPECT_THAT(In<std::vector<AuditRecord>>(
                  [&](SqlTransaction& sql) { return ListAudit(sql, 0, 10); }),
              IsOkAndHolds(::testing::IsEmpty()));
}

}  // namespace
}  // namespace tarn::access
