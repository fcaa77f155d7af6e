#include "tarn/access/organization.h"

#include "tarn/access/bootstrap.h"
#include "tarn/access/schema.h"
#include "test/support/matchers.h"
#include "test/support/metastore_fixture.h"

namespace tarn::access {
namespace {

using metastore::SqlTransaction;

class OrganizationTest : public MetastoreFixture {
 protected:
  void SetUp() override { OpenWith({Migrations()}); }

  Status Boot() {
    return Do([&](SqlTransaction& sql) {
      return StatusOf(Bootstrap(sql, Rid::Make("compass", "folder", {}), ids_, clock_));
    });
  }
  Result<Organization> First() {
    return In<Organization>([&](SqlTransaction& sql) { return GetOrganization(sql); });
  }
  Result<Organization> Make(const std::string& name) {
    return In<Organization>([&](SqlTransaction& sql) {
      return CreateOrganization(
          sql, {.rid = {}, .name = name, .description = "d", .marking_id = {}}, ids_, clock_);
    });
  }
  Status Replace(const Organization& organization) {
    return Do([&](SqlTransaction& sql) { return ReplaceOrganization(sql, organization); });
  }
};

TEST_F(OrganizationTest, TheFirstIsMadeAtTheStart) {
  EXPECT_THAT(First(), Fails(ErrorCode::kNotFound));
  ASSERT_OK(Boot());
  ASSERT_OK_AND_ASSIGN(const Organization first, First());
  EXPECT_TRUE(first.rid.ToString().starts_with("ri.multipass..organization."));
  EXPECT_THAT(Uuid::Parse(first.marking_id), IsOk());
  clock_.Advance(std::chrono::seconds(1));
  ASSERT_OK_AND_ASSIGN(const Organization second, Make("Second"));
  EXPECT_THAT(First(), IsOkAndHolds(first));
  EXPECT_THAT(
      In<std::vector<Organization>>([&](SqlTransaction& sql) { return ListOrganizations(sql); }),
      IsOkAndHolds(std::vector<Organization>{first, second}));
}

TEST_F(OrganizationTest, NamesAreUnique) {
  ASSERT_OK(Boot());
  ASSERT_OK_AND_ASSIGN(Organization made, Make("Ours"));
  EXPECT_THAT(Make("Ours"), Fails(ErrorCode::kAlreadyExists));
  EXPECT_THAT(Make(""), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(Make(std::string(257, 'x')), Fails(ErrorCode::kInvalidArgument));
  made.name = "Default";
  EXPECT_THAT(Replace(made), Fails(ErrorCode::kAlreadyExists));
  made.name = "";
  EXPECT_THAT(Replace(made), Fails(ErrorCode::kInvalidArgument));
  made.name = "Theirs";
  made.host = "data.example.org";
  ASSERT_OK(Replace(made));
  EXPECT_THAT(In<Organization>([&](SqlTransaction& sql) { return GetOrganization(sql, made.rid); }),
              IsOkAndHolds(made));
  made.rid = Rid::Make("multipass", "organization", {});
  EXPECT_THAT(Replace(made), Fails(ErrorCode::kNotFound));
}

TEST_F(OrganizationTest, GroupsBelongToSome) {
  ASSERT_OK(Boot());
  Directory directory(ids_, clock_);
  ASSERT_OK_AND_ASSIGN(const Group group, In<Group>([&](SqlTransaction& sql) {
                         return directory.CreateGroup(sql, "g", "");
                       }));
  const auto details = [&] {
    return In<GroupDetails>([&](SqlTransaction& sql) { return GetGroupDetails(sql, group.id); });
  };
  const auto set = [&](const GroupDetails& wanted) {
    return Do([&](SqlTransaction& sql) { return SetGroupDetails(sql, group.id, wanted); });
  };
  ASSERT_OK_AND_ASSIGN(const Organization first, First());
  EXPECT_THAT(details(), IsOkAndHolds(GroupDetails{.organizations = {first.rid}}));
  ASSERT_OK_AND_ASSIGN(const Organization second, Make("Second"));
  const GroupDetails wanted{.organizations = {second.rid}, .attributes_json = R"({"a":["b"]})"};
  ASSERT_OK(set(wanted));
  EXPECT_THAT(details(), IsOkAndHolds(wanted));
  EXPECT_THAT(set({}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(set({.organizations = {Rid::Make("multipass", "organization", {})}}),
              Fails(ErrorCode::kNotFound));
  EXPECT_THAT(details(), IsOkAndHolds(wanted));
  ASSERT_OK(Do([&](SqlTransaction& sql) { return directory.DeleteGroup(sql, group.id); }));
}

}  // namespace
}  // namespace tarn::access
