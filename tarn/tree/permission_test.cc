#include "tarn/tree/permission.h"

#include "tarn/access/bootstrap.h"
#include "tarn/access/schema.h"
#include "tarn/tree/tree.h"
#include "test/support/matchers.h"
#include "test/support/metastore_fixture.h"

namespace tarn::tree {
namespace {

using access::Principal;
using access::Role;
using access::ScopeSet;
using metastore::SqlTransaction;

class PermissionTest : public MetastoreFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OpenWith({access::Migrations(), Migrations()}));
    ASSERT_OK(database_->Write([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const auto booted, access::Bootstrap(sql, RootRid(), ids_, clock_));
      admin_ = PrincipalOf(booted->admin);
      TARN_ASSIGN_OR_RETURN(project_, tree_.Bootstrap(sql, admin_.user_id));
      TARN_ASSIGN_OR_RETURN(
          const Node dataset,
          tree_.Create(sql, {.parent = project_, .name = "d", .type = NodeType::kDataset}));
      dataset_ = dataset.rid;
      access::Directory directory(ids_, clock_);
      TARN_ASSIGN_OR_RETURN(const access::User user,
                            directory.CreateUser(sql, {.username = "alice"}));
      alice_ = PrincipalOf(user);
      return {};
    }));
  }

  static Principal PrincipalOf(const access::User& user) {
    return {.user_id = user.id, .username = user.username, .scopes = ScopeSet::All()};
  }
  Status Check(const Principal& who, const Rid& rid, Role role) {
    return database_->Read([&](SqlTransaction& sql) {
      return Require(sql, authorizer_, who, rid,
                     {.role = role, .scope = access::Scope::kDatasetsRead});
    });
  }
  Role RoleAt(const Principal& who, const Rid& rid) {
    Role role = Role::kNone;
    EXPECT_OK(database_->Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(role, RoleOn(sql, authorizer_, who, rid));
      return {};
    }));
    return role;
  }
  void Grant(const Principal& who, const Rid& rid, Role role) {
    EXPECT_OK(database_->Write([&](SqlTransaction& sql) {
      return access::AddGrant(sql, {.resource = rid, .principal_id = who.user_id, .role = role},
                              "test", clock_.Now());
    }));
  }

  Tree tree_{ids_, clock_};
  access::Authorizer authorizer_{clock_};
  Principal admin_;
  Principal alice_;
  Rid project_;
  Rid dataset_;
};

TEST_F(PermissionTest, TheAdminOwnsEverythingThroughItsGrantOnTheRoot) {
  EXPECT_EQ(RoleAt(admin_, dataset_), Role::kOwner);
  ASSERT_OK(database_->Write([&](SqlTransaction& sql) {
    return access::RemoveGrant(
        sql, {.resource = RootRid(), .principal_id = admin_.user_id, .role = Role::kOwner});
  }));
  EXPECT_EQ(RoleAt(admin_, dataset_), Role::kNone) << "no special case";
}

TEST_F(PermissionTest, NoAccessAndNotThereAreOneAnswer) {
  const Status hidden = Check(alice_, dataset_, Role::kViewer);
  const Rid nowhere = NewRid(NodeType::kDataset, ids_);
  const Status missing = Check(admin_, nowhere, Role::kViewer);
  EXPECT_EQ(hidden, access::ResourceNotFound(dataset_));
  EXPECT_EQ(missing, access::ResourceNotFound(nowhere));
  EXPECT_EQ(hidden.details(), R"({"resourceRid":")" + dataset_.ToString() + R"("})");
  EXPECT_EQ(RoleAt(admin_, nowhere), Role::kNone);
  ASSERT_OK(database_->Read([&](SqlTransaction& sql) -> Status {
    EXPECT_EQ(GetNode(sql, nowhere).status(), access::ResourceNotFound(nowhere));
    return {};
  }));
}

TEST_F(PermissionTest, GrantsReachDownTheTreeAndFollowMoves) {
  Grant(alice_, project_, Role::kViewer);
  EXPECT_OK(Check(alice_, dataset_, Role::kViewer));
  EXPECT_THAT(Check(alice_, dataset_, Role::kEditor), Fails(ErrorCode::kPermissionDenied));
  Rid other;
  ASSERT_OK(database_->Write([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const LocatedNode project, LocateNode(sql, project_));
    TARN_ASSIGN_OR_RETURN(
        const Node made,
        tree_.Create(sql, {.parent = project.space, .name = "other", .type = NodeType::kProject}));
    other = made.rid;
    return tree_.Move(sql, dataset_, other, "test").status();
  }));
  EXPECT_THAT(Check(alice_, dataset_, Role::kViewer), Fails(ErrorCode::kNotFound));
  Grant(alice_, other, Role::kEditor);
  EXPECT_OK(Check(alice_, dataset_, Role::kEditor));
}

}  // namespace
}  // namespace tarn::tree
