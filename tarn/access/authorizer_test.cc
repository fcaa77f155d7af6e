#include "tarn/access/authorizer.h"

#include "tarn/access/directory.h"
#include "tarn/access/schema.h"
#include "test/support/matchers.h"
#include "test/support/metastore_fixture.h"

namespace tarn::access {
namespace {

using metastore::SqlTransaction;
using std::chrono::seconds;

class AuthorizerTest : public MetastoreFixture {
 protected:
  void SetUp() override { OpenWith({Migrations()}); }

  User MakeUser(const std::string& name, UserKind kind = UserKind::kPerson) {
    const Result<User> user = In<User>([&](SqlTransaction& sql) {
      return directory_.CreateUser(sql, {.username = name, .kind = kind});
    });
    EXPECT_THAT(user, IsOk());
    return user.ok() ? *user : User();
  }

  Group MakeGroup(const std::string& name) {
    const Result<Group> group = In<Group>(
        [&](SqlTransaction& sql) { return directory_.CreateGroup(sql, name, "about " + name); });
    EXPECT_THAT(group, IsOk());
    return group.ok() ? *group : Group();
  }
  Status Add(const std::string& group, const std::string& member,
             std::optional<Timestamp> expiration = std::nullopt) {
    return Do(
        [&](SqlTransaction& sql) { return directory_.AddMember(sql, group, member, expiration); });
  }

  static Principal PrincipalOf(const User& user) {
    return {.user_id = user.id, .username = user.username, .scopes = ScopeSet::All()};
  }
  Rid MakeRid() { return Rid::Make("foundry", "dataset", ids_.NextV4()); }
  Role RoleOf(const Principal& who, const std::vector<Rid>& chain) {
    Role role = Role::kNone;
    EXPECT_OK(database_->Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(role, authorizer_.RoleOf(sql, who, chain));
      return {};
    }));
    return role;
  }
  Status Give(const std::string& principal, const Rid& rid, Role role) {
    return Do([&](SqlTransaction& sql) {
      return AddGrant(sql, {.resource = rid, .principal_id = principal, .role = role}, "test",
                      clock_.Now());
    });
  }
  Status Take(const std::string& principal, const Rid& rid, Role role) {
    return Do([&](SqlTransaction& sql) {
      return RemoveGrant(sql, {.resource = rid, .principal_id = principal, .role = role});
    });
  }
  Status Require(const Principal& who, const Rid& rid, Role role,
                 Scope scope = Scope::kDatasetsRead) {
    const std::vector<Rid> chain = {rid};
    return database_->Read([&](SqlTransaction& sql) {
      return authorizer_.Require(sql, who, rid, chain, role, scope);
    });
  }

  Directory directory_{ids_, clock_};
  Authorizer authorizer_{clock_};
};

TEST_F(AuthorizerTest, TheGreatestRoleAlongTheChainCounts) {
  const User alice = MakeUser("alice");
  const Principal who = PrincipalOf(alice);
  const Rid root = MakeRid();
  const Rid folder = MakeRid();
  const Rid dataset = MakeRid();
  EXPECT_EQ(RoleOf(who, {dataset, folder, root}), Role::kNone);
  ASSERT_OK(Give(alice.id, folder, Role::kEditor));
  ASSERT_OK(Give(alice.id, dataset, Role::kViewer));
  EXPECT_EQ(RoleOf(who, {dataset, folder, root}), Role::kEditor);
  EXPECT_EQ(RoleOf(who, {folder, root}), Role::kEditor);
  EXPECT_EQ(RoleOf(who, {root}), Role::kNone) << "nothing flows upwards";
  EXPECT_EQ(RoleOf(who, {}), Role::kNone);
}

TEST_F(AuthorizerTest, GroupsAndEveryoneCountAndChangesCountAtOnce) {
  const User alice = MakeUser("alice");
  const Principal who = PrincipalOf(alice);
  const Group group = MakeGroup("g");
  const Rid rid = MakeRid();
  ASSERT_OK(Give(group.id, rid, Role::kEditor));
  EXPECT_EQ(RoleOf(who, {rid}), Role::kNone);
  ASSERT_OK(Add(group.id, alice.id, clock_.Now() + seconds(10)));
  EXPECT_EQ(RoleOf(who, {rid}), Role::kEditor);
  clock_.Advance(seconds(10));
  EXPECT_EQ(RoleOf(who, {rid}), Role::kNone) << "the membership ended without any write";
  ASSERT_OK(Give(std::string(kEveryone), rid, Role::kDiscoverer));
  EXPECT_EQ(RoleOf(who, {rid}), Role::kDiscoverer);
  ASSERT_OK(Take(std::string(kEveryone), rid, Role::kDiscoverer));
  EXPECT_EQ(RoleOf(who, {rid}), Role::kNone);
}

