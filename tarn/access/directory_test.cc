#include "tarn/access/directory.h"

#include <atomic>
#include <thread>

#include "tarn/access/grant.h"
#include "tarn/access/schema.h"
#include "tarn/access/token.h"
#include "test/support/matchers.h"
#include "test/support/metastore_fixture.h"

namespace tarn::access {
namespace {

using metastore::SqlTransaction;
using std::chrono::seconds;

class DirectoryTest : public MetastoreFixture {
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

  Result<Memberships> GroupsOf(const std::string& id, Reach reach) {
    return In<Memberships>(
        [&](SqlTransaction& sql) { return ReadMemberships(sql, id, clock_.Now(), reach); });
  }

  Directory directory_{ids_, clock_};
  Tokens tokens_{ids_, clock_};
};

TEST_F(DirectoryTest, UsersAreFoundByIdAndName) {
  ASSERT_OK_AND_ASSIGN(const User made, In<User>([&](SqlTransaction& sql) {
                         return directory_.CreateUser(sql, {.username = "alice",
                                                            .given_name = "Alice",
                                                            .family_name = "Ü",
                                                            .email = "a@example.org"});
                       }));
  EXPECT_EQ(made.created, clock_.Now());
  EXPECT_THAT(Uuid::Parse(made.id), IsOk());
  EXPECT_THAT(In<User>([&](SqlTransaction& sql) { return GetUser(sql, made.id); }),
              IsOkAndHolds(made));
  EXPECT_THAT(
      In<std::optional<User>>([&](SqlTransaction& sql) { return FindUserByName(sql, "alice"); }),
      IsOkAndHolds(std::optional<User>(made)));
  const Status missing = In<User>([&](SqlTransaction& sql) { return GetUser(sql, "x"); }).status();
  EXPECT_EQ(missing.reason(), "UserNotFound");
}

TEST_F(DirectoryTest, NamesAreUniqueAmongActiveUsers) {
  const User first = MakeUser("alice");
  const auto create = [&](const std::string& name) {
    return In<User>(
        [&](SqlTransaction& sql) { return directory_.CreateUser(sql, {.username = name}); });
  };
  EXPECT_EQ(create("alice").status().reason(), "UserNameAlreadyExists");
  EXPECT_THAT(create(""), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(create(std::string(257, 'x')), Fails(ErrorCode::kInvalidArgument));
  ASSERT_OK(Do([&](SqlTransaction& sql) { return directory_.DeleteUser(sql, first.id); }));
  ASSERT_OK_AND_ASSIGN(const User second, create("alice"));
  EXPECT_NE(first.id, second.id);
}

TEST_F(DirectoryTest, OfManyThreadsOneCreatesTheName) {
  std::atomic<int> won{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&] {
      won += In<Group>([&](SqlTransaction& sql) {
               return directory_.CreateGroup(sql, "same", "");
             }).ok()
                 ? 1
                 : 0;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(won, 1);
}

TEST_F(DirectoryTest, DeletingAUserEndsAllItCouldDo) {
  const User user = MakeUser("alice");
  const Group group = MakeGroup("g");
  ASSERT_OK(Add(group.id, user.id));
  const Rid resource = Rid::Make("foundry", "dataset", ids_.NextV4());
  ASSERT_OK(Do([&](SqlTransaction& sql) {
    return AddGrant(sql, {.resource = resource, .principal_id = user.id, .role = Role::kViewer},
                    "test", clock_.Now());
  }));
  ASSERT_OK_AND_ASSIGN(const IssuedToken token, In<IssuedToken>([&](SqlTransaction& sql) {
                         return tokens_.Create(sql, {.user_id = user.id});
                       }));
  const auto remove = [&] {
    return Do([&](SqlTransaction& sql) { return directory_.DeleteUser(sql, user.id); });
  };
  ASSERT_OK(remove());
  EXPECT_EQ(remove().reason(), "UserDeleted");
  EXPECT_THAT(
      In<std::vector<Grant>>([&](SqlTransaction& sql) { return ListGrants(sql, resource); }),
      IsOkAndHolds(::testing::IsEmpty()));
  EXPECT_THAT(
      In<std::vector<GroupMember>>([&](SqlTransaction& sql) { return ListMembers(sql, group.id); }),
      IsOkAndHolds(::testing::IsEmpty()));
  EXPECT_THAT(
      In<Principal>([&](SqlTransaction& sql) { return tokens_.Authenticate(sql, token.text); }),
      Fails(ErrorCode::kUnauthenticated));
  EXPECT_EQ(Add(group.id, user.id).reason(), "PrincipalNotFound");
}

TEST_F(DirectoryTest, ListsArePagedAndFilteredByPrefixOfAnyName) {
  for (const char* name : {"alice", "ALbert", "bob", "al%"}) {
    MakeUser(name);
  }
  ASSERT_OK(In<User>([&](SqlTransaction& sql) {
    return directory_.CreateUser(sql, {.username = "x", .family_name = "Aldo"});
  }));
  const auto list = [&](const DirectoryPage& page) {
    std::vector<User> users =
        In<std::vector<User>>([&](SqlTransaction& sql) { return ListUsers(sql, page); }).value();
    return users;
  };
  EXPECT_EQ(list({.prefix = "AL"}).size(), 4U);
  EXPECT_EQ(list({.prefix = "al%"}).size(), 1U);
  std::vector<std::string> ids;
  DirectoryPage page{.limit = 2};
  for (std::vector<User> users = list(page); !users.empty(); users = list(page)) {
    EXPECT_LE(users.size(), 2U);
    for (const User& user : users) {
      ids.push_back(user.id);
    }
    page.after_id = ids.back();
  }
  EXPECT_EQ(ids.size(), 5U);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
}

TEST_F(DirectoryTest, GroupsAreCreatedReplacedAndDeleted) {
  const Group group = MakeGroup("g");
  MakeGroup("h");
  const auto replace = [&](const std::string& name) {
    return Do([&](SqlTransaction& sql) {
      return directory_.ReplaceGroup(sql, group.id, name, "changed");
    });
  };
  EXPECT_EQ(replace("h").reason(), "GroupNameAlreadyExists");
  ASSERT_OK(replace("g2"));
  ASSERT_OK_AND_ASSIGN(const Group read,
                       In<Group>([&](SqlTransaction& sql) { return GetGroup(sql, group.id); }));
  EXPECT_EQ(read.name, "g2");
  EXPECT_EQ(read.description, "changed");
  ASSERT_OK(Add(group.id, MakeUser("alice").id));
  ASSERT_OK(Do([&](SqlTransaction& sql) { return directory_.DeleteGroup(sql, group.id); }));
  EXPECT_EQ(replace("g3").reason(), "GroupNotFound");
  EXPECT_EQ(Add(group.id, "x").reason(), "GroupNotFound");
  ASSERT_OK_AND_ASSIGN(const std::vector<Group> left,
                       In<std::vector<Group>>(
                           [&](SqlTransaction& sql) { return ListGroups(sql, {.prefix = "H"}); }));
  EXPECT_EQ(left.size(), 1U);
}

TEST_F(DirectoryTest, MembershipsReachThroughGroupsAndExpire) {
  const User alice = MakeUser("alice");
  const Group inner = MakeGroup("inner");
  const Group outer = MakeGroup("outer");
  const Timestamp end = clock_.Now() + seconds(10);
  ASSERT_OK(Add(inner.id, alice.id, end));
  ASSERT_OK(Add(outer.id, inner.id));
  EXPECT_THAT(GroupsOf(alice.id, Reach::kDirect),
              IsOkAndHolds(Memberships{.group_ids = {inner.id}, .next_expiry = end}));
  ASSERT_OK_AND_ASSIGN(const Memberships all, GroupsOf(alice.id, Reach::kTransitive));
  EXPECT_THAT(all.group_ids, ::testing::UnorderedElementsAre(inner.id, outer.id));
  EXPECT_EQ(all.next_expiry, end);
  clock_.Advance(seconds(10));
  EXPECT_THAT(GroupsOf(alice.id, Reach::kTransitive), IsOkAndHolds(Memberships()));
  ASSERT_OK(Add(inner.id, alice.id));
  EXPECT_THAT(GroupsOf(alice.id, Reach::kDirect),
              IsOkAndHolds(Memberships{.group_ids = {inner.id}}));
  ASSERT_OK(
      Do([&](SqlTransaction& sql) { return directory_.RemoveMember(sql, inner.id, alice.id); }));
  EXPECT_THAT(GroupsOf(alice.id, Reach::kDirect), IsOkAndHolds(Memberships()));
}

TEST_F(DirectoryTest, MembersThatMakeNoSenseAreRefused) {
  const Group a = MakeGroup("a");
  const Group b = MakeGroup("b");
  const Group c = MakeGroup("c");
  ASSERT_OK(Add(b.id, a.id));
  ASSERT_OK(Add(c.id, b.id));
  EXPECT_THAT(Add(a.id, c.id), FailsWith(ErrorCode::kInvalidArgument, "contain itself"));
  EXPECT_THAT(Add(a.id, a.id), Fails(ErrorCode::kInvalidArgument));
  EXPECT_EQ(Add(a.id, "nobody").reason(), "PrincipalNotFound");
  EXPECT_EQ(Add(a.id, MakeUser("u").id, clock_.Now()).reason(), "InvalidGroupMembershipExpiration");
}

}  // namespace
}  // namespace tarn::access
