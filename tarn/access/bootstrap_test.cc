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

}  // namespace
}  // namespace tarn::access