TEST_F(AuthorizerTest, ADeletedUserIsNotEveryone) {
  const User alice = MakeUser("alice");
  const Rid rid = MakeRid();
  ASSERT_OK(Give(std::string(kEveryone), rid, Role::kViewer));
  EXPECT_EQ(RoleOf(PrincipalOf(alice), {rid}), Role::kViewer);
  ASSERT_OK(Do([&](SqlTransaction& sql) { return directory_.DeleteUser(sql, alice.id); }));
  EXPECT_EQ(RoleOf(PrincipalOf(alice), {rid}), Role::kNone);
}

TEST_F(AuthorizerTest, ARolledBackGrantIsForgotten) {
  const User alice = MakeUser("alice");
  const std::vector<Rid> chain = {MakeRid()};
  EXPECT_THAT(Do([&](SqlTransaction& sql) -> Status {
                TARN_RETURN_IF_ERROR(AddGrant(
                    sql, {.resource = chain[0], .principal_id = alice.id, .role = Role::kOwner},
                    "test", clock_.Now()));
                TARN_ASSIGN_OR_RETURN(const Role inside,
                                      authorizer_.RoleOf(sql, PrincipalOf(alice), chain));
                EXPECT_EQ(inside, Role::kOwner);
                return Status::Conflict("rolled back");
              }),
              Fails(ErrorCode::kConflict));
  EXPECT_EQ(RoleOf(PrincipalOf(alice), chain), Role::kNone);
  ASSERT_OK(Give(alice.id, MakeRid(), Role::kViewer));
  EXPECT_EQ(RoleOf(PrincipalOf(alice), chain), Role::kNone);
}

TEST_F(AuthorizerTest, ASmallCacheStillAnswersRight) {
  Authorizer small(clock_, {.cache_entries_max = 2});
  const User alice = MakeUser("alice");
  std::vector<Rid> rids;
  for (int i = 0; i < 10; ++i) {
    rids.push_back(MakeRid());
  }
  ASSERT_OK(Give(alice.id, rids.back(), Role::kViewer));
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK(database_->Read([&](SqlTransaction& sql) -> Status {
      EXPECT_THAT(small.RoleOf(sql, PrincipalOf(alice), rids), IsOkAndHolds(Role::kViewer));
      return {};
    }));
  }
}

TEST_F(AuthorizerTest, RequireTellsHiddenFromForbidden) {
  const User alice = MakeUser("alice");
  const Principal who = PrincipalOf(alice);
  const Rid rid = MakeRid();
  EXPECT_EQ(Require(who, rid, Role::kDiscoverer), ResourceNotFound(rid));
  ASSERT_OK(Give(alice.id, rid, Role::kDiscoverer));
  EXPECT_OK(Require(who, rid, Role::kDiscoverer));
  EXPECT_THAT(Require(who, rid, Role::kViewer),
              FailsWith(ErrorCode::kPermissionDenied, "Discoverer of " + rid.ToString()));
  ASSERT_OK(Give(alice.id, rid, Role::kEditor));
  EXPECT_OK(Require(who, rid, Role::kEditor));
  EXPECT_THAT(Require(who, rid, Role::kOwner), Fails(ErrorCode::kPermissionDenied));
}

TEST_F(AuthorizerTest, AMissingScopeSaysNothingOfTheResource) {
  const User alice = MakeUser("alice");
  Principal who = PrincipalOf(alice);
  who.scopes = ScopeSet::Of({Scope::kDatasetsRead});
  const Rid rid = MakeRid();
  const Status hidden = Require(who, rid, Role::kEditor, Scope::kDatasetsWrite);
  ASSERT_OK(Give(alice.id, rid, Role::kOwner));
  const Status visible = Require(who, rid, Role::kEditor, Scope::kDatasetsWrite);
  EXPECT_EQ(hidden, visible);
  EXPECT_THAT(visible, Fails(ErrorCode::kPermissionDenied));
  EXPECT_EQ(visible.reason(), "ApiUsageDenied");
  EXPECT_EQ(visible.details(), R"({"missingScope":"api:datasets-write"})");
}

TEST_F(AuthorizerTest, OnlyOwnersGrant) {
  const User alice = MakeUser("alice");
  const Principal who = PrincipalOf(alice);
  const std::vector<Rid> chain = {MakeRid()};
  const auto may = [&](Role role) {
    return database_->Read([&](SqlTransaction& sql) {
      return authorizer_.RequireGrant(sql, who, chain[0], chain, role);
    });
  };
  EXPECT_THAT(may(Role::kViewer), Fails(ErrorCode::kNotFound));
  ASSERT_OK(Give(alice.id, chain[0], Role::kEditor));
  EXPECT_THAT(may(Role::kViewer), Fails(ErrorCode::kPermissionDenied));
  ASSERT_OK(Give(alice.id, chain[0], Role::kOwner));
  EXPECT_OK(may(Role::kOwner));
  EXPECT_THAT(may(Role::kNone), Fails(ErrorCode::kInvalidArgument));
}

}  // namespace
}  // namespace tarn::access
