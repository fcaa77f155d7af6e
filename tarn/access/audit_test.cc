#include "tarn/access/audit.h"

#include "tarn/access/schema.h"
#include "test/support/matchers.h"
#include "test/support/metastore_fixture.h"

namespace tarn::access {
namespace {

using metastore::SqlTransaction;

class AuditTest : public MetastoreFixture {
 protected:
  void SetUp() override { OpenWith({Migrations()}); }
};

TEST_F(AuditTest, RecordsComeBackInOrderAndInPages) {
  AuditRecord change{.time = clock_.Now(),
                     .user_id = "u",
                     .token_id = "t",
                     .action = "dataset.commit",
                     .resource = "ri.foundry.main.dataset.x",
                     .outcome = AuditOutcome::kDone,
                     .details = "{}"};
  AuditRecord denial{
      .time = clock_.Now(), .action = "dataset.read", .outcome = AuditOutcome::kDenied};
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
  EXPECT_THAT(
      In<std::vector<AuditRecord>>([&](SqlTransaction& sql) { return ListAudit(sql, 0, 10); }),
      IsOkAndHolds(::testing::IsEmpty()));
}

}  // namespace
}  // namespace tarn::access
