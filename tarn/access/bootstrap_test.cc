#include "tarn/access/bootstrap.h"

#include "tarn/access/grant.h"
#include "tarn/access/schema.h"
#include "test/support/matchers.h"
#include "test/support/metastore_fixture.h"

namespace tarn::access {
namespace {

using metastore::SqlTransaction;

class BootstrapTest : public MetastoreFixture {
 protected:
  void SetUp() override { OpenWith({Migrations()}); }

  Result<std::optional<Bootstrapped>> Boot() {
    return In<std::optional<Bootstrapped>>(
        [&](SqlTransaction& sql) { return Bootstrap(sql, root_, ids_, clock_); });
  }

  const Rid root_ = Rid::Parse("ri.compass.main.folder.0").value();

  Directory directory_{ids_, clock_};
  Tokens tokens_{ids_, clock_};
};

TEST_F(BootstrapTest, TheFirstStartMakesAnAdminAndLaterOnesNothing) {
  ASSERT_OK_AND_ASSIGN(const std::optional<Bootstrapped> first, Boot());
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->admin.username, "admin");
  ASSERT_OK_AND_ASSIGN(const Principal principal, In<Principal>([&](SqlTransaction& sql) {
                         return tokens_.Authenticate(sql, first->token.text);
                       }));
  EXPECT_EQ(principal.user_id, first->admin.id);
  EXPECT_EQ(principal.scopes, ScopeSet::All());
  EXPECT_THAT(In<std::vector<Grant>>([&](SqlTransaction& sql) { return ListGrants(sql, root_); }),
              IsOkAndHolds(::testing::ElementsAre(Grant{
                  .resource = root_, .principal_id = first->admin.id, .role = Role::kOwner})));
  ASSERT_OK_AND_ASSIGN(const std::optional<Bootstrapped> second, Boot());
  EXPECT_FALSE(second.has_value());
  ASSERT_OK(Do([&](SqlTransaction& sql) { return directory_.DeleteUser(sql, first->admin.id); }));
  ASSERT_OK_AND_ASSIGN(const std::optional<Bootstrapped> third, Boot());
  EXPECT_FALSE(third.has_value()) << "deleting the admin must not bring a new one";
}

TEST_F(BootstrapTest, TheOrganizationCanBeReadAndRenamed) {
  EXPECT_THAT(In<Organization>([&](SqlTransaction& sql) { return GetOrganization(sql); }),
              Fails(ErrorCode::kNotFound));
  ASSERT_OK(Boot());
  ASSERT_OK_AND_ASSIGN(Organization organization,
                       In<Organization>([&](SqlTransaction& sql) { return GetOrganization(sql); }));
  EXPECT_TRUE(organization.rid.ToString().starts_with("ri.multipass..organization."));
  EXPECT_THAT(Uuid::Parse(organization.marking_id), IsOk());
  const auto rename = [&](const std::string& name) {
    return Do([&](SqlTransaction& sql) {
      return ReplaceOrganization(sql, organization.rid, name, "about");
    });
  };
  EXPECT_THAT(rename(""), Fails(ErrorCode::kInvalidArgument));
  ASSERT_OK(rename("Ours"));
  organization.name = "Ours";
  organization.description = "about";
  EXPECT_THAT(In<Organization>([&](SqlTransaction& sql) { return GetOrganization(sql); }),
              IsOkAndHolds(organization));
  EXPECT_THAT(Do([&](SqlTransaction& sql) { return ReplaceOrganization(sql, root_, "x", ""); }),
              Fails(ErrorCode::kNotFound));
}

}  // namespace
}  // namespace tarn::access
