#include "tarn/tree/labels.h"

#include "tarn/access/schema.h"
#include "tarn/tree/tree.h"
#include "test/support/matchers.h"
#include "test/support/metastore_fixture.h"

namespace tarn::tree {
namespace {

using metastore::SqlTransaction;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LabelsTest : public MetastoreFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OpenWith({access::Migrations(), Migrations()}));
    ASSERT_OK_AND_ASSIGN(
        project_, In<Rid>([&](SqlTransaction& sql) { return tree_.Bootstrap(sql, "admin"); }));
  }
  std::vector<std::string> Labels(const Rid& rid, LabelKind kind) {
    const auto labels = In<std::vector<std::string>>(
        [&](SqlTransaction& sql) { return ListLabels(sql, rid, kind); });
    EXPECT_THAT(labels, IsOk());
    return labels.ok() ? *labels : std::vector<std::string>();
  }
  Status Add(const Rid& rid, LabelKind kind, const std::string& label) {
    return Do([&](SqlTransaction& sql) { return AddLabel(sql, rid, kind, label); });
  }
  std::vector<Look> Looks() {
    const auto looks =
        In<std::vector<Look>>([&](SqlTransaction& sql) { return ListLooks(sql, "u"); });
    EXPECT_THAT(looks, IsOk());
    return looks.ok() ? *looks : std::vector<Look>();
  }

  Tree tree_{ids_, clock_};
  Rid project_;
};

TEST_F(LabelsTest, LabelsAreSetsPerKind) {
  ASSERT_OK(Add(project_, LabelKind::kMarking, "b"));
  ASSERT_OK(Add(project_, LabelKind::kMarking, "a"));
  ASSERT_OK(Add(project_, LabelKind::kMarking, "a"));
  ASSERT_OK(Add(project_, LabelKind::kOrganization, "o"));
  EXPECT_THAT(Labels(project_, LabelKind::kMarking), ElementsAre("a", "b"));
  EXPECT_THAT(Labels(project_, LabelKind::kOrganization), ElementsAre("o"));
  EXPECT_THAT(Labels(RootRid(), LabelKind::kMarking), IsEmpty());
  ASSERT_OK(Do(
      [&](SqlTransaction& sql) { return RemoveLabel(sql, project_, LabelKind::kMarking, "a"); }));
  EXPECT_THAT(Labels(project_, LabelKind::kMarking), ElementsAre("b"));
  EXPECT_THAT(Add(project_, LabelKind::kMarking, ""), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(Add(project_, LabelKind::kMarking, std::string(257, 'x')),
              Fails(ErrorCode::kInvalidArgument));
}

TEST_F(LabelsTest, ReferencesAndSettingsAreReplaced) {
  const Reference reference{.resource = RootRid(),
                            .name = "n",
                            .external = true,
                            .imported_by = "u",
                            .imported = clock_.Now()};
  Reference renamed = reference;
  renamed.name = "m";
  ASSERT_OK(Do([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(AddReference(sql, project_, reference));
    TARN_RETURN_IF_ERROR(AddReference(sql, project_, renamed));
    EXPECT_THAT(ListReferences(sql, project_), IsOkAndHolds(std::vector<Reference>{renamed}));
    TARN_RETURN_IF_ERROR(RemoveReference(sql, project_, reference.resource));
    EXPECT_THAT(ListReferences(sql, project_), IsOkAndHolds(std::vector<Reference>{}));
    EXPECT_THAT(ReadSettings(sql, project_), IsOkAndHolds(std::string("{}")));
    TARN_RETURN_IF_ERROR(WriteSettings(sql, project_, "{\"a\":1}"));
    TARN_RETURN_IF_ERROR(WriteSettings(sql, project_, "{\"a\":2}"));
    EXPECT_THAT(ReadSettings(sql, project_), IsOkAndHolds(std::string("{\"a\":2}")));
    return Status::Ok();
  }));
}

TEST_F(LabelsTest, TheNewestLooksAreKept) {
  const auto look = [&](int i) {
    return Do([&](SqlTransaction& sql) {
      clock_.Advance(std::chrono::seconds(1));
      const Result<Rid> rid = Rid::Parse("ri.foundry.main.dataset." + std::to_string(i));
      return RecordLook(sql, "u", {.resource = *rid, .time = clock_.Now()});
    });
  };
  for (int i = 0; i < 120; ++i) {
    ASSERT_OK(look(i));
  }
  ASSERT_OK(look(50));
  const std::vector<Look> looks = Looks();
  ASSERT_EQ(looks.size(), 100U);
  EXPECT_EQ(looks[0].resource.locator(), "50");
  EXPECT_EQ(looks[1].resource.locator(), "119");
}

TEST_F(LabelsTest, PermanentDeletionForgetsThem) {
  ASSERT_OK(Add(project_, LabelKind::kMarking, "a"));
  ASSERT_OK(Do([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(WriteSettings(sql, project_, "{\"a\":1}"));
    TARN_RETURN_IF_ERROR(RecordLook(sql, "u", {.resource = project_, .time = clock_.Now()}));
    TARN_RETURN_IF_ERROR(tree_.Trash(sql, project_, "u"));
    return StatusOf(tree_.PermanentlyDelete(sql, project_));
  }));
  EXPECT_THAT(Labels(project_, LabelKind::kMarking), IsEmpty());
  EXPECT_THAT(Looks(), IsEmpty());
}

}  // namespace
}  // namespace tarn::tree
