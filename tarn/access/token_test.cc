#include "tarn/access/token.h"

#include "tarn/access/directory.h"
#include "tarn/access/schema.h"
#include "test/support/matchers.h"
#include "test/support/metastore_fixture.h"

namespace tarn::access {
namespace {

using metastore::SqlTransaction;
using std::chrono::seconds;

class TokenTest : public MetastoreFixture {
 protected:
  void SetUp() override { OpenWith({Migrations()}); }

  User MakeUser(const std::string& name, UserKind kind = UserKind::kPerson) {
    const Result<User> user = In<User>([&](SqlTransaction& sql) {
      return directory_.CreateUser(sql, {.username = name, .kind = kind});
    });
    EXPECT_THAT(user, IsOk());
    return user.ok() ? *user : User();
  }

  Result<IssuedToken> Issue(const TokenRequest& request) {
    return In<IssuedToken>([&](SqlTransaction& sql) { return tokens_.Create(sql, request); });
  }
  Result<Principal> Authenticate(const std::string& text) {
    return In<Principal>([&](SqlTransaction& sql) { return tokens_.Authenticate(sql, text); });
  }

  Directory directory_{ids_, clock_};
  Tokens tokens_{ids_, clock_};
};

TEST_F(TokenTest, ATokenNamesItsUserAndScopes) {
  const User alice = MakeUser("alice");
  ASSERT_OK_AND_ASSIGN(
      const IssuedToken issued,
      Issue(
          {.user_id = alice.id, .name = "laptop", .scopes = ScopeSet::Of({Scope::kDatasetsRead})}));
  EXPECT_EQ(issued.text.size(), 5U + 64U);
  EXPECT_THAT(Authenticate(issued.text),
              IsOkAndHolds(Principal{.user_id = alice.id,
                                     .username = "alice",
                                     .token_id = issued.token.id,
                                     .scopes = ScopeSet::Of({Scope::kDatasetsRead})}));
  EXPECT_THAT(In<Token>([&](SqlTransaction& sql) { return GetToken(sql, issued.token.id); }),
              IsOkAndHolds(issued.token));
  ASSERT_OK_AND_ASSIGN(const IssuedToken other, Issue({.user_id = alice.id}));
  EXPECT_NE(other.text, issued.text);
}

TEST_F(TokenTest, OnlyTheHashIsStored) {
  const User alice = MakeUser("alice");
  ASSERT_OK_AND_ASSIGN(const IssuedToken issued, Issue({.user_id = alice.id}));
  ASSERT_OK(Do([&](SqlTransaction& sql) {
    return sql.Query("SELECT * FROM access_tokens", {}, [&](const metastore::SqlRow& row) {
      for (int column = 0; column < row.column_count(); ++column) {
        EXPECT_EQ(row.Text(column).find(issued.text.substr(5)), std::string_view::npos);
      }
      return Result<metastore::RowAction>(metastore::RowAction::kContinue);
    });
  }));
}

TEST_F(TokenTest, WhatDoesNotCountHasOneAnswer) {
  const User alice = MakeUser("alice");
  ASSERT_OK_AND_ASSIGN(const IssuedToken expiring,
                       Issue({.user_id = alice.id, .expires = clock_.Now() + seconds(10)}));
  ASSERT_OK_AND_ASSIGN(const IssuedToken revoked, Issue({.user_id = alice.id}));
  ASSERT_OK(Authenticate(expiring.text));
  clock_.Advance(seconds(10));
  const auto revoke = [&] {
    return Do([&](SqlTransaction& sql) { return tokens_.Revoke(sql, revoked.token.id); });
  };
  ASSERT_OK(revoke());
  const Timestamp revoked_at = clock_.Now();
  clock_.Advance(seconds(1));
  ASSERT_OK(revoke());
  ASSERT_OK_AND_ASSIGN(const Token read, In<Token>([&](SqlTransaction& sql) {
                         return GetToken(sql, revoked.token.id);
                       }));
  EXPECT_EQ(read.revoked, revoked_at);
  const Status expected = Authenticate("tarn_" + std::string(64, '0')).status();
  EXPECT_THAT(expected, Fails(ErrorCode::kUnauthenticated));
  for (const std::string& text : {expiring.text, revoked.text, revoked.text + "0", std::string(),
                                  std::string("tarn_"), revoked.text.substr(5)}) {
    EXPECT_EQ(Authenticate(text).status(), expected) << text;
  }
}

TEST_F(TokenTest, RevokingAllLeavesOtherUsersAlone) {
  const User alice = MakeUser("alice");
  const User bob = MakeUser("bob");
  ASSERT_OK_AND_ASSIGN(const IssuedToken of_alice, Issue({.user_id = alice.id}));
  ASSERT_OK_AND_ASSIGN(const IssuedToken of_bob, Issue({.user_id = bob.id}));
  ASSERT_OK(Do([&](SqlTransaction& sql) { return tokens_.RevokeAllOf(sql, alice.id); }));
  EXPECT_THAT(Authenticate(of_alice.text), Fails(ErrorCode::kUnauthenticated));
  EXPECT_OK(Authenticate(of_bob.text));
}

TEST_F(TokenTest, BadRequestsAreRefused) {
  EXPECT_EQ(Issue({.user_id = "nobody"}).status().reason(), "UserNotFound");
  const User alice = MakeUser("alice");
  EXPECT_THAT(Issue({.user_id = alice.id, .expires = clock_.Now()}),
              Fails(ErrorCode::kInvalidArgument));
  ASSERT_OK(Do([&](SqlTransaction& sql) { return directory_.DeleteUser(sql, alice.id); }));
  EXPECT_EQ(Issue({.user_id = alice.id}).status().reason(), "UserDeleted");
  EXPECT_EQ(Do([&](SqlTransaction& sql) { return tokens_.Revoke(sql, "none"); }).reason(),
            "TokenNotFound");
}

TEST_F(TokenTest, ClientCredentialsGiveShortTokens) {
  const User robot = MakeUser("robot", UserKind::kService);
  const auto renew = [&](const std::string& id) {
    return In<ClientSecret>(
        [&](SqlTransaction& sql) { return tokens_.RenewClientSecret(sql, id); });
  };
  const auto exchange = [&](const ClientSecret& client) {
    return In<IssuedToken>([&](SqlTransaction& sql) {
      return tokens_.ExchangeClientSecret(sql, client, ScopeSet::Of({Scope::kIcebergRead}),
                                          seconds(3600));
    });
  };
  ASSERT_OK_AND_ASSIGN(const ClientSecret first, renew(robot.id));
  ASSERT_OK_AND_ASSIGN(const IssuedToken token, exchange(first));
  EXPECT_EQ(token.token.expires, clock_.Now() + seconds(3600));
  ASSERT_OK_AND_ASSIGN(const Principal principal, Authenticate(token.text));
  EXPECT_EQ(principal.scopes, ScopeSet::Of({Scope::kIcebergRead}));
  ASSERT_OK(renew(robot.id));
  EXPECT_THAT(exchange(first), Fails(ErrorCode::kUnauthenticated)) << "the old secret";
  EXPECT_THAT(exchange({.client_id = "x", .secret = first.secret}),
              Fails(ErrorCode::kUnauthenticated));
  EXPECT_THAT(renew(MakeUser("person").id), Fails(ErrorCode::kInvalidArgument));
}

TEST_F(TokenTest, ListsAreNewestFirstAndPurgeTakesWhatEnded) {
  const User alice = MakeUser("alice");
  ASSERT_OK(Issue({.user_id = alice.id, .name = "1", .expires = clock_.Now() + seconds(1)}));
  ASSERT_OK(Issue({.user_id = alice.id, .name = "2"}));
  ASSERT_OK(Issue({.user_id = MakeUser("bob").id, .name = "3"}));
  const auto names = [&](const std::string& user) {
    std::vector<std::string> list;
    for (const Token& token : In<std::vector<Token>>([&](SqlTransaction& sql) {
                                return ListTokens(sql, user);
                              }).value()) {
      list.push_back(token.name);
    }
    return list;
  };
  EXPECT_THAT(names(alice.id), ::testing::ElementsAre("2", "1"));
  EXPECT_THAT(names(""), ::testing::ElementsAre("3", "2", "1"));
  clock_.Advance(seconds(5));
  EXPECT_THAT(In<int64_t>([&](SqlTransaction& sql) { return PurgeTokens(sql, clock_.Now(), 100); }),
              IsOkAndHolds(1));
  EXPECT_THAT(names(alice.id), ::testing::ElementsAre("2"));
}

TEST_F(TokenTest, AGarbledScopeInTheTableIsAnError) {
  const User alice = MakeUser("alice");
  ASSERT_OK_AND_ASSIGN(const IssuedToken issued, Issue({.user_id = alice.id}));
  ASSERT_OK(Do([&](SqlTransaction& sql) {
    return sql.Execute("UPDATE access_tokens SET scopes = 'api:everything'", {}).status();
  }));
  EXPECT_THAT(Authenticate(issued.text), Fails(ErrorCode::kInvalidArgument));
}

}  // namespace
}  // namespace tarn::access
