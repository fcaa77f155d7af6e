#include "tarn/access/grant.h"

#include "tarn/access/directory.h"
#include "tarn/access/schema.h"
#include "test/support/matchers.h"
#include "test/support/metastore_fixture.h"

namespace tarn::access {
namespace {

using metastore::SqlTransaction;

class GrantTest : public MetastoreFixture {
 protected:
  void SetUp() override { OpenWith({Migrations()}); }

  User MakeUser(const std::string& name, UserKind kind = UserKind::kPerson) {
    const Result<User> user = In<User>([&](SqlTransaction& sql) {
      return directory_.CreateUser(sql, {.username = name, .kind = kind});
    });
    EXPECT_THAT(user, IsOk());
    return user.ok() ? *user : User();
  }

  Directory directory_{ids_, clock_};
};

TEST_F(GrantTest, GrantsAreAddedListedAndRemoved) {
  const User alice = MakeUser("alice");
  const Rid rid = Rid::Make("foundry", "dataset", ids_.NextV4());
  const Grant viewer{.resource = rid, .principal_id = alice.id, .role = Role::kViewer};
  const Grant owner{.resource = rid, .principal_id = alice.id, .role = Role::kOwner};
  const Grant everyone{
      .resource = rid, .principal_id = std::string(kEveryone), .role = Role::kDiscoverer};
  for (const Grant& grant : {owner, viewer, everyone, viewer}) {
    ASSERT_OK(Do([&](SqlTransaction& sql) { return AddGrant(sql, grant, "x", clock_.Now()); }));
  }
  const auto list = [&] {
    return In<std::vector<Grant>>([&](SqlTransaction& sql) { return ListGrants(sql, rid); });
  };
  EXPECT_THAT(list(), IsOkAndHolds(::testing::UnorderedElementsAre(viewer, owner, everyone)));
  for (int again = 0; again < 2; ++again) {
    ASSERT_OK(Do([&](SqlTransaction& sql) { return RemoveGrant(sql, owner); }));
  }
  EXPECT_THAT(list(), IsOkAndHolds(::testing::UnorderedElementsAre(viewer, everyone)));
  ASSERT_OK(Do([&](SqlTransaction& sql) { return RemoveGrantsOn(sql, rid); }));
  EXPECT_THAT(list(), IsOkAndHolds(::testing::IsEmpty()));
}

TEST_F(GrantTest, BadGrantsAreRefused) {
  const Rid rid = Rid::Make("foundry", "dataset", ids_.NextV4());
  const auto add = [&](const Grant& grant) {
    return Do([&](SqlTransaction& sql) { return AddGrant(sql, grant, "x", clock_.Now()); });
  };
  const Status nobody = add({.resource = rid, .principal_id = "nobody", .role = Role::kViewer});
  EXPECT_EQ(nobody.reason(), "PrincipalNotFound");
  EXPECT_EQ(nobody.details(), R"({"principalId":"nobody"})");
  EXPECT_THAT(add({.resource = rid, .principal_id = std::string(kEveryone)}),
              Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(add({.principal_id = std::string(kEveryone), .role = Role::kViewer}),
              Fails(ErrorCode::kInvalidArgument));
}

TEST_F(GrantTest, EveryChangeRenewsTheStamp) {
  const auto stamp = [&] {
    return In<int64_t>([](SqlTransaction& sql) { return ReadAccessStamp(sql); }).value();
  };
  const int64_t before = stamp();
  EXPECT_EQ(stamp(), before);
  ASSERT_OK(Do([&](SqlTransaction& sql) {
    return AddGrant(sql,
                    {.resource = Rid::Make("foundry", "dataset", ids_.NextV4()),
                     .principal_id = std::string(kEveryone),
                     .role = Role::kViewer},
                    "x", clock_.Now());
  }));
  EXPECT_NE(stamp(), before);
}

}  // namespace
}  // namespace tarn::access
