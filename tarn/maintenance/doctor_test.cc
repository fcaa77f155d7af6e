#include "tarn/maintenance/doctor.h"

#include <arrow/api.h>

#include "tarn/maintenance/maintenance_fixture.h"

namespace tarn::maintenance {

namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DoctorTest : public MaintenanceFixture {};

TEST_F(DoctorTest, AHealthyTableHasNoFinding) {
  ASSERT_OK_AND_ASSIGN(const Rid table, home_.Make("orders"));
  EXPECT_THAT(DiagnoseTable(home_.catalog(), table),
              IsOkAndHolds(Contains(Field(&Finding::severity, Severity::kNote))));
  ASSERT_OK(home_.Append(table, "SELECT 1::BIGINT AS id, 'a' AS p"));
  EXPECT_THAT(DiagnoseTable(home_.catalog(), table), IsOkAndHolds(IsEmpty()));
}

TEST_F(DoctorTest, SlowTablesAreTold) {
  ASSERT_OK_AND_ASSIGN(const Rid table,
                       home_.Make("orders", 2, false, {{"write.delete.isolation-level", "none"}}));
  for (int i = 0; i < 12; ++i) {
    ASSERT_OK(home_.Append(table, "SELECT range AS id, 'a' AS p FROM range(4)"));
  }
  for (size_t i = 0; i < 12; ++i) {
    ASSERT_OK(DeleteRows(table, i, {0, 1}));
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<Finding> findings, DiagnoseTable(home_.catalog(), table));
  EXPECT_EQ(findings.front().severity, Severity::kError);
  EXPECT_THAT(findings, Contains(Field(&Finding::finding, HasSubstr("12 of 12 data files"))));
  EXPECT_THAT(findings, Contains(Field(&Finding::finding, HasSubstr("24 of 48 rows"))));
  EXPECT_THAT(findings, Contains(Field(&Finding::finding, HasSubstr("isolation-level"))));
}

TEST_F(DoctorTest, MissingAndChangedFilesAreErrors) {
  ASSERT_OK_AND_ASSIGN(const Rid table, home_.Make("orders"));
  ASSERT_OK(home_.Append(table, "SELECT 1::BIGINT AS id, 'a' AS p"));
  ASSERT_OK(home_.Append(table, "SELECT 2::BIGINT AS id, 'a' AS p"));
  const std::vector<iceberg::FileScanTask> tasks = Plan(table);
  ASSERT_OK_AND_ASSIGN(const std::string gone,
                       storage::KeyOf(home_.store(), tasks[0].file.file_path));
  ASSERT_OK(home_.store().Delete(gone));
  ASSERT_OK_AND_ASSIGN(const std::string cut,
                       storage::KeyOf(home_.store(), tasks[1].file.file_path));
  ASSERT_OK(StatusOf(WriteObject(home_.store(), cut, "cut", storage::WriteMode::kOverwrite)));
  ASSERT_OK_AND_ASSIGN(const std::vector<Finding> findings, DiagnoseTable(home_.catalog(), table));
  EXPECT_THAT(findings, Contains(Field(&Finding::finding, HasSubstr(tasks[0].file.file_path))));
  EXPECT_THAT(findings, Contains(Field(&Finding::finding, HasSubstr("has 3 bytes"))));
}

}  // namespace

}  // namespace tarn::maintenance
